"""Calls of other processes that use this state folder: read from the shared stores, and added to those of this server."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import time
from pathlib import Path

from ..errors import StoreError
from ..store.approvals import ApprovalStore
from ..store.sessions import SessionStore
from ..types import JsonDict
from .event_bus import Bus
from .live_calls import KEPT_CALLS, LiveCalls, shown

log = logging.getLogger(__name__)

_POLL_SECONDS = 0.5
_PAST_SECONDS = 86_400.0
_PAST_BYTES = 1 << 19
_SLACK_SECONDS = 1.0
_CALLS = "SELECT id, session, call_id, tool, arguments, at, seconds, error_type FROM calls"


class SharedCalls:
    """An agent's calls are in the store of sessions when they have ended. The history of actions has one line when an action is
    allowed or denied: it shows that a call runs, and it is all there is of a call outside of a session."""

    def __init__(
        self, live: LiveCalls, bus: Bus, sessions: SessionStore, approvals: ApprovalStore, history: Path
    ) -> None:
        self._live, self._bus, self._sessions, self._approvals, self._history = live, bus, sessions, approvals, history
        self._last_call, self._last_update, self._version = -1, time.time(), -1
        self._inode, self._offset = 0, 0
        self._running: dict[str, tuple[JsonDict, int]] = {}  # with the pid of the process that makes the call

    async def run(self) -> None:
        """Runs until cancelled."""
        while True:
            try:
                self.poll()
            except (StoreError, OSError) as error:
                log.warning("calls of other processes cannot be read: %s", error)
            await asyncio.sleep(_POLL_SECONDS)

    def poll(self) -> None:
        for line in self._new_lines():
            self._note_line(*line)
        version = int(self._sessions.rows("PRAGMA data_version")[0][0])
        if version != self._version:
            self._version = version
            self._note_calls()
            for row in self._sessions.rows(
                "SELECT id, updated FROM sessions WHERE kind IN ('main', 'child') AND updated > ? ORDER BY updated",
                (self._last_update,),
            ):
                self._last_update = row["updated"]
                self._bus.publish("session.changed", session=row["id"])
        for key, (call, pid) in list(self._running.items()):
            if not _is_alive(pid):
                del self._running[key]
                seconds = time.time() - call["started"]
                self._live.add({**call, "status": "error", "error_type": "process exited", "seconds": seconds})

    def _note_calls(self) -> None:
        if self._last_call < 0:
            since = (time.time() - _PAST_SECONDS, KEPT_CALLS)
            rows = self._sessions.rows(f"{_CALLS} WHERE at > ? ORDER BY id DESC LIMIT ?", since)[::-1]
            newest = self._sessions.rows("SELECT coalesce(max(id), 0) FROM calls")[0][0]
        else:
            rows = self._sessions.rows(f"{_CALLS} WHERE id > ? ORDER BY id", (self._last_call,))
            newest = rows[-1]["id"] if rows else self._last_call
        self._last_call = newest
        own = self._live.own_ids() if rows else set()
        for row in rows:
            if (row["session"], row["call_id"]) in own:
                continue
            call = {
                "call": self._started_as(row["session"], row["tool"], row["at"], row["seconds"]) or f"s{row['id']}",
                "tool": row["tool"],
                "arguments": shown(json.loads(row["arguments"])),
                "task": None,
                "session": row["session"],
                "started": row["at"],
                "status": "error" if row["error_type"] else "ok",
                "error_type": row["error_type"] or None,
                "seconds": row["seconds"],
                "waited": self._waited(row["session"], row["tool"], row["at"], row["seconds"]),
            }
            self._live.add(call)

    def _started_as(self, session: str, tool: str, at: float, seconds: float) -> str:
        """The running call that this one was."""
        for key, (call, _) in self._running.items():
            is_then = at - _SLACK_SECONDS <= call["started"] <= at + seconds + _SLACK_SECONDS
            if (call["session"], call["tool"]) == (session, tool) and is_then:
                del self._running[key]
                return key
        return ""

    def _waited(self, session: str, tool: str, at: float, seconds: float) -> float:
        if seconds < _SLACK_SECONDS:
            return 0.0
        rows = self._approvals.database.rows(
            "SELECT coalesce(sum(seconds), 0) FROM decisions WHERE session = ? AND tool = ? AND at BETWEEN ? AND ?",
            (session, tool, at, at + seconds + _SLACK_SECONDS),
        )
        return min(seconds, float(rows[0][0]))

    def _new_lines(self) -> list[tuple[str, JsonDict]]:
        """What was added to the history, each line with its own key."""
        try:
            with self._history.open("rb") as file:
                about = os.fstat(file.fileno())
                if about.st_ino != self._inode:  # the first look, or a new file was started
                    self._offset = max(0, about.st_size - _PAST_BYTES) if not self._inode else 0
                    self._inode = about.st_ino
                if about.st_size <= self._offset:
                    return []
                file.seek(self._offset)
                data = file.read()
        except FileNotFoundError:
            return []
        found = []
        for text in data[: data.rfind(b"\n") + 1].splitlines(keepends=True):
            with contextlib.suppress(ValueError):
                found.append((f"h{self._inode}.{self._offset}", json.loads(text)))
            self._offset += len(text)
        return found

    def _note_line(self, key: str, line: JsonDict) -> None:
        pid = line.get("pid", 0)
        if pid == os.getpid() or line["at"] < time.time() - _PAST_SECONDS:
            return
        call = {
            "call": key,
            "tool": line["tool"],
            "arguments": {line["kind"]: line["text"]},
            "task": None,
            "session": line.get("session"),
            "started": line["at"],
        }
        if not call["session"]:
            is_denied = line["verdict"] == "deny"
            ended = {"status": "error" if is_denied else "ok", "error_type": "denied" if is_denied else None}
            self._live.add({**call, **ended})
        elif pid and line["verdict"] != "deny" and _is_alive(pid) and not self._is_known(call):
            self._running[key] = call, pid
            self._bus.publish("call.started", **call)

    def _is_known(self, call: JsonDict) -> bool:
        """A call may need several actions."""
        return any(
            (each["session"], each["tool"]) == (call["session"], call["tool"])
            and call["started"] - each["started"] < _SLACK_SECONDS
            for each, _ in self._running.values()
        )

    def running(self) -> list[JsonDict]:
        return [call for call, _ in self._running.values()]


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
