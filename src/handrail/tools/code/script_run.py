"""Run a call of `execute_code`: a script in the task's environment. A Python there is sent our modules, then the script and its
tools. While it runs its output is collected, its calls are run, and its time is limited."""

import json
import marshal
import shlex
import threading
import time
import zlib
from collections.abc import Sequence
from concurrent.futures import Future, wait
from functools import cache
from importlib.resources import files
from importlib.util import MAGIC_NUMBER
from typing import Any, NamedTuple

from ...base.workers import Lane, pool
from ...core.entry import ToolEntry
from ...core.outcome import to_json, tool_error, tool_result
from ...effects.open_call import call_number, has_run, stopped
from ...environments.base import CANCELLED_EXIT_CODE, TIMEOUT_EXIT_CODE
from ...environments.command_request import Capture
from ...environments.held_calls import held_calls
from ...environments.output import OutputSink
from ...environments.tasks import TaskEnvironments, environments_of
from ...environments.transport.bundle import boot
from ...errors import InvalidArguments, ToolFailed
from ...files.task_arguments import everything
from ...protocols import Action, ActionKind
from ...types import CancelToken, JsonDict, Resources, Toolbox, ToolContext
from .channel import MAX_FRAME_BYTES, Channel, Listener, ScriptGone
from .tool import callable_from_code

# An unread call must fit into the log of the process.
_MAX_CALL_BYTES = MAX_FRAME_BYTES // 2
_KILL_GRACE_SECONDS = 0.5
# More than the model is shown, however little is stored.
_MIN_OUTPUT_BYTES = 1 << 20
_MODULES = ("script", "supervisor")
# Reads a length and a bundle from its standard input. The bundle is a Python literal: importing json would take as long as Python
# itself takes to start. For a Python of the runtime's own version the modules are compiled already, which halves the rest.
_BOOT = boot(
    "handrail_script_host",
    """
bundle = eval(take(int(take(9))))
try:
    import marshal, zlib
    modules = marshal.loads(zlib.decompress(bytes.fromhex(bundle['compiled'][magic])))
except (KeyError, ImportError):
    modules = [(name, compile(text, 'handrail_script_host/' + name, 'exec')) for name, text in bundle['modules']]
""",
)
_POLL_SECONDS = 0.05
_MAX_PARALLEL_CALLS = 16
_LAST_CALLS_SECONDS = 5.0


class Limits(NamedTuple):
    """`seconds` does not count the time of tools, which have timeouts of their own."""

    seconds: float
    max_calls: int


class Ended(NamedTuple):
    """How the script ended. Without an exit code it was stopped or killed."""

    exit_code: int | None
    timed_out: bool
    cancelled: bool
    calls: int


class ScriptServer:
    """One script. `allowed` are the tools that it may call."""

    def __init__(
        self, channel: Channel, sink: OutputSink, context: ToolContext, allowed: frozenset[str], limits: Limits
    ) -> None:
        assert context.tools is not None
        self._channel, self._sink, self._context = channel, sink, context
        self._tools: Toolbox = context.tools
        self._allowed, self._limits = allowed, limits
        self._stop = CancelToken()
        self._calls = 0
        self.clock = _Clock(limits.seconds)
        self._lane = Lane(pool, _MAX_PARALLEL_CALLS)
        self._workers: set[Future[None]] = set()

    def run(self) -> Ended:
        """Serve until the script ends, times out or is cancelled. Its process may still run then."""
        forget = self._stop.link(self._context.cancel)
        exit_code = None
        try:
            while exit_code is None and not self._stop.cancelled and not self.clock.is_used_up():
                for kind, number, data in self._channel.frames(_POLL_SECONDS):
                    if kind == b"X":
                        exit_code = int(data)
                    else:
                        self._take(kind, number, data)
        except ScriptGone:
            pass
        finally:
            forget()
            self._stop.cancel("the script has ended")
            workers = tuple(self._workers)
            wait([worker for worker in workers if not worker.cancel()], _LAST_CALLS_SECONDS)
        cancelled = self._context.cancel.cancelled
        return Ended(exit_code, exit_code is None and self.clock.is_used_up() and not cancelled, cancelled, self._calls)

    def _take(self, kind: bytes, number: int, data: bytes) -> None:
        if kind == b"O":
            self._sink.feed(data)
        elif kind == b"S":
            self._sink.feed(b"\n[... %d bytes were left out ...]\n" % int(data))
        elif kind == b"C":
            self._calls += 1
            self.clock.pause()
            self._workers.add(worker := self._lane.submit(self._answer, number, self._calls, data))
            worker.add_done_callback(self._workers.discard)

    def _answer(self, line: int, number: int, data: bytes) -> None:
        outcome = self._outcome(number, data)
        self.clock.resume()
        text = outcome if isinstance(outcome, str) else to_json(outcome)
        self._channel.send(b"R", line, text.encode("utf-8", "replace"))

    def _outcome(self, number: int, data: bytes) -> Any:
        try:
            call = json.loads(data)
            name, arguments = call["tool"], call["arguments"]
        except (ValueError, KeyError, TypeError, RecursionError):
            return tool_error("this is not a tool call", error_type="invalid_arguments")
        if name not in self._allowed:
            return tool_error(
                f"{str(name)[:100]} is not a tool that scripts were given; these are: {', '.join(sorted(self._allowed))}",
                error_type="unknown_tool",
            )
        if number > self._limits.max_calls:
            return tool_error(
                f"a script may call tools {self._limits.max_calls} times, and this one has; print what you have and exit",
                error_type="too_many_calls",
            )
        return self._tools.call(name, arguments, cancel=self._stop, number=number)


