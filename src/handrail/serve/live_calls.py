"""Running and finished calls: published as events, and counted."""

from __future__ import annotations

import itertools
import threading
import time
from collections import deque
from typing import Any

from ..base.safe_text import safe_error
from ..plugins.hook_manager import HookManager
from ..types import JsonDict
from .event_bus import Bus

PLUGIN = "handrail serve"
_MAX_SHOWN = 2_000
KEPT_CALLS = 2_000
_KEPT_SECONDS = 400
_MINUTES = 24 * 60


class LiveCalls:
    """Hooks around every call of this process. They run on the caller's thread and do very little."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self.since = time.time()  # of the first call that is counted, or of the start
        self._lock = threading.Lock()
        self._numbers = itertools.count(1)
        self._running: dict[tuple[str, str], deque[JsonDict]] = {}
        self.ended: deque[JsonDict] = deque(maxlen=KEPT_CALLS)
        self._minutes: dict[int, dict[str, int]] = {}
        self._tools: dict[str, _Tool] = {}

    def attach(self, hooks: HookManager) -> None:
        hooks.register_hook("pre_tool_call", self._started, plugin=PLUGIN, inline=True, trylast=True)
        hooks.register_hook("post_tool_call", self._ended, plugin=PLUGIN, inline=True)

    def detach(self, hooks: HookManager) -> None:
        hooks.unregister_plugin(PLUGIN)

    def _started(
        self, tool_name: str, args: JsonDict, task_id: str | None, session_id: str | None, tool_call_id: str
    ) -> None:
        call: JsonDict = {
            "call": next(self._numbers),
            "tool": tool_name,
            "arguments": shown(args),
            "task": task_id,
            "session": session_id,
            "tool_call_id": tool_call_id,
            "started": time.time(),
        }
        with self._lock:
            self._running.setdefault((tool_name, f"{task_id} {tool_call_id}"), deque()).append(call)
        self._bus.publish("call.started", **call)

    def _ended(
        self,
        tool_name: str,
        result: Any,
        status: str,
        error_type: str | None,
        duration_ms: float,
        task_id: str | None,
        tool_call_id: str,
    ) -> None:
        key = (tool_name, f"{task_id} {tool_call_id}")
        with self._lock:
            waiting = self._running.get(key)
            call = waiting.popleft() if waiting else {"call": next(self._numbers), "tool": tool_name, "task": task_id}
            if not waiting:
                self._running.pop(key, None)
            text = result if isinstance(result, str) else "[not text]"
            done = {
                **call,
                "status": status,
                "error_type": error_type,
                "seconds": duration_ms / 1000,
                "result": text[-_MAX_SHOWN:],
            }
        self.add(done)

    def add(self, done: JsonDict) -> None:
        """A call has ended, here or in another process. `seconds` is not known of all."""
        with self._lock:
            self.ended.append(done)
            self.since = min(self.since, done.get("started", self.since))
            self._count(done)
        self._bus.publish("call.ended", **done)

    def waited(self, tool: str, task: str | None, session: str | None, seconds: float) -> None:
        """A call has waited so long for an answer."""
        with self._lock:
            for call in (each for calls in self._running.values() for each in calls):
                if (call["tool"], call["task"], call["session"]) == (tool, task, session):
                    call["waited"] = call.get("waited", 0.0) + seconds
                    return

    def own_ids(self) -> set[tuple[str | None, str]]:
        """The calls of this server, by their session and the model's id."""
        calls = [*self.recent(), *self.running()]
        return {(each["session"], each["tool_call_id"]) for each in calls if "tool_call_id" in each}

    def _count(self, done: JsonDict) -> None:
        minute, failed = int((done.get("started", time.time()) + done.get("seconds", 0)) // 60), done["status"] != "ok"
        if minute not in self._minutes:
            newest = max(minute, *self._minutes, 0)
            self._minutes = {each: counts for each, counts in self._minutes.items() if each > newest - _MINUTES}
            self._minutes[minute] = {"calls": 0, "errors": 0, "denied": 0}
        counts = self._minutes[minute]
        counts["calls"] += 1
        counts["errors"] += failed
        counts["denied"] += done["error_type"] == "denied"
        self._tools.setdefault(done["tool"], _Tool()).note(done.get("seconds"), done.get("waited", 0.0), failed)

    def running(self) -> list[JsonDict]:
        with self._lock:
            return [dict(call) for calls in self._running.values() for call in calls]

    def recent(self) -> list[JsonDict]:
        with self._lock:
            return list(self.ended)

    def minutes(self) -> list[JsonDict]:
        with self._lock:
            return [{"minute": minute * 60, **counts} for minute, counts in sorted(self._minutes.items())]

    def tools(self) -> list[JsonDict]:
        with self._lock:
            return [{"tool": name, **tool.summary()} for name, tool in sorted(self._tools.items())]


class _Tool:
    """Durations of the latest calls of one tool, without their waits for an answer."""

    def __init__(self) -> None:
        self.calls = self.errors = 0
        self.total = self.waited = 0.0
        self._last: deque[float] = deque(maxlen=_KEPT_SECONDS)

    def note(self, seconds: float | None, waited: float, failed: bool) -> None:
        self.calls += 1
        self.errors += failed
        if seconds is not None:
            ran = max(0.0, seconds - waited)
            self.total, self.waited = self.total + ran, self.waited + waited
            self._last.append(ran)

    def summary(self) -> JsonDict:
        ordered = sorted(self._last) or [0.0]
        median, p95 = ordered[len(ordered) // 2], ordered[min(len(ordered) - 1, len(ordered) * 95 // 100)]
        times = {"total": self.total, "waited": self.waited, "p50": median, "p95": p95}
        return {"calls": self.calls, "errors": self.errors, **times}


def shown(args: JsonDict) -> JsonDict:
    """Arguments for display: long ones are cut."""
    return {
        name: safe_error(value[:_MAX_SHOWN]) if isinstance(value, str) and len(value) > _MAX_SHOWN else value
        for name, value in args.items()
    }
