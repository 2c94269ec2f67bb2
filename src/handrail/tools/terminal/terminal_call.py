"""Run a call of `terminal`: in the task's shell, in the background or on a terminal of its own. What an exit code means."""

from __future__ import annotations

import json
import logging
import os
import re
import shlex
import signal
from collections.abc import Awaitable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, cast

from ...base.loops import on_worker
from ...core.outcome import tool_result
from ...effects import trial
from ...effects.open_call import call_number, has_run, stopped
from ...environments.base import CANCELLED_EXIT_CODE, CommandResult, Environment, LeftRunning
from ...environments.command_request import Request, capture_of, read_request
from ...environments.held_calls import held_calls
from ...environments.in_loop import execute
from ...environments.output import Output
from ...environments.protection import names_program
from ...environments.tasks import TaskEnvironments, environments_of
from ...errors import ToolError, ToolFailed
from ...files.task_arguments import everything
from ...processes.interact import wait
from ...processes.table import ProcessTable, Wanted
from ...protocols import Action, ActionKind
from ...types import JsonDict, Resources, ToolContext

if TYPE_CHECKING:
    from ...environments.command_request import Capture, Shown
    from ...environments.live_environment import LiveEnvironment
    from ...environments.local_environment import LocalEnvironment
    from ...processes.tracked import TrackedProcess

log = logging.getLogger(__name__)
_MAX_SHOWN, _MAX_ADOPTED = 20, 100
_READ_ONLY = "Read-only file system"
_OWN_PROGRAM = (
    "Handrail itself runs from there, so commands cannot change it; install into a virtual environment of the project's own "
    "(python3 -m venv .venv && .venv/bin/pip install ...), or a program with pipx"
)
# Wide, as programs cut their lines at the terminal's width.
_SIZE = (30, 120)
_MAX_LOG_BYTES = 4 << 20
_KILL_SECONDS = 0.2


def terminal(args: JsonDict, *, context: ToolContext, **_: object) -> str:
    environments = environments_of(context)
    request = read_request(args, environments)
    environments.begin_call(context)
    if args.get("background"):
        return start(request, context)
    if request.pty:
        return run_on_terminal(request, context, environments)
    return _run(request, context, environments)


def _in_loop(args: JsonDict, *, context: ToolContext) -> Awaitable[str] | None:
    """`terminal` in an event loop, for a shell that waits for its next command."""
    environments = environments_of(context)
    environment = environments.peek(context.task_id)
    is_plain = not (args.get("background") or args.get("pty") or _is_tried(context) or environments.has_networks)
    if not is_plain or not getattr(environment, "is_at_hand", False):
        return None
    return _arun(read_request(args, environments), context, environments)


terminal.in_loop = _in_loop  # type: ignore[attr-defined]


def actions(args: JsonDict, context: ToolContext) -> list[Action]:
    """The command, where it would run, and what it could reach from there. Starts nothing."""
    environments = environments_of(context)
    environment = environments.of(context.task_id)
    is_watched = environment.name == "local" and getattr(environment, "effects", None) is not None
    # What it changes can be taken back then, and its connections can wait.
    can_try = is_watched and context.effects is not None and not (args.get("background") or args.get("pty"))
    return [
        Action(
            ActionKind.COMMAND,
            args["command"],
            cwd=_directory(environments, context.task_id, args.get("workdir")),
            environment=environment.name,
            isolated=environment.isolated,
            reaches_host=environment.reaches_host,
            details={
                "background": bool(args.get("background")),
                "pty": bool(args.get("pty")),
                "files": environments.readable_files(context.task_id),
                "can_try": can_try,
            },
        )
    ]


def resources(args: JsonDict, context: ToolContext) -> Resources:  # noqa: ARG001  any command may touch any file
    return Resources(writes=(everything(context),))


def _directory(environments: TaskEnvironments, task_id: str | None, workdir: str | None) -> str:
    cwd = environments.cwd(task_id)
    if not workdir:
        return cwd
    if workdir.startswith("~"):
        return os.path.expanduser(workdir) if environments.has_host_paths(task_id) else workdir
    return os.path.join(cwd, workdir)


class _Ready(NamedTuple):
    """What a command of a task's shell needs to run, and to be shown."""

    request: Request
    context: ToolContext
    environments: TaskEnvironments
    environment: Environment
    capture: Capture
    before: str  # the directory of the shell
    more: JsonDict