class _Clock:
    """Counts the seconds in which no tool runs. Several may run in parallel."""

    def __init__(self, seconds: float) -> None:
        self._lock = threading.Lock()
        self._left, self._since, self._running = seconds, time.monotonic(), 0

    def pause(self) -> None:
        with self._lock:
            if self._running == 0:
                self._left -= time.monotonic() - self._since
            self._running += 1

    def resume(self) -> None:
        with self._lock:
            self._running -= 1
            if self._running == 0:
                self._since = time.monotonic()

    def is_used_up(self) -> bool:
        with self._lock:
            used = 0.0 if self._running else time.monotonic() - self._since
            return self._left <= used


def payload(hello: JsonDict) -> bytes:
    """What Python then reads from its standard input."""
    modules, compiled = _modules()
    content = ascii({"modules": modules, "compiled": {MAGIC_NUMBER: compiled}, "arguments": hello}).encode()
    return b"%09d" % len(content) + content


@cache
def _modules() -> tuple[list[tuple[str, str]], str]:
    """Our modules as text, and compiled by this Python."""
    here = files(__package__) / "script_host"
    texts = [(name, (here / f"{name}.py").read_text("utf-8")) for name in _MODULES]
    codes = [(name, compile(text, f"handrail_script_host/{name}", "exec", dont_inherit=True)) for name, text in texts]
    return texts, zlib.compress(marshal.dumps(codes)).hex()


def execute_code(args: JsonDict, *, context: ToolContext, **_: object) -> str:
    environments = environments_of(context)
    environments.begin_call(context)
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


def resources(args: JsonDict, context: ToolContext) -> Resources:  # noqa: ARG001  a script may touch any file
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
        command = f"exec {shlex.quote(settings.python)} -c {shlex.quote(_BOOT)}"
        process = environment.background(command, **watched)
        try:
            channel = listener.open(process, payload(hello), cancel=context.cancel)
            allowed = frozenset(entry.name for entry in tools)
            limits = Limits(seconds, settings.max_tool_calls)
            server = ScriptServer(channel, capture.sink, context, allowed, limits)
            held_calls(environment).stop_clock(number, server.clock)
            ended = server.run()
        finally:
            code_of_process = process.kill(grace=_KILL_GRACE_SECONDS).exit_code  # with everything that it started
            process.forget()
            has_run(context, environment, changed=True)  # what it has changed is seen in the journal
            refused = held_calls(environment).refused(number)
            taken_back = stopped(context, environment, number)
        shown = capture.shown(capture.sink.output())
    exit_code, failure = _ending(ended, code_of_process, seconds)
    answer: JsonDict = {"output": shown.text, "exit_code": exit_code, "tool_calls": ended.calls}
    if shown.stored is not None:
        answer["stored"] = shown.stored
    if notes := [*refused, *environments.network_notes(context.task_id)]:
        answer["note"] = "; ".join(notes)
    if taken_back:
        failure = {"error": "; ".join([*refused, *taken_back]), "error_type": "denied"}
    return tool_result({**answer, **failure})


def _parameters(entry: ToolEntry) -> list[str]:
    """The names of a tool's arguments, the required ones first."""
    schema = entry.schema["parameters"]
    required: Any = schema.get("required", ())
    return sorted(schema.get("properties", {}), key=lambda name: name not in required)


def _ending(ended: Ended, of_process: int | None, seconds: float) -> tuple[int, JsonDict]:
    """The exit code, and the error of a script that failed."""
    if ended.cancelled:
        why = "the script was cancelled, and ended with all that it had started"
        return CANCELLED_EXIT_CODE, {"error": why, "error_type": "cancelled"}
    if ended.timed_out:
        why = f"the script timed out after {seconds:g} s, not counting the time of its tools"
        error = f"{why}; do less in one script, or give it a longer timeout"
        return TIMEOUT_EXIT_CODE, {"error": error, "error_type": "timeout"}
    if ended.exit_code is None:
        return of_process or 1, {"error": "the script's process was killed", "error_type": "tool_failed"}
    if ended.exit_code:
        error = f"the script failed with exit code {ended.exit_code}"
        return ended.exit_code, {"error": error, "error_type": "script_failed"}
    return 0, {}
