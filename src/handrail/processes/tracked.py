"""One background process of the table: its status, its log by lines or as it is, and its screen, wherever it runs."""

from __future__ import annotations

import contextlib
import re
import threading
import time
from collections.abc import Callable
from enum import Enum
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast

from ..base.own_process import has_exited, pid_of, runtime_id
from ..base.safe_text import clean
from ..environments.base import ProcessState, PtyProcess
from ..environments.errors import EnvironmentClosed, NoSuchProcess
from ..errors import InvalidArguments, ToolError

if TYPE_CHECKING:
    from ..environments.base import BackgroundProcess, LogPiece
    from ..store.processes import ProcessRecord
    from ..types import JsonDict
    from .screen import Screen

T = TypeVar("T")
_PIECE_BYTES = 1 << 20
_RENDERED_BYTES = 64 << 10  # more than any screen needs; rendering is slow
_SEARCHED_BYTES = 1 << 20
_CONTROL = re.compile(rb"[\x1b\n]")
_MAX_BYTES = 64 << 20  # more than any log keeps
_PAGE_CHARS, _LINE_CHARS = 40_000, 2_000
_MATCH_SECONDS = 2.0


class State(Enum):
    RUNNING = "running"
    EXITED = "exited"
    LOST = "lost"  # how it ended, or whether it did, is unknown
    UNREACHABLE = "unreachable"  # its environment cannot be reached now


class Status(NamedTuple):
    """`reason` explains what the exit code does not."""

    state: State
    exit_code: int | None = None
    ended_at: float | None = None
    reason: str = ""

    def __str__(self) -> str:
        """As the predicate of a sentence about it."""
        if self.state is State.RUNNING:
            return "is running"
        if self.state is State.UNREACHABLE:
            return f"cannot be reached: {self.reason}"
        if self.state is State.LOST:
            return f"is lost: {self.reason}"
        return f"ended with exit code {self.exit_code}" if self.exit_code is not None else f"ended; {self.reason}"


class TrackedProcess:
    """`find` returns the process in its environment (None: not known there); `save` stores a changed record. `mask` hides
    secrets, and `change` lets plugins edit: both apply to output that is shown."""

    def __init__(
        self,
        record: ProcessRecord,
        find: Callable[[ProcessRecord], BackgroundProcess | None],
        save: Callable[[ProcessRecord], None],
        mask: Callable[[str], str],
        change: Callable[[ProcessRecord, str], str],
        process: BackgroundProcess | None = None,
    ) -> None:
        self.record, self.mask = record, mask
        self.typed = ""  # since the last end of line: the gate needs it to judge what follows
        self._find, self._save, self._change, self._process = find, save, change, process
        self._rendering = threading.Lock()
        self._screen: Screen | None = None
        self._rendered_to = 0

    @property
    def id(self) -> str:
        return self.record.id

    def status(self) -> Status:
        """Never raises. The first caller that sees the end records it."""
        record = self.record
        if record.ended_at is not None:
            return Status(State(record.state), record.exit_code, record.ended_at, record.reason)
        if not record.survives and has_exited(record.owner):
            return self._ended(State.EXITED, None, None, "it ended with the runtime that had started it")
        try:
            found = self.use(lambda process: process.poll())
        except NoSuchProcess:
            if record.survives or record.owner == runtime_id():
                return self._ended(State.LOST, None, None, "its environment no longer knows it")
            return Status(State.UNREACHABLE, reason=f"it belongs to another runtime (pid {pid_of(record.owner)})")
        except (ToolError, OSError) as error:
            return Status(State.UNREACHABLE, reason=str(error))
        if found.state is ProcessState.RUNNING:
            return Status(State.RUNNING)
        if found.state is ProcessState.LOST:
            reason = "its supervisor was killed, or the machine was rebooted"
            return self._ended(State.LOST, None, found.ended_at, reason)
        reason = "" if found.exit_code is not None else "its exit code is not known, as a command left it running"
        return self._ended(State.EXITED, found.exit_code, found.ended_at, reason)

    def _ended(self, state: State, code: int | None, ended_at: float | None, reason: str) -> Status:
        status = Status(state, code, time.time() if ended_at is None else ended_at, reason)
        self.change(state=state.value, exit_code=code, ended_at=status.ended_at, reason=reason)
        return status

    def change(self, **fields: Any) -> None:
        self.record = self.record._replace(**fields)
        self._save(self.record)

    def use(self, work: Callable[[BackgroundProcess], T]) -> T:
        """Do something with the process itself. Raises NoSuchProcess, or why its environment cannot be reached."""
        process = self._process or self._found()
        try:
            return work(process)
        except EnvironmentClosed:
            return work(self._found())

    def _found(self) -> BackgroundProcess:
        self._process = self._find(self.record)
        if self._process is None:
            raise NoSuchProcess(f"{self.id} is no longer known in its environment, and neither is its log")
        return self._process

    def kill(self) -> None:
        """End it with everything it started. One that is lost may still run, and is ended too."""
        with contextlib.suppress(NoSuchProcess):  # nothing is left of it
            self.use(lambda process: process.kill())

    def waits_for_input(self) -> bool:
        """Whether the program reads its terminal, or its input, and has nothing to read."""
        return self.use(lambda process: bool(getattr(process, "waits_for_input", bool)()))

    def reader(self) -> tuple[str, bool]:
        """The program in the foreground of its terminal, and whether it hides what is typed; empty and False for a pipe."""
        return self.use(lambda process: getattr(process, "reader", lambda: ("", False))())

    def presented(self, text: str) -> str:
        """A part of its output as shown to a model: without secrets, and edited by plugins."""
        return self._change(self.record, self.mask(text))

    def read(self, offset: int, max_bytes: int) -> LogPiece:
        """Its log from `offset` on: `max_bytes` of it, or to its end."""
        piece = self.use(lambda process: process.read(offset, max_bytes=max_bytes))
        data = piece.data
        while len(data) < max_bytes and data and piece.offset + len(data) < piece.end:
            at, room = piece.offset + len(data), min(_PIECE_BYTES, max_bytes - len(data))
            more = self.use(lambda process: process.read(at, max_bytes=room))  # noqa: B023  called immediately
            if more.offset != at or not more.data:
                break
            data += more.data
        return piece._replace(data=data)

    def end_of_log(self) -> int:
        return self.use(lambda process: process.read(1 << 62, max_bytes=1)).end

    def tail(self, max_bytes: int) -> LogPiece:
        return self.read(max(0, self.end_of_log() - max_bytes), max_bytes)

    def screen(self) -> Screen:
        from .screen import Screen  # pyte is slow to import

        with self._rendering:
            if self._screen is None:
                self._screen = Screen(self.record.rows, self.record.columns)
            end = self.end_of_log()
            begin = max(self._rendered_to, end - _RENDERED_BYTES)
            is_cut = begin > self._rendered_to
            if is_cut:
                searched = max(self._rendered_to, begin - _SEARCHED_BYTES)
                self._screen.skip(self.read(searched, begin - searched).data)
            piece = self.read(begin, max(1, end - begin))
            # What precedes the first control sequence may be the rest of another.
            whole = _CONTROL.search(piece.data) if is_cut else None
            self._screen.feed(piece.data[whole.start() :] if whole else piece.data)
            self._rendered_to = max(begin, piece.offset + len(piece.data))
            return self._screen

    def resize(self, rows: int, columns: int) -> None:
        self.use(lambda process: cast("PtyProcess", process).resize(rows, columns))
        with self._rendering:
            if self._screen is not None:
                self._screen.resize(rows, columns)
        self.change(rows=rows, columns=columns)