def _ready(
    request: Request, context: ToolContext, environments: TaskEnvironments, environment: Environment, capture: Capture
) -> _Ready:
    before = environments.cwd(context.task_id)
    number = call_number(context, environment, request.command, before)
    more: JsonDict = {"call": number} if number else {}
    if request.separate:
        more["separate"] = True
    return _Ready(request, context, environments, environment, capture, before, more)


def _run(request: Request, context: ToolContext, environments: TaskEnvironments) -> str:
    with environments.use(context.task_id) as shell, capture_of(request, context, environments) as capture:
        ready = _ready(request, context, environments, shell, capture)
        return _answer(ready, *_executed(ready))


async def _arun(request: Request, context: ToolContext, environments: TaskEnvironments) -> str:
    with environments.use(context.task_id) as shell, capture_of(request, context, environments) as capture:
        ready = _ready(request, context, environments, shell, capture)
        ended = await execute(cast("LiveEnvironment", ready.environment), request.command, **_options(ready))
        is_simple = not (ended.left_running or ended.changed or ended.restarted)
        return _answer(ready, ended) if is_simple else await on_worker(_answer, ready, ended)


def _options(ready: _Ready) -> JsonDict:
    request = ready.request
    known: JsonDict = {"cwd": request.workdir, "timeout": request.timeout, "cancel": ready.context.cancel}
    return {**known, "output": ready.capture.sink, **ready.more}


def _answer(ready: _Ready, ended: CommandResult, taken_back: Sequence[str] = ()) -> str:
    request, context, environments, environment, capture = ready[:5]
    begun = ready.more.get("call", 0)
    refused = held_calls(environment).refused(begun)
    lines = [one.command_line for one in ended.left_running]
    number = has_run(context, environment, changed=ended.changed, left=lines)
    left = _adopted(ended.left_running, environment, context, environments) if ended.left_running else []
    shown = capture.shown(ended.output, ended.exit_code)
    taken_back = taken_back or stopped(context, environment, begun)
    if not taken_back and _is_tried(context):
        taken_back = trial.settle(context, number, lambda: _end_left(left, number, environment, context))
    result = result_of(request.command, ended.exit_code, shown)
    if request.separate:
        result["stderr"] = capture.shown_stderr(ended.stderr)
    if ended.timed_out:
        result |= timed_out(request.timeout)
    elif taken_back:
        result |= {"error": "; ".join([*refused, *taken_back]), "error_type": "denied"}
        refused = []
    elif ended.cancelled:
        result |= _CANCELLED
    if number:
        result["call"] = number
    if ended.cwd != ready.before:
        result["cwd"] = ended.cwd
    if left:
        result["left_running"] = left[:_MAX_SHOWN]
    notes = _notes(ended, idled=environments.idled(context.task_id))
    if ended.exit_code and _READ_ONLY in shown.text and names_program(shown.text):
        notes.append(_OWN_PROGRAM)
    notes += environments.network_notes(context.task_id)
    return tool_result(with_notes(result, *request.notes, *notes, *refused))


def _is_tried(context: ToolContext) -> bool:
    return context.effects is not None and context.effects.is_tried


def _executed(ready: _Ready) -> tuple[CommandResult, list[str]]:
    """How the command ended, and what the model has to be told if it was tried in a shell of its own and is not kept."""
    context, environment = ready.context, ready.environment

    def run(shell: Environment) -> CommandResult:
        return shell.execute(ready.request.command, **_options(ready))

    tried = trial.isolated(context, environment) if _is_tried(context) else None
    if tried is None:
        return run(environment), []
    with tried:
        ended = run(tried.shell)
        not_kept = trial.settle_isolated(context, tried)
    if not not_kept and ended.cwd != environment.cwd:
        environment.execute(f"cd {shlex.quote(ended.cwd)}")
    # What it had left running has ended.
    return ended._replace(cwd=environment.cwd, left_running=(), changed=not not_kept), not_kept


def _end_left(left: list[JsonDict], number: int, environment: Environment, context: ToolContext) -> None:
    for entry in left:
        if "session_id" in entry:
            cast("ProcessTable", context.processes).get(entry["session_id"]).kill()
    if left:
        cast("LocalEnvironment", environment).end_call(number)


