"""Report calls as they start and end: to the server that runs them, or to the consoles that use the same state folder.

A server makes the folder and, while it runs, a file in it. Other processes add a line to that file per start and end of a call.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..base.safe_text import safe_error

if TYPE_CHECKING:
    from ..plugins.hook_manager import HookManager
    from ..types import JsonDict
    from .dispatch import Runtime

FOLDER, FILE = "live", "calls.jsonl"
REPORTS = "call reports"
_MAX_SHOWN = 2_000
_POLL_SECONDS = 1.0
_MAX_FILE_BYTES = 8 << 20  # a server that was killed left it behind

Publish = Callable[["JsonDict"], object]


class CallHooks:
    """Hooks around every call of this process. They run on the caller's thread and do very little."""

    def __init__(self, on_start: Publish, on_end: Publish) -> None:
        self._on_start, self._on_end = on_start, on_end
        self._lock = threading.Lock()
        self._running: dict[int, JsonDict] = {}

    def attach(self, hooks: HookManager) -> None:
        hooks.unregister_plugin(REPORTS)
        hooks.register_hook("pre_tool_call", self._started, plugin=REPORTS, inline=True, trylast=True)
        hooks.register_hook("post_tool_call", self._ended, plugin=REPORTS, inline=True)

    def _started(
        self,
        tool_name: str,
        args: JsonDict,
        task_id: str | None,
        session_id: str | None,
        tool_call_id: str,
        call_number: int,
    ) -> None:
        call: JsonDict = {
            "call": call_number,
            "tool": tool_name,
            "arguments": shown(args),
            "task": task_id,
            "session": session_id,
            "tool_call_id": tool_call_id,
            "started": time.time(),
        }
        with self._lock:
            if (changed := self._running.get(call_number)) is not None:  # by a user, instead of allowing it
                call = {**changed, "arguments": call["arguments"]}
            self._running[call_number] = call
        self._on_start(call)

    def _ended(
        self,
        tool_name: str,
        result: Any,
        status: str,
        error_type: str | None,
        duration_ms: float,
        task_id: str | None,
        call_number: int,
    ) -> None:
        with self._lock:
            call = self._running.pop(call_number, {"call": call_number, "tool": tool_name, "task": task_id})
            _stop_waiting(call)
        text = result if isinstance(result, str) else "[not text]"
        times = {"seconds": duration_ms / 1000, "result": text[-_MAX_SHOWN:]}
        self._on_end({**call, "status": status, "error_type": error_type, **times})

    def asked(self, tool: str, task: str | None, session: str | None, *, is_over: bool = False) -> None:
        """A call waits for an answer from now on, or until now. It may end before that."""
        with self._lock:
            for call in self._running.values():
                if (call["tool"], call["task"], call["session"]) == (tool, task, session) and is_over == (
                    "asked" in call
                ):
                    if is_over:
                        _stop_waiting(call)
                    else:
                        call["asked"] = time.time()
                    return

    def running(self) -> list[JsonDict]:
        with self._lock:
            return [dict(call) for call in self._running.values()]


def _stop_waiting(call: JsonDict) -> None:
    if "asked" in call:
        call["waited"] = call.get("waited", 0.0) + time.time() - call.pop("asked")


def shown(args: JsonDict) -> JsonDict:
    """Arguments for display: long ones are cut."""
    return {
        name: safe_error(value[:_MAX_SHOWN]) if isinstance(value, str) and len(value) > _MAX_SHOWN else value
        for name, value in args.items()
    }


def report_to_consoles(runtime: Runtime, state: Path) -> None:
    """Report the calls of this process to the servers that run now or later: from the first one on, if there was none yet."""
    next_poll = 0.0

    def attach_if_served() -> None:
        nonlocal next_poll
        if (now := time.monotonic()) < next_poll:
            return
        next_poll = now + _POLL_SECONDS
        if (state / FOLDER).is_dir():
            runtime.before_call = None
            report = partial(_add, state / FOLDER / FILE)
            CallHooks(report, report).attach(runtime.hooks)

    runtime.before_call = attach_if_served
    attach_if_served()


def _add(path: Path, call: JsonDict) -> None:
    try:
        file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
    except OSError:  # nobody watches
        return
    try:
        if os.fstat(file).st_size < _MAX_FILE_BYTES:
            line = json.dumps({**call, "pid": os.getpid()}, default=str) + "\n"
            os.write(file, line.encode())
    finally:
        os.close(file)
