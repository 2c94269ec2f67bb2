"""Run a call of `execute_code`: a script in the task's environment.

A Python there is sent our modules, then the script and its tools.
"""

from __future__ import annotations

import marshal
import shlex
import zlib
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from importlib.util import MAGIC_NUMBER
from typing import Any

from ...core.entry import ToolEntry
from ...core.outcome import tool_result
from ...effects.open_call import call_number, has_run
from ...environments.base import CANCELLED_EXIT_CODE, TIMEOUT_EXIT_CODE, BackgroundProcess
from ...environments.command_request import Capture, environments_of
from ...environments.tasks import TaskEnvironments
from ...errors import InvalidArguments, ToolFailed
from ...files.task_arguments import everything
from ...protocols import Action, ActionKind
from ...types import JsonDict, Resources, ToolContext
from .channel import MAX_FRAME_BYTES, Listener
from .script_requests import Ended, Limits, ScriptServer
from .tool import callable_from_code

# An unread call must fit into the log of the process.
_MAX_CALL_BYTES = MAX_FRAME_BYTES // 2
_KILL_GRACE_SECONDS = 0.5
# More than the model is shown, however little is stored.
_MIN_OUTPUT_BYTES = 1 << 20
_MODULES = ("script", "supervisor")
# Reads a length and a bundle from its standard input and makes modules of it. The bundle is a Python literal: importing json
# would take as long as Python itself takes to start. For a Python of the runtime's own version the modules are compiled
# already, which halves the rest.
_BOOT = """
import os, sys
if sys.version_info < (3, 8):
    sys.exit('python3 is %d.%d here, and 3.8 or newer is needed' % sys.version_info[:2])
def take(n):
    b = b''
    while len(b) < n:
        c = os.read(0, n - len(b))
        if not c: sys.exit('the connection ended before all had come')
        b += c
    return b
Module = type(sys)
bundle = eval(take(int(take(9))))
try:
    import marshal, zlib
    compiled = bundle['compiled'][sys.modules['_frozen_importlib_external'].MAGIC_NUMBER]
    modules = marshal.loads(zlib.decompress(bytes.fromhex(compiled)))
except (KeyError, ImportError):
    modules = [(name, compile(text, 'handrail_script_host/' + name, 'exec')) for name, text in bundle['modules']]
package = sys.modules['handrail_script_host'] = Module('handrail_script_host')
package.__path__ = []
for name, code in modules:
    module = sys.modules['handrail_script_host.' + name] = Module('handrail_script_host.' + name)
    module.__package__ = 'handrail_script_host'
    exec(code, module.__dict__)
module.main(bundle['hello'])
"""


def command(python: str) -> str:
    """What the shell runs."""
    return f"exec {shlex.quote(python)} -c {shlex.quote(_BOOT)}"


def payload(hello: JsonDict) -> bytes:
    """What it then reads from its standard input."""
    modules, compiled = _modules()
    content = ascii({"modules": modules, "compiled": {MAGIC_NUMBER: compiled}, "hello": hello}).encode()
    return b"%09d" % len(content) + content


@cache
def _modules() -> tuple[list[tuple[str, str]], str]:
    """Our modules as text, and compiled by this Python."""
    here = files(__package__) / "script_host"
    texts = [(name, (here / f"{name}.py").read_text("utf-8")) for name in _MODULES]
    codes = [(name, compile(text, f"handrail_script_host/{name}", "exec", dont_inherit=True)) for name, text in texts]
    return texts, zlib.compress(marshal.dumps(codes)).hex()


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
        process = environment.background(command(settings.python), **watched)
        try:
            channel = listener.open(process, payload(hello), cancel=context.cancel)
            allowed = frozenset(entry.name for entry in tools)
            ended = ScriptServer(
                channel, capture.sink, context, allowed, Limits(seconds, settings.max_tool_calls)
            ).run()
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
    return tool_result({**answer, **_failure(ended, answer["exit_code"], seconds)})


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
