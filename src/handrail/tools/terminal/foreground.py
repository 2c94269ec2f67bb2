"""Run a command in the task's shell, and say how it went."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, cast

from ...core.outcome import tool_result
from ...environments.output_capture import capture_of
from ...errors import ToolError
from . import answer

if TYPE_CHECKING:
    from ...environments.base import CommandResult, Environment, LeftRunning
    from ...environments.command_request import Request
    from ...environments.tasks import TaskEnvironments
    from ...processes.table import ProcessTable
    from ...types import JsonDict, ToolContext

log = logging.getLogger(__name__)

_MAX_SHOWN, _MAX_ADOPTED = 20, 100


def run(request: Request, context: ToolContext, environments: TaskEnvironments) -> str:
    """The answer of the tool."""
    before = environments.cwd(context.task_id)
    left: list[JsonDict] = []
    with (
        environments.use(context.task_id) as environment,
        capture_of(request, context, environments) as capture,
    ):
        ended = environment.execute(
            request.command, cwd=request.workdir, timeout=request.timeout, cancel=context.cancel, output=capture.sink
        )
        if ended.left_running:
            left = _adopted(ended.left_running, environment, context, environments)
        shown = capture.shown(ended.output, ended.exit_code)
    told = answer.ended(request.command, ended.exit_code, shown)
    if ended.timed_out:
        told |= answer.timed_out(request.timeout)
    elif ended.cancelled:
        told |= answer.cancelled()
    if ended.cwd != before:
        told["cwd"] = ended.cwd
    if left:
        told["left_running"] = left[:_MAX_SHOWN]
    notes = _notes(ended, idled=environments.idled(context.task_id))
    return tool_result(answer.with_notes(told, *request.notes, *notes))


def _notes(ended: CommandResult, *, idled: bool) -> list[str]:
    notes = []
    if idled:
        notes.append("this is a new shell: the one before was closed, as nobody had used it for long")
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
    """What the command left running, each with an id by which it can be looked after."""
    named: list[JsonDict] = []
    for one in left[:_MAX_ADOPTED]:
        told: JsonDict = {"pid": one.pid, "command": one.command_line}
        if context.processes is not None:
            try:
                told["session_id"] = cast("ProcessTable", context.processes).add(
                    environment.adopt(one),
                    task_id=context.task_id,
                    session_id=context.session_id,
                    settings=environments.settings(context.task_id),
                )
            except (ToolError, OSError) as error:  # it runs all the same, and the command has ended well
                log.warning("process %d, which a command left running, is not looked after: %s", one.pid, error)
        named.append(told)
    return named
