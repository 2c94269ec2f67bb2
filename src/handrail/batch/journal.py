"""The journal of one attempt, as its worker keeps it: what earlier attempts did is answered as they recorded it.

A finished call returns its recorded result. One that was begun runs again if it only reads, or if all that it could change died
with its worker; else nobody knows whether it was done, and the model is told so. An environment that died is made again by
running the finished calls in it, with the results that they had.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import threading
from collections import Counter
from collections.abc import AsyncIterator
from typing import Any

from ..agent.events import Usage
from ..agent.models.base import CallPiece, Finished, Messages, Piece, StreamingModel, TextPiece
from ..core.outcome import error_outcome
from ..errors import StoreError, UnknownOutcome
from ..protocols import ApprovalRequest
from ..store.ledger import JournalRow, Lease
from ..types import JsonDict, Outcome
from .link import Requests

# The tools that act in the environment of their session.
_IN_ENVIRONMENT = frozenset({"terminal", "file", "code_execution"})
_RETRY_SECONDS = 1.0
_UNKNOWN = "the worker was lost while {tool} ran, and nobody knows whether it was done; look before you do it again"


class Journal:
    """`rebuilds`: the session's environment died with the earlier attempt, and is a new one."""

    def __init__(self, lease: Lease, link: Requests) -> None:
        self.lease, self._link = lease, link
        self.rebuilds = False
        self.is_closed = threading.Event()  # the attempt is given up: nothing more is recorded
        self._asked: set[str] = set()
        self._seen: Counter[str] = Counter()

    def note_question(self, request: ApprovalRequest) -> None:
        self._asked.add(request.tool_call_id)

    def open(self, tool: str, arguments: JsonDict, *, call_id: str, toolset: str, read_only: bool) -> Entry:
        same = _digest([tool, arguments])
        self._seen[same] += 1
        key = f"{same}.{self._seen[same]}"
        row = self.lease.journal.get(key)
        return Entry(
            self, (key, tool, call_id), row, runs_again=row is not None and self._again(row, toolset, read_only)
        )

    def _again(self, row: JournalRow, toolset: str, read_only: bool) -> bool:
        """Whether it runs although an earlier attempt has begun or done it."""
        if toolset == "delegation":  # the calls of a child agent are in this journal too
            return self.rebuilds or not row.result
        is_gone = toolset == "todo" or (self.rebuilds and toolset in _IN_ENVIRONMENT and not row.asked)
        return is_gone or (read_only and not row.result)

    def was_asked(self, call_id: str) -> bool:
        return call_id in self._asked

    def record(self, method: str, *values: Any) -> Any:
        """Send something to the ledger; wait while that is full. Returns its answer. Raises Fenced."""
        while True:
            try:
                return self._link.call(method, self.lease.task, self.lease.attempt, *values)
            except StoreError:
                if self.is_closed.wait(_RETRY_SECONDS):
                    raise


class Entry:
    """One call of this attempt, with its row of an earlier one."""

    def __init__(
        self, journal: Journal, call: tuple[str, str, str], row: JournalRow | None, *, runs_again: bool
    ) -> None:
        self._journal, self._call = journal, call
        self._had: Outcome | None = json.loads(row.result) if row and row.result else None
        self.recorded = None if runs_again else self._had
        if row is not None and not runs_again and self._had is None:
            self.recorded = error_outcome(UnknownOutcome(_UNKNOWN.format(tool=call[1])))

    def begin(self) -> None:
        key, tool, call_id = self._call
        self._journal.record("begin", key, tool, self._journal.was_asked(call_id))

    def end(self, outcome: Outcome) -> Outcome:
        if self._had is not None:
            return self._had
        if not self._journal.is_closed.is_set():
            self._journal.record("end", self._call[0], json.dumps(outcome))
        return outcome


class RecordedModel:
    """A model whose answers are kept until the task is done: another attempt asks nothing that was answered."""

    def __init__(self, model: StreamingModel, journal: Journal) -> None:
        self._model, self._journal = model, journal

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)

    async def stream(self, messages: Messages, tools: Messages) -> AsyncIterator[Piece]:
        key = _digest([self._model.name, [each for each in messages if each.get("role") != "system"]])
        known = self._journal.lease.replies.get(key)
        if known is not None:
            for piece in _pieces(json.loads(known)):
                yield piece
            return
        text: list[str] = []
        calls: dict[int, list[str]] = {}
        async for piece in self._model.stream(messages, tools):
            if isinstance(piece, TextPiece):
                text.append(piece.text)
            elif isinstance(piece, CallPiece):
                had = calls.setdefault(piece.place, ["", "", ""])
                calls[piece.place] = [had[0] or piece.id, had[1] or piece.name, had[2] + piece.arguments]
            elif isinstance(piece, Finished):
                reply = {"text": "".join(text), "calls": list(calls.values()), "end": [piece.usage, piece.cut_off]}
                await asyncio.to_thread(self._journal.record, "keep_reply", key, json.dumps(reply))
            yield piece


def _pieces(reply: JsonDict) -> list[Piece]:
    usage, cut_off = reply["end"]
    calls = [CallPiece(place, *call) for place, call in enumerate(reply["calls"])]
    return [*([TextPiece(reply["text"])] if reply["text"] else []), *calls, Finished(Usage(*usage), cut_off)]


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True, default=repr).encode()).hexdigest()[:24]
