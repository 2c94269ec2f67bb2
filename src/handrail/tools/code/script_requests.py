"""Serve a running script: collect its output, run its calls, limit its time."""

from __future__ import annotations

import json
import threading
import time
from collections import deque
from concurrent.futures import Future, wait
from typing import TYPE_CHECKING, Any, NamedTuple

from ...base.workers import pool
from ...core.outcome import to_json, tool_error
from ...types import CancelToken, Toolbox, ToolContext
from .channel import Channel, ScriptGone

if TYPE_CHECKING:
    from ...environments.output import OutputSink

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


class _Call(NamedTuple):
    line: int
    number: int
    data: bytes


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
        self._lock = threading.Lock()
        self._waiting: deque[_Call] = deque()
        self._workers: set[Future[None]] = set()
        self._running = 0

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
            with self._lock:
                self._waiting.clear()
            wait(self._workers, _LAST_CALLS_SECONDS)
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
            with self._lock:
                self._waiting.append(_Call(number, self._calls, data))
                if self._running == _MAX_PARALLEL_CALLS:
                    return
                self._running += 1
            self._workers.add(worker := pool.submit(self._work))
            worker.add_done_callback(self._workers.discard)

    def _work(self) -> None:
        """Run waiting calls until none is left."""
        while True:
            with self._lock:
                if not self._waiting:
                    self._running -= 1
                    return
                call = self._waiting.popleft()
            outcome = self._outcome(call.number, call.data)
            self.clock.resume()
            text = outcome if isinstance(outcome, str) else to_json(outcome)
            self._channel.send(b"R", call.line, text.encode("utf-8", "replace"))

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
