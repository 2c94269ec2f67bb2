"""List the background processes of all tasks.

A background process keeps running when the program that started it ends, and is listed until it ends or is killed.

Examples:
  handrail ps
  handrail ps --all --json
  handrail ps log proc_1a2b3c4d --follow
  handrail ps kill proc_1a2b3c4d
"""

import contextlib
import sys
import time
from typing import Annotated

from ...base.safe_text import TextCleaner
from ...config.paths import state_dir
from ...environments.base import ProcessState
from ...environments.protection import JOBS_FOLDER
from ...environments.shell_host import jobs
from ...errors import ToolError
from ...processes.tracked import State, Status, TrackedProcess
from ...types import JsonDict
from ..call_text import age
from ..options import BadParameter, Context, Exit, Json, Task, argument, new_cli, option
from ..output import ExitCode, emit, emit_bytes, emit_table, say, visible
from ..runtime import open_runtime

Ids = Annotated[list[str] | None, argument("ID...", "Processes, as `handrail ps` names them.")]
Id = Annotated[str, argument("ID", "A process, as `handrail ps` names it.")]
cli = new_cli()
_PIECE_BYTES, _POLL_SECONDS = 1 << 20, 60.0
Everything = Annotated[bool, option("--all", "Include processes that have ended.")]
KillEverything = Annotated[bool, option("--all", "All that run, of every task.")]


@cli.callback(invoke_without_command=True, no_args_is_help=False)
def ps(context: Context, everything: Everything = False, task: Task = None, as_json: Json = False) -> None:
    if context.invoked_subcommand is not None:
        return
    found = [(one, one.status()) for one in open_runtime().processes.list(task)]
    rows = [_described(one, status) for one, status in found if everything or one.record.ended_at is None]
    columns = ("session_id", "task", "environment", "status", "pid", "age", "command")
    names = ("ID", *(column.upper() for column in columns[1:]))
    more = "." if everything else " run. `handrail ps --all` shows those that have ended."
    shown = [[visible(str(row[column])) for column in columns] for row in rows]
    emit_table(names, shown, rows, as_json=as_json, wide=6, empty=f"No background processes{more}")


@cli.command()
def kill(ids: Ids = None, everything: KillEverything = False) -> None:
    """Kill processes, with all that they have started: SIGTERM, and after two seconds SIGKILL.

    Examples:
      handrail ps kill --all

    Exit codes: 0 they have ended, 1 one of them has not, or is not known.
    """
    if bool(ids) == everything:
        raise BadParameter("name the processes to kill, or give --all")
    table = open_runtime().processes
    chosen = [table.get(one) for one in ids or ()]
    chosen += [one for one in table.list() if one.status().state is State.RUNNING] if everything else []
    failed = [problem for one in chosen if (problem := _end(one))]
    for problem in failed:
        say(problem)
    raise Exit(ExitCode.FAILED if failed else ExitCode.OK)


@cli.command()
def log(
    id: Id,  # noqa: A002  what it is
    follow: Annotated[bool, option("--follow -f", "Follow until the process has ended.")] = False,
) -> None:
    """Print the output of a process, unchanged.

    Examples:
      handrail ps log proc_1a2b3c4d | tail
    """
    tracked, offset = open_runtime().processes.get(id), 0
    # Byte for byte into a file or a pipe; a terminal gets only text, without control sequences.
    cleaner, timeout = TextCleaner() if sys.stdout.isatty() else None, _POLL_SECONDS if follow else 0
    while True:
        piece = tracked.use(lambda process: process.read(offset, max_bytes=_PIECE_BYTES, timeout=timeout))  # noqa: B023  called immediately
        offset = piece.offset + len(piece.data)
        if cleaner is not None:
            emit(cleaner.feed(piece.data), end="")
        else:
            emit_bytes(piece.data)
        if piece.data:
            continue
        if not follow or tracked.use(lambda process: process.poll()).state is not ProcessState.RUNNING:
            break
    if cleaner is not None:
        emit(cleaner.finish(), end="")


def _end(one: TrackedProcess) -> str | None:
    """What went wrong, if something did."""
    try:
        one.kill()
    except (ToolError, OSError) as error:
        return f"{one.id} could not be ended: {error}"
    status = one.status()
    if status.state in (State.RUNNING, State.UNREACHABLE):
        return f"{one.id} {status}"
    emit(f"{one.id} {status}")
    return None


def _described(one: TrackedProcess, status: Status) -> JsonDict:
    record, pid = one.record, one.record.pid
    with contextlib.suppress(OSError):  # the commands of an agent may have process numbers of their own
        pid = jobs.pid_outside(str(state_dir() / JOBS_FOLDER / record.process_id)) or pid
    until = time.time() if status.ended_at is None else status.ended_at
    seconds = max(0.0, until - record.started_at)
    state = status.state.value if status.exit_code is None else f"{status.state.value} ({status.exit_code})"
    return {
        "session_id": record.id,
        "task": record.task_id,
        "environment": record.environment,
        "status": state,
        "exit_code": status.exit_code,
        "reason": status.reason,
        "pid": pid,
        "pty": record.has_pty,
        "started_at": record.started_at,
        "seconds": round(seconds, 1),
        "age": age(seconds),
        "command": record.command,
    }
