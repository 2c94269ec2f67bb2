"""What `handrail ask` prints: the answer or every event for programs, and what happens meanwhile for people."""

from __future__ import annotations

import json
import re
import sys
import time
from typing import TYPE_CHECKING, TextIO

from ..agent.events import End, Event, Notice, ToolEnded, ToolStarted, TurnEnded
from .call_text import duration, main_argument, shortened
from .output import colours, emit, emit_json, note, paint, say, visible

if TYPE_CHECKING:
    from ..agent.agent import Agent
    from ..types import JsonDict

_WORDS = re.compile(r"(?<=[a-z])(?=[A-Z])")


class Reporter:
    """Hears of one turn. `events` prints each as it happens; people see the calls on stderr unless `quiet`."""

    def __init__(self, agent: Agent, stdout: TextIO, *, events: bool, quiet: bool) -> None:
        self.agent, self._stdout = agent, stdout
        self._events, self._quiet = events, quiet
        self._began = time.monotonic()
        self._abouts: dict[str, str] = {}
        self.calls = 0
        self.denied = 0

    def listen(self, event: Event) -> None:
        if self._events:
            emit(json.dumps(event_view(event, self.agent.session_id), ensure_ascii=False), self._stdout)
        if isinstance(event, ToolStarted):
            registry = self.agent.app.runtime.registry
            self._abouts[event.call_id] = f"{event.emoji} {event.tool} " + main_argument(
                registry, event.tool, event.arguments
            )
        elif isinstance(event, ToolEnded):
            self.calls += 1
            self.denied += event.error_type == "denied"
            self._tell(event)
        elif isinstance(event, Notice) and not self._quiet:
            note(event.text)

    def answer(self, ended: TurnEnded, *, as_json: bool) -> None:
        """The last word, unless the events have said it."""
        if as_json and not self._events:
            emit_json(self._summary(ended), self._stdout)
        elif not self._events and ended.answer and ended.end is End.ANSWERED:
            answer = ended.answer.rstrip("\n")
            emit(visible(answer) if self._stdout.isatty() else answer, self._stdout)
        if ended.end is not End.ANSWERED:
            say(ended.reason or f"stopped: {ended.end.value}")

    def _tell(self, event: ToolEnded) -> None:
        from ..core.outcome import error_of

        if self._quiet:
            return
        failure = error_of(event.result) if event.result else None
        painted = colours(sys.stderr)
        mark = paint("✗", "red", on=painted) if event.error_type else paint("✓", "green", on=painted)
        reason = f" - {shortened(str(failure['error']), 100)}" if failure else ""
        about = self._abouts.pop(event.call_id, event.tool).rstrip()
        note(f"{about} ({duration(event.seconds * 1000)}){reason}", mark=mark)

    def _summary(self, ended: TurnEnded) -> JsonDict:
        return {
            "answer": ended.answer,
            "end": ended.end.value,
            "reason": ended.reason,
            "session_id": self.agent.session_id,
            "model": self.agent.models[0].name,
            "calls": self.calls,
            "denied": self.denied,
            "model_calls": ended.model_calls,
            "usage": ended.usage._asdict(),
            "seconds": round(time.monotonic() - self._began, 3),
        }


def event_view(event: Event, session_id: str) -> JsonDict:
    """An event for programs: its name in words, then its fields."""
    fields = event._asdict()
    if isinstance(event, TurnEnded):
        fields |= {"end": event.end.value, "session_id": session_id}
    if isinstance(fields.get("usage"), tuple):
        fields["usage"] = fields["usage"]._asdict()
    return {"event": _WORDS.sub("_", type(event).__name__).lower(), **fields}