def _notes(ended: CommandResult, *, idled: bool) -> list[str]:
    notes = []
    if idled:
        notes.append("this is a new shell: the previous one was closed after being idle for long")
    if ended.restarted is not None:
        notes.append(str(ended.restarted))
    if len(ended.left_running) > _MAX_SHOWN:
        notes.append(
            f"it left {len(ended.left_running)} processes running, and not all are named here; process lists them"
        )
    return notes


def _adopted(
    left: tuple[LeftRunning, ...], environment: Environment, context: ToolContext, environments: TaskEnvironments
) -> list[JsonDict]:
    """What the command left running, each with the id that `process` takes."""
    named: list[JsonDict] = []
    for one in left[:_MAX_ADOPTED]:
        entry: JsonDict = {"pid": one.pid, "command": one.command_line}
        if context.processes is not None:
            try:
                entry["session_id"] = cast("ProcessTable", context.processes).add(
                    environment.adopt(one),
                    task_id=context.task_id,
                    session_id=context.session_id,
                    settings=environments.settings(context.task_id),
                )
            except (ToolError, OSError) as error:  # it runs all the same, and the command has ended well
                log.warning("process %d, which a command left running, is not tracked: %s", one.pid, error)
        named.append(entry)
    return named


def start(request: Request, context: ToolContext) -> str:
    """Start a background process and return its id."""
    tracked = _started(request, context, _table(context))
    result: JsonDict = {"output": "", "session_id": tracked.id, "pid": tracked.record.pid, "status": "running"}
    if context.effects is not None and context.effects.number:
        result["call"] = context.effects.number
    note = f"it runs in the background; process with session_id {tracked.id} looks after it"
    return tool_result(with_notes(result, *request.notes, note))


def run_on_terminal(request: Request, context: ToolContext, environments: TaskEnvironments) -> str:
    """Return how the command ended, or how to continue when it waits for input or takes longer."""
    table = _table(context)
    tracked = _started(request, context, table)
    waited = wait(tracked, request.timeout, context.cancel)
    is_running = waited.status.state.value == "running"
    if is_running and not context.cancel.cancelled:
        why = "waits for input" if waited.waits_for_input else f"still runs after {request.timeout:g} s"
        note = f"it {why}; go on with process and session_id {tracked.id}: write, submit, wait or kill"
        screen = environments.masker(tracked.screen().text).rstrip()
        result: JsonDict = {"output": screen, "session_id": tracked.id, "status": "running"}
        if waited.waits_for_input:
            result["waiting_for_input"] = True
        return tool_result(with_notes(result, *request.notes, note))
    if is_running:
        tracked.use(lambda process: process.kill(grace=_KILL_SECONDS))
    code = CANCELLED_EXIT_CODE if is_running else waited.status.exit_code
    with capture_of(request, context, environments) as capture:
        printed = tracked.tail(_MAX_LOG_BYTES).data
        shown = capture.shown(Output(printed, b"", len(printed)), code)
    if code is None:
        raise ToolFailed(f"it is unknown how the command ended: {waited.status.reason}", output=shown.text)
    result = result_of(request.command, code, shown) | (_CANCELLED if is_running else {})
    table.forget(tracked.id)
    number = context.effects.number if context.effects is not None else 0
    refused = held_calls(environments.of(context.task_id)).refused(number)
    return tool_result(with_notes(result, *request.notes, *refused))


def _started(request: Request, context: ToolContext, table: ProcessTable) -> TrackedProcess:
    environments = environments_of(context)
    environment = environments.of(context.task_id)
    wanted = Wanted(
        call=call_number(context, environment, request.command, environments.cwd(context.task_id)),
        cwd=request.workdir,
        size=_SIZE if request.pty else None,
        notify_on_complete=request.notify_on_complete,
        watch_patterns=request.watch_patterns,
    )
    started = table.start(request.command, task_id=context.task_id, session_id=context.session_id, wanted=wanted)
    has_run(context, environment, changed=False, left=[request.command])
    return started


def _table(context: ToolContext) -> ProcessTable:
    if context.processes is None:
        raise ToolFailed("this runtime keeps no background processes; run the command without background and pty")
    return cast("ProcessTable", context.processes)


