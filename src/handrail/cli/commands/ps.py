"""`handrail ps`: the background processes of all tasks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from .. import exit_codes, options

if TYPE_CHECKING:
    from ...app import Handrail
    from ...processes.tracked import Status, TrackedProcess
    from ...types import JsonDict

Ids = Annotated[list[str] | None, typer.Argument(metavar="ID...", help="Processes, as `handrail ps` names them.")]
Id = Annotated[str, typer.Argument(metavar="ID", help="A process, as `handrail ps` names it.")]


def add_to(app: typer.Typer) -> None:
    group = typer.Typer(rich_markup_mode=None, invoke_without_command=True)
    group.callback()(ps)
    group.command("kill")(kill)
    group.command("log")(log)
    app.add_typer(group, name="ps")


def ps(
    context: typer.Context,
    everything: Annotated[bool, typer.Option("--all", help="Those that have ended, too.")] = False,
    task: options.Task = None,
    as_json: options.Json = False,
) -> None:
    """List the background processes of all tasks, those of earlier runtimes too.

    A process that was started in the background goes on when the program that started it ends. It is listed here
    until it ends, or is killed.

    \b
    Examples:
      handrail ps
      handrail ps --all --json
      handrail ps log proc_1a2b3c4d --follow
      handrail ps kill proc_1a2b3c4d
    """
    if context.invoked_subcommand is not None:
        return
    from ..open_runtime import open_runtime
    from ..output import emit_json, emit_table, visible

    here = open_runtime()
    try:
        found = [(one, one.status()) for one in here.processes.list(task)]
    finally:
        here.close()
    rows = [_described(one, status) for one, status in found if everything or one.record.ended_at is None]
    if as_json:
        emit_json(rows)
        return
    columns = ("session_id", "task", "environment", "status", "pid", "age", "command")
    names = ("ID", "TASK", "ENVIRONMENT", "STATUS", "PID", "AGE", "COMMAND")
    emit_table(names, [[visible(str(row[column])) for column in columns] for row in rows], wide=6)


def kill(
    ids: Ids = None,
    everything: Annotated[bool, typer.Option("--all", help="All that run, of every task.")] = False,
) -> None:
    """End processes, with all that they have started: SIGTERM, and after two seconds SIGKILL.

    \b
    Examples:
      handrail ps kill proc_1a2b3c4d
      handrail ps kill --all

    Exit codes: 0 they have ended, 1 one of them has not, or is not known.
    """
    from ..open_runtime import open_runtime
    from ..output import say

    if bool(ids) == everything:
        raise typer.BadParameter("name the processes to end, or give --all")
    here = open_runtime()
    try:
        failed = [problem for one in _chosen(here, ids) if (problem := _end(one))]
    finally:
        here.close()
    for problem in failed:
        say(problem)
    raise typer.Exit(exit_codes.ExitCode.FAILED if failed else exit_codes.ExitCode.OK)


def log(
    id: Id,  # noqa: A002  what it is
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on until the process has ended.")] = False,
) -> None:
    """Print what a process has printed, as it is.

    \b
    Examples:
      handrail ps log proc_1a2b3c4d | tail
      handrail ps log proc_1a2b3c4d --follow
    """
    from ..open_runtime import open_runtime
    from ..process_log import print_log

    here = open_runtime()
    try:
        print_log(here.processes.get(id), follow=follow)
    finally:
        here.close()


def _chosen(here: Handrail, ids: list[str] | None) -> list[TrackedProcess]:
    from ...processes.tracked import State

    if ids:
        return [here.processes.get(one) for one in ids]
    return [one for one in here.processes.list() if one.status().state is State.RUNNING]


def _end(one: TrackedProcess) -> str | None:
    """What went wrong, if something did."""
    from ...errors import ToolError
    from ...processes.tracked import State
    from ..output import emit

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
    import time

    from ..call_text import age

    record = one.record
    until = time.time() if status.ended_at is None else status.ended_at
    seconds = max(0.0, until - record.started_at)
    said = status.state.value if status.exit_code is None else f"{status.state.value} ({status.exit_code})"
    return {
        "session_id": record.id,
        "task": record.task_id,
        "environment": record.environment,
        "status": said,
        "exit_code": status.exit_code,
        "reason": status.reason,
        "pid": record.pid,
        "pty": record.has_pty,
        "started_at": record.started_at,
        "seconds": round(seconds, 1),
        "age": age(seconds),
        "command": record.command,
    }
