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
_FIELDS = {"at", "tool", "kind", "text", "verdict"}
_UPDATED = "SELECT id, updated FROM sessions WHERE kind IN ('main', 'child') AND updated > ? ORDER BY updated"
_WAITED = "SELECT coalesce(sum(seconds), 0) FROM decisions WHERE session = ? AND tool = ? AND at BETWEEN ? AND ?"
_CALLS = "SELECT id, session, call_id, tool, arguments, at AS started, seconds, error_type FROM calls"


class SharedCalls:
    """An agent's calls are in the store of sessions when they have ended. The history of actions has one line when an action is
    allowed or denied: it shows that a call runs, and it is all there is of a call outside of a session."""

    def __init__(
        self, live: LiveCalls, bus: Bus, sessions: SessionStore, approvals: ApprovalStore, history: Path
    ) -> None:
        self._live, self._bus, self._sessions, self._approvals, self._history = live, bus, sessions, approvals, history
        self._last_call, self._last_update, self._version = -1, time.time(), -1
        self._inode, self._offset = 0, 0
        # By session and tool, with the pid of the process.
        self._running: dict[tuple[str, str], tuple[JsonDict, int]] = {}

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
            for row in self._sessions.rows(_UPDATED, (self._last_update,)):
                self._last_update = row["updated"]
                self._bus.publish("session.changed", session=row["id"])
        for key, (call, _) in [each for each in self._running.items() if not _is_alive(each[1][1])]:
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
        own = self._live.own_ids() if rows else set()
        for call in map(dict, rows):
            number, call_id = call.pop("id"), call.pop("call_id")
            if (call["session"], call_id) in own:
                continue
            begun, _ = self._running.pop((call["session"], call["tool"]), ({"call": f"s{number}"}, 0))
            status = "error" if call["error_type"] else "ok"
            call |= {"call": begun["call"], "task": None, "status": status, "error_type": call["error_type"] or None}
            call |= {"arguments": shown(json.loads(call["arguments"])), "waited": self._waited(call)}
            self._live.add(call)

    def _waited(self, call: JsonDict) -> float:
        if call["seconds"] < _SLACK_SECONDS:
            return 0.0
        until = call["started"] + call["seconds"] + _SLACK_SECONDS
        rows = self._approvals.database.rows(_WAITED, (call["session"], call["tool"], call["started"], until))
        return min(float(call["seconds"]), float(rows[0][0]))

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
        if not isinstance(line, dict) or not line.keys() >= _FIELDS:
            return
        pid = line.get("pid", 0)
        if pid == os.getpid() or line["at"] < time.time() - _PAST_SECONDS:
            return
        session, is_denied = line.get("session"), line["verdict"] == "deny"
        call = {"call": key, "tool": line["tool"], "task": None, "session": session, "started": line["at"]}
        call["arguments"] = {line["kind"]: line["text"]}
        if not session:
            status, error = ("error", "denied") if is_denied else ("ok", None)
            self._live.add({**call, "status": status, "error_type": error})
        elif pid and not is_denied and (session, line["tool"]) not in self._running and _is_alive(pid):
            self._running[session, line["tool"]] = call, pid  # a call may need several actions
            self._bus.publish("call.started", **call)

    def running(self) -> list[JsonDict]:
        return [call for call, _ in self._running.values()]


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except OSError as error:
        return isinstance(error, PermissionError)
    return True
