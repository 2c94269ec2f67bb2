"""Notices about background processes, for a model or a user."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

_COMMAND_SHOWN = 120


class NoticeKind(Enum):
    ENDED = "ended"
    MATCHED = "matched"  # it printed a line that matches
    PAUSED = "paused"  # too many lines matched: the watch resumes when the process is looked at


class Notice(NamedTuple):
    """`text` is the last lines of its output, or those that matched."""

    kind: NoticeKind
    id: str
    command: str
    task_id: str
    session_id: str | None
    text: str
    exit_code: int | None = None
    what: str = ""  # how it ended, or why the watch is paused
    watched_to: int = 0

    def __str__(self) -> str:
        command = self.command if len(self.command) <= _COMMAND_SHOWN else self.command[:_COMMAND_SHOWN] + "…"
        return (
            f"Background process {self.id} ({command}) {self.what}:\n{self.text}"
            if self.text
            else (f"Background process {self.id} ({command}) {self.what}.")
        )
