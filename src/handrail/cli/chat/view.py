"""An agent's events on the screen: answers as they are written, calls as they run, notices, what a child agent does."""

from __future__ import annotations

import textwrap
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence

from rich.text import Text

from ...agent import events
from ...core.registry import ToolRegistry
from ...protocols import TodoItem
from ...store.sessions import SessionInfo, SessionStore
from ...types import JsonDict
from ..call_text import TODO_MARKS, calls_of, counted, main_text, shortened
from ..output import visible
from .calls import Call, seconds, spin
from .screen import Screen
from .type_ahead import COMMAND_SIGNS, TypedAhead

_ROWS_FOR_THE_REST = 8
_TODO_LINES = 6
_STYLES = {status: "" if status == "in_progress" else "dim" for status in TODO_MARKS}


class View:
    """Receives a turn's events by `listen`, in the agent's thread; `draw` is called regularly in another."""

    def __init__(self, screen: Screen, registry: ToolRegistry, child: OpenChild) -> None:
        self.screen, self._registry, self.child = screen, registry, child
        self._lock = threading.RLock()
        self._calls: dict[str, Call] = {}
        self._count = 0
        self._answer = Answer(lambda part: screen.markdown(part, self._lines(), end="\n"))
        self._thought = Thought()
        self.shows_thoughts = True
        self.ahead: TypedAhead | None = None  # what is typed meanwhile
        self._since = 0.0
        self._status, self._is_stopping = "", False
        self.todos: Callable[[], Sequence[TodoItem]] = lambda: ()
        self.status_line: Callable[[], str] = lambda: ""

    def begin(self, status: str) -> None:
        """A turn begins."""
        with self._lock:
            self._since, self._status, self._count, self._is_stopping = time.monotonic(), status, 0, False
            self._calls.clear()

    def listen(self, event: events.Event) -> None:
        with self._lock:
            self._show(event)

    def stopping(self) -> None:
        with self._lock:
            self._status, self._is_stopping = "stopping; press Ctrl-C again to leave", True

    def draw(self) -> None:
        with self._lock:
            self.screen.below(self._lines())

    def _lines(self) -> list[Text]:
        now = time.monotonic()
        columns, rows = self.screen.size
        # Not more than half of the rows: should a narrower window wrap each line, none is pushed out of it for good.
        tail = self._answer.tail(min(columns - 2, self.screen.width), max(3, rows // 2 - 3))
        lines = [Text(line, "dim italic") for line in self._thought.tail(min(columns - 2, self.screen.width))]
        lines += [Text(line) for line in tail]
        lines += [line for call in self._calls.values() for line in call.running(now)]
        lines += self.child.lines(self.screen.width, max(3, rows - _ROWS_FOR_THE_REST))
        lines += self._open_todos()
        if self._status and (self._is_stopping or not self._calls):
            status = f"{self._status} · {seconds(now - self._since)}"
            lines.append(Text.assemble((f"{spin(now)} ", "cyan"), (status, "dim")))
        return [*lines, *self._typed(), Text(self.status_line(), "dim")]

    def _open_todos(self) -> list[Text]:
        """The todo list while something of it is open; of a long one the part around what is under way."""
        items = self.todos()
        places = [number for number, item in enumerate(items) if item.status in ("in_progress", "pending")]
        if not places:
            return []
        start = max(0, min(places[0] - 1, len(items) - _TODO_LINES))
        shown = items[start : start + _TODO_LINES]
        lines = [Text(f"{TODO_MARKS[item.status]} {visible(item.content)}", _STYLES[item.status]) for item in shown]
        if len(shown) < len(items):
            lines.append(Text(f"  {len(items)} in all", "dim"))
        return lines

    def _typed(self) -> list[Text]:
        """What was typed: queued messages, and the one that is not sent yet."""
        if self.ahead is None:
            return []
        room = self.screen.width - 10
        sent = [(shortened(_in_one_line(line), room), line.startswith(COMMAND_SIGNS)) for line in self.ahead.lines]
        waiting = [Text(f"› {line} ({'next' if is_next else 'sent'})", "dim") for line, is_next in sent]
        return [*waiting, Text(f"› {_in_one_line(self.ahead.text)[-room:]}")] if self.ahead.text else waiting

    def end(self) -> None:
        """Clear the lines below. What was written so far stays."""
        with self._lock:
            self._status = ""  # it may still be drawn
            self.screen.below(())
            self._finish()

    def _show(self, event: events.Event) -> None:
        match event:
            case events.TextDelta(text):
                self._keep_thought()
                self._answer.add(text)
            case events.ReasoningDelta(text):
                if self.shows_thoughts:
                    self._thought.add(text)
            case events.ToolStarted():
                self._finish()
                width, theme = self.screen.width, self.screen.code_theme
                self._calls[event.call_id] = Call(event, self._registry, width=width, theme=theme)
            case events.ToolProgress():
                if (call := self._calls.get(event.call_id)) is not None:
                    call.update(event)
            case events.ToolEnded():
                if (call := self._calls.pop(event.call_id, None)) is not None:
                    self._count += 1
                    self.screen.print(*call.ended(event), below=self._lines())
            case events.Notice(text):
                self._finish()
                self._say(text, "yellow")
            case events.MessageEnded():
                self._finish()
            case events.TurnEnded():
                self.end()
                self._turn_ended(event)

    def _finish(self) -> None:
        """What was being thought or written ends here."""
        self._keep_thought()
        self._answer.finish()

    def _keep_thought(self) -> None:
        if kept := self._thought.finish():
            self._say(kept, "dim italic")

    def _turn_ended(self, event: events.TurnEnded) -> None:
        match event.end:
            case events.End.ANSWERED:
                pass
            case events.End.INTERRUPTED:
                self._say("Interrupted by you. Changes made so far were kept.", "yellow")
            case events.End.FAILED:
                self._say(event.reason, "red")
            case _:
                self._say(f"Stopped: {event.reason}. Say so to continue.", "yellow")
        usage = event.usage
        parts = [counted(self._count, "call")] if self._count else []
        if usage.input_tokens or usage.output_tokens:  # not every server reports it
            parts.append(f"{usage.input_tokens:,} tokens in, {usage.output_tokens:,} out")
        if usage.cost is not None:
            parts.append(f"${usage.cost:.4f}")
        parts.append(seconds(time.monotonic() - self._since))
        self._say(" · ".join(parts), "dim")

    def _say(self, text: str, style: str) -> None:
        self.screen.print(Text(visible(text), style), below=self._lines())


def _in_one_line(text: str) -> str:
    return visible(text.replace("\n", " ⏎ "))


# A part that never ends (one list, one file, one line) is set in pieces of so many lines, or characters.
_MAX_LINES = 200
_MAX_CHARS = 4_000
_FENCES = ("```", "~~~")


class Answer:
    """Takes text in any pieces. `done` gets each complete part, as Markdown."""

    def __init__(self, done: Callable[[str], object]) -> None:
        self._done = done
        self._lines: list[str] = []
        self._begun = ""  # a line that has not ended
        self._fence = ""  # the line that opened the code that we are in

    def add(self, text: str) -> None:
        *lines, self._begun = (self._begun + text).split("\n")
        for line in lines:
            self._add_line(line)
        if len(self._begun) > _MAX_CHARS:
            self._end_line()
            self._flush()

    def finish(self) -> None:
        self._end_line()
        self._flush()
        self._lines, self._fence = [], ""

    def _end_line(self) -> None:
        line, self._begun = self._begun, ""
        if line:
            self._add_line(line)

    def tail(self, width: int, most: int) -> list[str]:
        """The last lines of what is not set yet, wrapped."""
        kept = [*self._lines, self._begun][-most:]
        wrapped = [row for line in kept for row in textwrap.wrap(visible(line), width) or [""]]
        while wrapped and not wrapped[0]:
            wrapped.pop(0)
        return wrapped[-most:]

    def _add_line(self, line: str) -> None:
        stripped = line.strip()
        if mark := self._fence.strip()[:3]:
            if stripped.startswith(mark) and not stripped.strip(mark[0]):
                self._fence = ""
        elif stripped.startswith(_FENCES):
            self._fence = line
        elif not stripped:
            self._flush()
            return
        self._lines.append(line)
        if len(self._lines) >= _MAX_LINES:
            self._flush()

    def _flush(self) -> None:
        lines, self._lines = self._lines, []
        if self._fence:  # code that goes on in the next part
            lines.append(self._fence.strip()[:3])
            self._lines = [self._fence]
        if any(line.strip() for line in lines):
            self._done("\n".join(lines))


_LIVE_LINES = 3
_KEPT_CHARS = 240


class Thought:
    """Takes text in any pieces. It is not part of the answer, and not stored."""

    def __init__(self) -> None:
        self._text, self._since = "", 0.0

    def add(self, text: str) -> None:
        self._since = self._since or time.monotonic()
        self._text += text

    def tail(self, width: int) -> list[str]:
        kept = self._text[-_MAX_CHARS:].splitlines()[-_LIVE_LINES:]
        return [row for line in kept for row in textwrap.wrap(visible(line), width)][-_LIVE_LINES:]

    def finish(self) -> str:
        """What stays of it; empty when there was none."""
        text, began = " ".join(self._text[:_MAX_CHARS].split()), self._since
        self._text, self._since = "", 0.0
        return f"Thought for {seconds(time.monotonic() - began)}: {shortened(text, _KEPT_CHARS)}" if text else ""


_CHILD_POLL_SECONDS = 0.5
_CHILD_MESSAGES, _CHILD_OUTPUT_LINES = 8, 3


class OpenChild:
    """What one child agent does, opened below while it works: from the store, where each of its messages is kept as it comes."""

    def __init__(self, store: SessionStore) -> None:
        self._store = store
        self._session, self._since, self._number = "", 0.0, 0
        self._read_at, self._found = 0.0, list[str]()

    def begin(self, session: str) -> None:
        """A turn of this session begins."""
        self._session, self._since, self._number = session, time.time(), 0

    def next(self) -> None:
        """Open the next one; after the last none."""
        self._number = (self._number + 1) % (len(self._children()) + 1)
        self._read_at = 0.0

    def lines(self, width: int, most: int) -> list[Text]:
        if not self._number:
            return []
        if time.monotonic() - self._read_at > _CHILD_POLL_SECONDS:
            children = self._children()
            info = children[min(self._number, len(children)) - 1]
            head = f"▸ {visible(info.title) or info.id} · {self._number} of {len(children)}, Ctrl-O: next"
            messages = [stored.message for stored in self._store.messages(info.id)][-_CHILD_MESSAGES:]
            self._found, self._read_at = [head, *list(_told(messages))[-most:]], time.monotonic()
        return [Text(f"  {shortened(line, width - 3)}", "dim") for line in self._found]

    def _children(self) -> list[SessionInfo]:
        return [info for info in self._store.children(self._session) if info.created >= self._since]


def _told(messages: Iterable[JsonDict]) -> Iterator[str]:
    for message in messages:
        content = message.get("content")
        if message["role"] == "tool" and isinstance(content, str):
            lines = [line for line in visible(main_text(content) or content).splitlines() if line.strip()]
            yield from (f"    {line}" for line in lines[-_CHILD_OUTPUT_LINES:])
        elif message["role"] == "assistant":
            yield from visible(content or "").splitlines() if isinstance(content, str) else ()
            yield from (f"  {visible(call)}" for call in calls_of(message))