def last_lines(tracked: TrackedProcess, max_bytes: int) -> JsonDict:
    """The end of its output in whole lines, and how much came before."""
    piece = tracked.tail(max_bytes)
    data = piece.data
    if piece.offset and b"\n" in data[:-1]:  # the first line is incomplete
        data = data[data.index(b"\n") + 1 :]
    earlier = piece.offset + len(piece.data) - len(data)
    return {"output": tracked.presented(clean(data)), **({"earlier_bytes": earlier} if earlier else {})}


def page(tracked: TrackedProcess, *, offset: int | None, limit: int, pattern: str | None) -> JsonDict:
    """`limit` lines from line `offset` on, or the last ones; with a pattern, of those that match."""
    expression = _compiled(pattern) if pattern else None
    piece = tracked.read(0, _MAX_BYTES)
    lines = tracked.presented(clean(piece.data)).removesuffix("\n").split("\n") if piece.data else []
    numbered = list(enumerate(lines, 1))
    shown: JsonDict = {"total_lines": len(numbered)}
    if piece.offset:
        shown["dropped_bytes"] = piece.offset  # the log keeps the latest part of a long output
    if expression is not None:
        numbered = _matching(numbered, expression)
        shown["total_matches"] = len(numbered)
    first = max(0, len(numbered) - limit) if offset is None else offset - 1
    chosen = numbered[first : first + limit]
    if offset is not None and not chosen and numbered:
        raise InvalidArguments(f"offset {offset} is past the end: there are {len(numbered)}", argument="offset")
    chosen = _fitting(chosen, from_end=offset is None)
    if chosen:
        shown |= {"first_line": chosen[0][0], "last_line": chosen[-1][0]}
        if offset is not None and first + len(chosen) < len(numbered):
            shown["next_offset"] = first + len(chosen) + 1
    shown["output"] = "\n".join(f"{number}: {line}" if pattern else line for number, line in chosen)
    return shown


def _fitting(lines: list[tuple[int, str]], *, from_end: bool) -> list[tuple[int, str]]:
    """As many as fit into one result, the last or the first of them."""
    fitting: list[tuple[int, str]] = []
    room = _PAGE_CHARS
    for number, line in reversed(lines) if from_end else lines:
        room -= min(len(line), _LINE_CHARS) + 1
        if room < 0:
            break
        cut = f"{line[:_LINE_CHARS]}… ({len(line):,} characters)" if len(line) > _LINE_CHARS else line
        fitting.append((number, cut))
    return fitting[::-1] if from_end else fitting


def _compiled(pattern: str) -> Any:
    # The standard engine cannot be stopped once it backtracks endlessly; this one takes a timeout.
    import regex

    try:
        return regex.compile(pattern)
    except regex.error as error:
        raise InvalidArguments(f"pattern is not a regular expression: {error}", argument="pattern") from None


def _matching(lines: list[tuple[int, str]], expression: Any) -> list[tuple[int, str]]:
    try:
        return [one for one in lines if expression.search(one[1], timeout=_MATCH_SECONDS)]
    except TimeoutError:
        why = f"pattern takes longer than {_MATCH_SECONDS:g} s on one line; write it more simply"
        raise InvalidArguments(why, argument="pattern") from None
