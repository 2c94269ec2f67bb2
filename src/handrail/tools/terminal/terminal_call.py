"""Run a call of `terminal`: in the task's shell here, in the background or on a terminal in `background`."""

from __future__ import annotations

import logging
import os
import shlex
from typing import TYPE_CHECKING, cast

from ...core.outcome import tool_result
from ...effects import trial
from ...effects.open_call import call_number, has_run, stopped
from ...environments.base import CommandResult, Environment, LeftRunning
from ...environments.command_request import Request, capture_of, environments_of, read_request
from ...environments.held_calls import held_calls
from ...environments.protection import names_program
from ...environments.tasks import TaskEnvironments
from ...errors import ToolError
from ...files.task_arguments import everything
from ...processes.table import ProcessTable
from ...protocols import Action, ActionKind
from ...types import JsonDict, Resources, ToolContext
from . import answer, background

if TYPE_CHECKING:
    from ...environments.local_environment import LocalEnvironment
    from ...environments.output import OutputSink

log = logging.getLogger(__name__)

_MAX_SHOWN, _MAX_ADOPTED = 20, 100
_READ_ONLY = "Read-only file system"
_OWN_PROGRAM = (
    "Handrail itself runs from there, so commands cannot change it; install into a virtual environment of the project's own "
    "(python3 -m venv .venv && .venv/bin/pip install ...), or a program with pipx"
)


def terminal(args: JsonDict, *, context: ToolContext | None = None, **_: object) -> str:
    environments = environments_of(context)
    assert context is not None
    request = read_request(args, environments)
    environments.begin_call(context)
    if args.get("background"):
        return background.start(request, context)
    if request.pty:
        return background.run_on_terminal(request, context, environments)
    return _run(request, context, environments)


def actions(args: JsonDict, context: ToolContext) -> list[Action]:
    """The command, where it would run, and what it could reach from there. Starts nothing."""
    environments = environments_of(context)
    environment = environments.of(context.task_id)
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
                "can_try": _can_try(args, environment, context),
            },
        )
    ]


def _can_try(args: JsonDict, environment: Environment, context: ToolContext) -> bool:
    """Whether what it changes can be taken back, and its connections can wait."""
    is_watched = environment.name == "local" and getattr(environment, "effects", None) is not None
    return is_watched and context.effects is not None and not (args.get("background") or args.get("pty"))


def resources(args: JsonDict, context: ToolContext | None = None) -> Resources:  # noqa: ARG001  any command may touch any file
    return Resources(writes=(everything(context),))


def _directory(environments: TaskEnvironments, task_id: str | None, workdir: str | None) -> str:
    cwd = environments.cwd(task_id)
    if not workdir:
        return cwd
    if workdir.startswith("~"):
        return os.path.expanduser(workdir) if environments.has_host_paths(task_id) else workdir
    return os.path.join(cwd, workdir)


def _run(request: Request, context: ToolContext, environments: TaskEnvironments) -> str:
    before = environments.cwd(context.task_id)
    left: list[JsonDict] = []
    with (
        environments.use(context.task_id) as environment,
        capture_of(request, context, environments) as capture,
    ):
        number = call_number(context, environment, request.command, before)
        more: JsonDict = {"call": number} if number else {}
        if request.separate:
            more["separate"] = True
        ended, taken_back = _executed(request, context, environment, capture.sink, more)
        refused = held_calls(environment).refused(number)
        lines = [one.command_line for one in ended.left_running]
        number = has_run(context, environment, changed=ended.changed, left=lines)
        if ended.left_running:
            left = _adopted(ended.left_running, environment, context, environments)
        shown = capture.shown(ended.output, ended.exit_code)
        stderr = capture.shown_stderr(ended.stderr)
    taken_back = taken_back or stopped(context, environment, more.get("call", 0))
    if not taken_back:
        taken_back = trial.settle(context, number, lambda: _end_left(left, number, environment, context))
    result = answer.ended(request.command, ended.exit_code, shown)
    if request.separate:
        result["stderr"] = stderr
    if ended.timed_out:
        result |= answer.timed_out(request.timeout)
    elif taken_back:
        result |= {"error": "; ".join([*refused, *taken_back]), "error_type": "denied"}
        refused = []
    elif ended.cancelled:
        result |= answer.cancelled()
    if number:
        result["call"] = number
    if ended.cwd != before:
        result["cwd"] = ended.cwd
    if left:
        result["left_running"] = left[:_MAX_SHOWN]
    notes = _notes(ended, idled=environments.idled(context.task_id))
    if ended.exit_code and _READ_ONLY in shown.text and names_program(shown.text):
        notes.append(_OWN_PROGRAM)
    notes += environments.network_notes(context.task_id)
    return tool_result(answer.with_notes(result, *request.notes, *notes, *refused))


def _executed(
    request: Request, context: ToolContext, environment: Environment, sink: OutputSink, more: JsonDict
) -> tuple[CommandResult, list[str]]:
    """How the command ended, and what the model has to be told if it was tried in a shell of its own and is not kept."""

    def run(shell: Environment) -> CommandResult:
        return shell.execute(
            request.command, cwd=request.workdir, timeout=request.timeout, cancel=context.cancel, output=sink, **more
        )

    tried = trial.isolated(context, environment)
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
