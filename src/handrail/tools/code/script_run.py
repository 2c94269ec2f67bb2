"""Run a call of `execute_code`: a script in the task's environment."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...core.entry import ToolEntry
from ...core.outcome import tool_result
from ...effects.open_call import call_number, has_run
from ...environments.base import CANCELLED_EXIT_CODE, TIMEOUT_EXIT_CODE, BackgroundProcess
from ...environments.command_request import Capture, environments_of
from ...environments.held_calls import held_calls
from ...environments.tasks import TaskEnvironments
from ...errors import InvalidArguments, ToolFailed
from ...files.task_arguments import everything
from ...protocols import Action, ActionKind
from ...types import JsonDict, Resources, ToolContext
from . import bundle
from .channel import MAX_FRAME_BYTES, Listener
from .script_requests import Ended, Limits, ScriptServer
from .tool import callable_from_code

# An unread call must fit into the log of the process.
_MAX_CALL_BYTES = MAX_FRAME_BYTES // 2
_KILL_GRACE_SECONDS = 0.5
# More than the model is shown, however little is stored.
_MIN_OUTPUT_BYTES = 1 << 20


def execute_code(args: JsonDict, *, context: ToolContext | None = None, **_: object) -> str:
    environments = environments_of(context)
    assert context is not None
    if context.tools is None:
        raise ToolFailed("this runtime lets no tool call others; use the runtime's own dispatch")
    return _run(args, context, environments, callable_from_code(context.tools.entries()))


def actions(args: JsonDict, context: ToolContext) -> list[Action]:
    """The script, where it would run, and what it could reach from there. Its calls are judged one by one."""
    environments = environments_of(context)
    environment = environments.of(context.task_id)
    return [
        Action(
            ActionKind.CODE,
            args["code"],
            cwd=environments.cwd(context.task_id),
            environment=environment.name,
            isolated=environment.isolated,
            reaches_host=environment.reaches_host,
            details={"language": "python", "files": environments.readable_files(context.task_id)},
        )
    ]


def resources(args: JsonDict, context: ToolContext | None = None) -> Resources:  # noqa: ARG001  a script may touch any file
    return Resources(writes=(everything(context),))


def _run(args: JsonDict, context: ToolContext, environments: TaskEnvironments, tools: Sequence[ToolEntry]) -> str:
    settings = environments.config.code
    code = args["code"]
    if not code.strip():
        raise InvalidArguments("code is empty; give Python source", argument="code")
    seconds = min(float(args.get("timeout") or settings.timeout), settings.max_timeout)
    with (
        environments.use(context.task_id) as environment,
        Capture(context, environments.masker, environments.config.terminal) as capture,
        Listener(with_socket=environments.has_host_paths(context.task_id)) as listener,
    ):
        hello = {
            "token": listener.token,
            "socket": listener.path,
            "code": code,
            "tools": {entry.name: _parameters(entry) for entry in tools},
            "max_output_bytes": max(environments.config.terminal.max_stored_bytes, _MIN_OUTPUT_BYTES),
            "max_call_bytes": _MAX_CALL_BYTES,
        }
        number = call_number(context, environment, code, environments.cwd(context.task_id))
        watched: JsonDict = {"call": number} if number else {}
        process = environment.background(bundle.command(settings.python), **watched)
        try:
            channel = listener.open(process, bundle.payload(hello), cancel=context.cancel)
            allowed = frozenset(entry.name for entry in tools)
            limits = Limits(seconds, settings.max_tool_calls)
            server = ScriptServer(channel, capture.sink, context, allowed, limits)
            held_calls(environment).stop_clock(number, server.clock)
            ended = server.run()
        finally:
            code_of_process = _end(process)
            has_run(context, environment, changed=True)  # what it has changed is seen in the journal
        shown = capture.shown(capture.sink.output())
    answer: JsonDict = {
        "output": shown.text,
        "exit_code": _exit_code(ended, code_of_process),
        "tool_calls": ended.calls,
    }
    if shown.stored is not None:
        answer["stored"] = shown.stored
    refused = held_calls(environment).refused(number)
    notes = {"note": "; ".join(refused)} if refused else {}
    return tool_result({**answer, **_failure(ended, answer["exit_code"], seconds), **notes})


def _parameters(entry: ToolEntry) -> list[str]:
    """The names of a tool's arguments, the required ones first."""
    schema = entry.schema["parameters"]
    required: Any = schema.get("required", ())
    return sorted(schema.get("properties", {}), key=lambda name: name not in required)


def _end(process: BackgroundProcess) -> int | None:
    """End the script and everything that it started."""
    status = process.kill(grace=_KILL_GRACE_SECONDS)
    process.forget()
    return status.exit_code


def _exit_code(ended: Ended, of_process: int | None) -> int:
    if ended.cancelled:
        return CANCELLED_EXIT_CODE
    if ended.timed_out:
        return TIMEOUT_EXIT_CODE
    if ended.exit_code is not None:
        return ended.exit_code
    return of_process or 1


def _failure(ended: Ended, exit_code: int, seconds: float) -> JsonDict:
    if ended.cancelled:
        return {"error": "the script was cancelled, and ended with all that it had started", "error_type": "cancelled"}
    if ended.timed_out:
        why = f"the script timed out after {seconds:g} s, not counting the time of its tools"
        return {"error": f"{why}; do less in one script, or give it a longer timeout", "error_type": "timeout"}
    if ended.exit_code is None:
        return {"error": "the script's process was killed", "error_type": "tool_failed"}
    if exit_code:
        return {"error": f"the script failed with exit code {exit_code}", "error_type": "script_failed"}
    return {}
