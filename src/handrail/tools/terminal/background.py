"""Run a command beside the task's shell: in the background, or on a terminal of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from ...core.outcome import tool_result
from ...effects.open_call import call_number, has_run
from ...environments.base import CANCELLED_EXIT_CODE
from ...environments.command_request import capture_of, environments_of
from ...environments.held_calls import held_calls
from ...environments.output import Output
from ...errors import ToolFailed
from ...processes.interact import wait
from ...processes.table import ProcessTable, Wanted
from . import answer

if TYPE_CHECKING:
    from ...environments.command_request import Request
    from ...environments.tasks import TaskEnvironments
    from ...processes.tracked import TrackedProcess
    from ...types import JsonDict, ToolContext

# Wide, as programs cut their lines at the terminal's width.
_SIZE = (30, 120)
_MAX_LOG_BYTES = 4 << 20
_KILL_SECONDS = 0.2


def start(request: Request, context: ToolContext) -> str:
    """Start a background process and return its id."""
    tracked = _started(request, context, _table(context))
    result: JsonDict = {"output": "", "session_id": tracked.id, "pid": tracked.record.pid, "status": "running"}
    if context.effects is not None and context.effects.number:
        result["call"] = context.effects.number
    note = f"it runs in the background; process with session_id {tracked.id} looks after it"
    return tool_result(answer.with_notes(result, *request.notes, note))


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
        return tool_result(answer.with_notes(result, *request.notes, note))
    if is_running:
        tracked.use(lambda process: process.kill(grace=_KILL_SECONDS))
    code = CANCELLED_EXIT_CODE if is_running else waited.status.exit_code
    with capture_of(request, context, environments) as capture:
        printed = tracked.tail(_MAX_LOG_BYTES).data
        shown = capture.shown(Output(printed, b"", len(printed)), code)
    if code is None:
        raise ToolFailed(f"it is unknown how the command ended: {waited.status.reason}", output=shown.text)
    result = answer.ended(request.command, code, shown) | (answer.cancelled() if is_running else {})
    table.forget(tracked.id)
    number = context.effects.number if context.effects is not None else 0
    refused = held_calls(environments.of(context.task_id)).refused(number)
    return tool_result(answer.with_notes(result, *request.notes, *refused))


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