def result_of(command: str, exit_code: int, shown: Shown) -> JsonDict:
    """Its output and exit code; for a failure also an error, and what the code means where that is not obvious."""
    answer: JsonDict = {"output": shown.text, "exit_code": exit_code}
    if shown.stored is not None:
        answer["stored"] = shown.stored
    if exit_code == 0:
        return answer
    known = meaning(command, exit_code, printed=bool(shown.text))
    if known is None or known.is_failure:
        answer |= {"error": f"the command failed with exit code {exit_code}", "error_type": "command_failed"}
    if known is not None:
        answer["meaning"] = known.text
    return answer


def timed_out(seconds: float) -> JsonDict:
    why = f"the command timed out after {seconds:g} s and was ended with all that it had started"
    return {"error": f"{why}; give it a longer timeout, or run it with background", "error_type": "timeout"}


def with_notes(answer: JsonDict, *notes: str) -> JsonDict:
    return {**answer, "note": "; ".join(notes)} if notes else answer


class Meaning(NamedTuple):
    """`is_failure`: whether the command did not do what it was run for. That grep finds nothing is an answer."""

    text: str
    is_failure: bool = True


_CANCELLED = {"error": "the command was cancelled, and ended with all that it had started", "error_type": "cancelled"}

# Programs with the same codes share a line. Only what a reader would not guess.
_KNOWN = json.loads(Path(__file__).with_name("exit_codes.json").read_text())

BY_PROGRAM = {
    program: {int(code): Meaning(*known) for code, known in codes.items()}
    for programs, codes in _KNOWN["by_program"].items()
    for program in programs.split()
}

BY_CODE: dict[int, Meaning] = {
    126: Meaning("it was found but cannot be run: not executable, for another machine, or its arguments are too long"),
    127: Meaning("a command was not found; check its spelling, or install it"),
}

_SIGNALS: dict[int, str] = {signal.Signals[name]: text for name, text in _KNOWN["by_signal"].items()}

# What is not a program's name: quoted words, substitutions, comments. Escapes first, so that an escaped quote opens nothing.
_OPAQUE = re.compile(r"\\.|'[^']*'|\"(?:[^\"\\]|\\.)*\"|\$\((?:[^()]|\([^()]*\))*\)|`[^`]*`|(?<!\S)#[^\n]*", re.DOTALL)

_PIPELINES = re.compile(r"(\|\||&&|[;\n]|(?<![>&|<])&(?![>&]))")

# Words that run the one after them, with their options.
_BEFORE = re.compile(
    r"\A\s*(?:(?:[A-Za-z_]\w*=\S*|!|time|exec|command|builtin|nice|nohup|sudo|doas|env|stdbuf|uv\s+run|poetry\s+run|npx"
    r"|python3?\s+-m|then|do|else|[{(])(?:\s+-\S+)*\s*(?<=[\s({]))*"
)


def meaning(command: str, code: int, *, printed: bool = False) -> Meaning | None:
    """What a command's exit code says, if there is something to say. `printed`: whether there was any output."""
    if code == 0:
        return None
    programs = _candidates(command)
    for program in programs:
        known = BY_PROGRAM.get(program, {}).get(code)
        if known is not None:
            # In `cd x && grep y` it may have been the other one that failed; that one would have said why.
            is_failure = known.is_failure or (printed and len(programs) > 1)
            return Meaning(f"{program}: {known.text}", is_failure)
    if code in BY_CODE:
        return BY_CODE[code]
    if 128 < code < 128 + signal.NSIG:
        return Meaning(_SIGNALS.get(code - 128, f"it was ended by signal {code - 128}"))
    return None


def _candidates(command: str) -> list[str]:
    """The programs that can have given the code: the last one of the last pipeline, and of those joined to it by && or ||."""
    plain = _OPAQUE.sub("_", command).rstrip(" \t\n;)}")
    parts = _PIPELINES.split(plain)
    programs = [_program(parts[-1])]
    for index in range(len(parts) - 2, 0, -2):
        if parts[index] not in ("&&", "||"):
            break
        programs.append(_program(parts[index - 1]))
    return programs


def _program(pipeline: str) -> str:
    last = pipeline.rpartition("|")[2].removeprefix("&")
    words = _BEFORE.sub("", last, count=1).split()
    return words[0].rpartition("/")[2] if words else ""
