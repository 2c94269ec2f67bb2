"""Running and finished calls: published as events, and counted."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import statistics
import threading
import time
from collections import deque
from pathlib import Path

from ..base.own_process import start_time
from ..config.paths import make_private
from ..errors import StoreError
from ..runtime.call_reports import FILE, FOLDER, CallHooks, shown
from ..store.approvals import ApprovalStore
from ..store.sessions import SessionStore
from ..types import JsonDict
from .event_bus import Bus

KEPT_CALLS = 2_000
_KEPT_SECONDS = 400
_MINUTES = 24 * 60
log = logging.getLogger(__name__)
_POLL_SECONDS = 0.5
_PAST_SECONDS = 86_400.0
_MAX_FILE_BYTES = 1 << 20
_SLACK_SECONDS = 1.0
_FIELDS = {"call", "tool", "pid"}
_UPDATED = "SELECT id, updated FROM sessions WHERE kind IN ('main', 'child') AND updated > ? ORDER BY updated"
_WAITED = """SELECT coalesce(sum(seconds), 0) FROM (
  SELECT seconds, session, tool, at FROM decisions
  UNION ALL SELECT answered - created, json_extract(question, '$.session_id'), json_extract(question, '$.tool'), created
    FROM requests WHERE state = 'withdrawn'
) WHERE session IS ? AND tool = ? AND at BETWEEN ? AND ?"""
_CALLS = "SELECT id, session, call_id, tool, arguments, at AS started, seconds, error_type, waited FROM calls"


class LiveCalls:
    """The calls of this server, and those that other processes report."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self.hooks = CallHooks(lambda call: bus.publish("call.started", **call), self.add)
        self.since = time.time()  # of the first call that is counted, or of the start
        self._lock = threading.Lock()
        self.ended: deque[JsonDict] = deque(maxlen=KEPT_CALLS)
        self._minutes: dict[int, dict[str, int]] = {}
        self._tools: dict[str, _Tool] = {}

    def add(self, done: JsonDict) -> None:
        """A call has ended, here or in another process. `seconds` is not known of all."""
        with self._lock:
            self.ended.append(done)
            self.since = min(self.since, done.get("started", self.since))
            self._count(done)
        self._bus.publish("call.ended", **done)

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
        median, p95 = statistics.median(ordered), ordered[min(len(ordered) - 1, len(ordered) * 95 // 100)]
        times = {"total": self.total, "waited": self.waited, "p50": median, "p95": p95}
        return {"calls": self.calls, "errors": self.errors, **times}


class SharedCalls:
    """Calls of other processes that use this state folder, added to those of this server.

    They are reported in a file as they start and end. The store of sessions has the earlier calls of agents, and those of
    processes that do not report.
    """

    def __init__(
        self, live: LiveCalls, bus: Bus, sessions: SessionStore, approvals: ApprovalStore, state: Path
    ) -> None:
        self._live, self._bus, self._sessions, self._approvals = live, bus, sessions, approvals
        self._last_call, self._last_update, self._version = -1, time.time(), -1
        self._reports = state / FOLDER / FILE
        self._inode = self._offset = 0
        self._running: dict[str, JsonDict] = {}

    async def run(self) -> None:
        """Runs until cancelled."""
        make_private(self._reports.parent)
        try:
            while True:
                try:
                    self.poll()
                except (StoreError, OSError) as error:
                    log.warning("calls of other processes cannot be read: %s", error)
                await asyncio.sleep(_POLL_SECONDS)
        finally:
            self._reports.unlink(missing_ok=True)  # another server makes it anew

    def poll(self) -> None:
        for call in self._reported():
            call["call"] = key = f"{call['pid']}.{call['call']}"
            if "status" in call:
                self._running.pop(key, None)
                self._live.add({**call, "waited": self._waited(call)} if "started" in call else call)
            else:
                self._running[key] = call
                self._bus.publish("call.started", **call)
        version = int(self._sessions.rows("PRAGMA data_version")[0][0])
        if version != self._version:
            self._version = version
            self._note_calls()
            for row in self._sessions.rows(_UPDATED, (self._last_update,)):
                self._last_update = row["updated"]
                self._bus.publish("session.changed", session=row["id"])
        for key, call in list(self._running.items()):
            if start_time(call["pid"]) is None:
                del self._running[key]
                self._live.add({**call, "status": "error", "error_type": "process exited"})

    def _note_calls(self) -> None:
        if self._last_call < 0:
            since = (time.time() - _PAST_SECONDS, KEPT_CALLS)
            rows = self._sessions.rows(f"{_CALLS} WHERE at > ? ORDER BY id DESC LIMIT ?", since)[::-1]
            self._last_call = self._sessions.rows("SELECT coalesce(max(id), 0) FROM calls")[0][0]
        else:
            rows = self._sessions.rows(f"{_CALLS} WHERE id > ? ORDER BY id", (self._last_call,))
            self._last_call = rows[-1]["id"] if rows else self._last_call
        known = [*self._live.recent(), *self._live.hooks.running(), *self._running.values()] if rows else []
        ids = {(each.get("session"), each["tool_call_id"]) for each in known if "tool_call_id" in each}
        for call in map(dict, rows):
            number, call_id = call.pop("id"), call.pop("call_id")
            if (call["session"], call_id) in ids:
                continue
            status, error = ("error", call["error_type"]) if call["error_type"] else ("ok", None)
            call |= {"call": f"s{number}", "task": None, "status": status, "error_type": error}
            call |= {"arguments": shown(json.loads(call["arguments"])), "waited": call["waited"] or self._waited(call)}
            self._live.add(call)

    def _waited(self, call: JsonDict) -> float:
        if call["seconds"] < _SLACK_SECONDS:
            return 0.0
        until = call["started"] + call["seconds"] + _SLACK_SECONDS
        rows = self._approvals.database.rows(_WAITED, (call["session"], call["tool"], call["started"], until))
        return min(float(call["seconds"]), float(rows[0][0]))

    def _reported(self) -> list[JsonDict]:
        """What other processes have added to the file. It is started anew when it has become long."""
        with os.fdopen(os.open(self._reports, os.O_RDONLY | os.O_CREAT | os.O_CLOEXEC, 0o600), "rb") as file:
            about = os.fstat(file.fileno())
            if about.st_ino != self._inode or about.st_size < self._offset:
                self._inode, self._offset = about.st_ino, 0
            file.seek(self._offset)
            data = file.read()
        whole = data[: data.rfind(b"\n") + 1]
        self._offset += len(whole)
        if self._offset > _MAX_FILE_BYTES and len(whole) == len(data):
            os.truncate(self._reports, 0)
        found = []
        for line in whole.splitlines():
            with contextlib.suppress(ValueError):
                call = json.loads(line)
                if isinstance(call, dict) and call.keys() >= _FIELDS and call["pid"] != os.getpid():
                    found.append(call)
        return found

    def running(self) -> list[JsonDict]:
        return list(self._running.values())
