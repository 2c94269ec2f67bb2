"""Ask the user at the terminal.

They see what runs, with the dangerous parts marked, what would be written, and what each answer would cover. A key answers, or
arrows and Enter; Enter alone is not an answer, nor is what was typed before the prompt appeared. When something else writes to
the terminal (whatever runs as the same user may paint over the question, and the kernel reports it), the prompt is drawn again on
a cleared screen, and only an answer to that counts. One prompt is shown at a time; the others wait without a thread.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import os
import select
import shutil
import struct
import sys
import termios
import textwrap
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import NamedTuple, TextIO

from ...base.workers import Turns, pool
from ...protocols import Answer, ApprovalRequest, Decision
from ..display import visible
from . import prompt

# Every prompt at the terminal takes a turn here, also that of a tool which asks for something else.
turns = Turns()

Hold = Callable[[], AbstractContextManager[object]]


class Tty(NamedTuple):
    """Where answers are read and questions written. `apart`: written by `/dev/tty`, not by the device's own name."""

    read: int
    write: TextIO
    apart: bool = True


class TerminalApprover:
    """`hold` keeps other lines off the terminal while a prompt is shown; they follow after it."""

    name = "cli"

    def __init__(self, *, hold: Hold = contextlib.nullcontext) -> None:
        self._hold = hold

    async def decide(self, request: ApprovalRequest) -> Answer | None:
        """None when there is no terminal to ask at."""
        turn = turns.take()
        try:
            await asyncio.wrap_future(turn)
            return await self._ask(request)
        finally:
            turns.leave(turn)

    async def _ask(self, request: ApprovalRequest) -> Answer | None:
        # A thread waits for the input; a byte in this pipe wakes it when the answer is not needed any more.
        gone, wake = os.pipe()
        asking = pool.submit(self._at_terminal, request, gone)
        try:
            return await asyncio.shield(asyncio.wrap_future(asking))
        except asyncio.CancelledError:
            os.write(wake, b".")
            await asyncio.wait([asyncio.wrap_future(asking)])
            raise
        finally:
            os.close(gone)
            os.close(wake)

    def _at_terminal(self, request: ApprovalRequest, gone: int) -> Answer | None:
        with contextlib.ExitStack() as stack:
            tty = stack.enter_context(terminal())
            if tty is None:
                return None
            stack.enter_context(self._hold())
            watch = stack.enter_context(TtyWatch(tty.read, apart=tty.apart))
            return _Conversation(request, tty, gone, watch).run()


def is_there() -> bool:
    """Whether a terminal is there to ask at."""
    with terminal() as tty:
        return tty is not None


@contextlib.contextmanager
def terminal() -> Iterator[Tty | None]:
    """The terminal on stdin and stderr, or the one that this process belongs to when those lead elsewhere."""
    if sys.stdin is not None and sys.stderr is not None and os.isatty(0) and os.isatty(2):
        with _controlling() as stream:
            tty = Tty(0, sys.stderr, apart=False)
            with contextlib.suppress(OSError):  # a console, or not Linux
                tty = Tty(0, stream) if stream is not None and device(stream.fileno()) == device(2) else tty
            yield tty
        return
    with _controlling() as stream:
        if stream is None:
            yield None
            return
        in_foreground = False
        with contextlib.suppress(OSError):
            in_foreground = os.tcgetpgrp(stream.fileno()) == os.getpgrp()
        # A job in the background would be stopped by reading.
        yield Tty(stream.fileno(), stream) if in_foreground else None


@contextlib.contextmanager
def _controlling() -> Iterator[TextIO | None]:
    """The terminal that this process belongs to, by the name `/dev/tty`."""
    try:
        number = os.open("/dev/tty", os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        yield None
        return
    with open(number, "w", encoding="utf-8", errors="replace") as stream:
        yield stream


# After so many answers to a question that was painted over, the terminal is taken to be somebody else's.
_MAX_REFUSED = 3
# How long something else may write before the question is drawn again.
_CALM_SECONDS = 1.0
# How long a question that was drawn again is only to be read.
_READING_SECONDS = 0.7
_NOT_YET = "\0"
# Leave every mode that a painter could have set (other screen, margins, character set, hidden cursor), and clear the screen.
_FRESH = "\x1b[?1049l\x1b[!p\x1b[r\x1b(B\x0f\x1b[0m\x1b[?25h\x1b[H\x1b[2J"
# The rows of a question with its menu, beside those of what would be written.
_MAX_ROWS = 8
_TOO_LATE, _NOT_NEEDED = "Timed out: denied.", "Answered elsewhere, or cancelled."
_HOW = "Press the first letter of a word, or choose with the arrows and Enter."
_TOUCHED = "\n  Something else wrote to this terminal, so the question is drawn again. Answer this one.\n"
_TAKEN = "\n  Something else keeps writing here: no answer counts. In another terminal: handrail approvals answer {}\n"


class _Conversation:
    """One question at the terminal, until it is answered or not needed any more."""

    def __init__(self, request: ApprovalRequest, tty: Tty, gone: int, watch: TtyWatch) -> None:
        self._request, self._tty, self._gone, self._watch = request, tty, gone, watch
        size = shutil.get_terminal_size()
        self._width = min(size.columns, 120)
        self._is_whole = False
        self._by_key = os.environ.get("TERM", "dumb") != "dumb"
        self._painted = self._by_key and not os.environ.get("NO_COLOR")
        self._menu_rows, self._calm_at = 0, 0.0
        words = prompt.Menu(prompt.words_for(request, has_more=True)).rows(self._width, painted=False)
        rows = _MAX_ROWS - len(words) - 1  # the last is about the chosen word
        diff_lines = max(6, min(prompt.PREVIEW_LINES, size.lines - _MAX_ROWS - 2))
        self._brief = prompt.brief(request, width=self._width, painted=self._painted, rows=rows, diff_lines=diff_lines)
        # What is done for a word that is no decision. None asks on.
        self._others: dict[str, Callable[[], Answer | None]] = {
            prompt.EDIT: self._edited,
            prompt.INSTEAD: self._denied_with_reason,
            prompt.VIEW: self._view,
            prompt.PICK: self._picked,
        }

    def run(self) -> Answer | None:
        self._draw()
        while True:
            word = self._answer()
            if word is None:
                is_late = time.time() >= self._request.expires_at
                self._write(f"{self._without_menu()}  {_TOO_LATE if is_late else _NOT_NEEDED}\n")
                return None
            if word in prompt.OTHERS:
                if (answer := self._others[word]()) is not None:
                    return answer
            elif Decision(word).allows and self._brief.hides_danger and not self._is_whole:
                self._view()  # nobody allows what they have not seen
            else:
                decision = Decision(word)
                said = "Denied." if decision is Decision.DENY else prompt.allowed(self._request, decision)
                self._write(f"  {said}\n")
                self._forget_typed()
                return Answer(decision, TerminalApprover.name)

    def _view(self) -> None:
        """Show all of it, in the place of what was shown before."""
        self._is_whole = True
        if self._by_key:
            self._write(f"\x1b[{self._brief.text.count(chr(10))}A\x1b[J")
        self._draw()

    def _picked(self) -> Answer | None:
        """Which changes of a command that was tried are kept; None when nothing was chosen."""
        changes = [line for line in self._request.text.splitlines() if not line.startswith("!")]
        self._write("".join(f"  {number:3} {visible(line)}\n" for number, line in enumerate(changes, 1)))
        text = self._line("Which to keep? Numbers, such as 1 3-5; Enter takes the others back, Esc leaves it:", "")
        numbers = prompt.numbers(text or "", len(changes))
        if not numbers or self._watch.was_touched():
            return None
        kept = "\n".join(line for number, line in enumerate(changes, 1) if number in numbers)
        return Answer(Decision.DENY, TerminalApprover.name, edited=kept)

    def _edited(self) -> Answer | None:
        """What is to run instead; None when nothing was changed, or something else wrote to the terminal meanwhile."""
        text = self._line("Change it; Enter takes it, Esc leaves it as it was:", self._request.text)
        if text is None or self._watch.was_touched() or text.strip() in ("", self._request.text.strip()):
            return None
        return Answer(Decision.DENY, TerminalApprover.name, edited=text)

    def _denied_with_reason(self) -> Answer | None:
        text = self._line("What should it do instead? Enter denies, Esc goes back:", "")
        if text is not None:
            self._write("  Denied.\n")
        return None if text is None else Answer(Decision.DENY, TerminalApprover.name, text.strip())

    def _line(self, question: str, text: str) -> str | None:
        """A line that is typed below a question, which begins with `text`; None for Esc, or when it is not needed any more."""
        line = prompt.Line(text if self._by_key else "")
        rows = textwrap.wrap(question, self._width - 1, initial_indent="  ", subsequent_indent="  ")
        self._write("\n".join(rows) + "\n")
        with prompt.by_key(self._tty.read) if self._by_key else contextlib.nullcontext(False):
            while not line.is_done:
                self._write(line.drawn(self._width - 5) if self._by_key else "  > ")
                typed = _read(self._tty.read, self._gone, self._request.expires_at, [], by_line=not self._by_key)
                line.feed(typed or "\x1b")
        if self._by_key:  # what was left is not in the way of the question
            self._write(f"\r\x1b[{len(rows)}A\x1b[J" if line.is_left else "\n")
        return None if line.is_left else line.text

    def _answer(self) -> str | None:
        """A word that was answered below a question which nobody has painted over; None when it is not needed any more."""
        menu = prompt.Menu(prompt.words_for(self._request, has_more=self._brief.is_cut and not self._is_whole))
        refused = 0
        with prompt.by_key(self._tty.read) if self._by_key else contextlib.nullcontext(False):
            self._draw_menu(menu)
            while True:
                typed = self._typed()
                if typed is None:
                    return None
                if not (self._watch.was_touched() or typed == _NOT_YET):
                    word = menu.feed(typed) if typed else Decision.DENY.value
                    if word and word != prompt.NO_ANSWER:
                        self._write(self._without_menu())
                        return word
                    self._draw_menu(menu, _HOW if word or not self._by_key else "")
                    continue
                refused += typed != _NOT_YET
                if refused > _MAX_REFUSED:
                    self._write(_TAKEN.format(self._request.id))
                    _read(-1, self._gone, self._request.expires_at, [], by_line=True)
                    return None
                if typed != _NOT_YET or time.time() >= self._calm_at:
                    self._draw_again()
                    self._draw_menu(menu)

    def _typed(self) -> str | None:
        """What was typed; _NOT_YET when something else wrote to the terminal; None when no answer is needed any more."""
        touched = self._watch.was_touched()
        until = min(self._calm_at, self._request.expires_at) if touched else self._request.expires_at
        interrupts = [] if touched else self._watch.files
        typed = _read(self._tty.read, self._gone, until, interrupts, by_line=not self._by_key)
        if typed is None and time.time() < self._request.expires_at and not select.select([self._gone], [], [], 0)[0]:
            return _NOT_YET
        return typed

    def _draw_menu(self, menu: prompt.Menu, hint: str = "") -> None:
        """What can be answered; above it a hint, what the chosen word means, or how much time is left."""
        word = menu.words[menu.chosen] if menu.chosen is not None else ""
        means = hint or (prompt.OTHERS.get(word) or prompt.MEANINGS[Decision(word)] if word else "")
        about = f"  {textwrap.shorten(means, self._width - 3, placeholder=' …')}" if means else ""
        if not means and not self._is_whole:
            about = prompt.time_left(self._request, self._width - 1, self._brief.more)
        rows = [*filter(None, [about]), *menu.rows(self._width, painted=self._painted)]
        self._write(f"{self._without_menu()}{chr(10).join(rows)} ")
        self._menu_rows = len(rows)

    def _without_menu(self) -> str:
        """Go back to where the menu began, and clear from there, so that only the answer stays."""
        up, self._menu_rows = self._menu_rows - 1, 0
        return "\r" + (f"\x1b[{up}A" if up > 0 else "") + "\x1b[J" if self._by_key and up >= 0 else ""

    def _draw_again(self) -> None:
        self._watch.reset()
        self._menu_rows = 0
        self._write(_FRESH + _TOUCHED)
        self._draw()
        # An answer that was on its way is for what stood there before.
        select.select([self._gone], [], [], _READING_SECONDS)
        self._forget_typed()
        self._calm_at = time.time() + _CALM_SECONDS

    def _draw(self) -> None:
        if self._is_whole:
            self._write(prompt.question(self._request, width=self._width, painted=self._painted, max_lines=None))
        else:
            self._write(self._brief.text)
        self._forget_typed()

    def _forget_typed(self) -> None:
        """What was typed or pasted before the prompt appeared was meant for something else."""
        with contextlib.suppress(termios.error):
            termios.tcflush(self._tty.read, termios.TCIFLUSH)

    def _write(self, text: str) -> None:
        with self._watch.own_write(), contextlib.suppress(OSError):
            self._tty.write.write(text)
            self._tty.write.flush()


def _read(number: int, gone: int, expires_at: float, interrupts: Sequence[int], *, by_line: bool) -> str | None:
    """What was typed, a line or some keys; "" at the end of input; None when it is not needed any more; _NOT_YET when a file of
    `interrupts` is readable. A `number` below 0 only waits."""
    typed = b"" if number >= 0 else b"\0"
    while not typed.endswith(b"\n"):
        left = max(0.0, expires_at - time.time())
        ready, _, _ = select.select([*([number] if number >= 0 else []), gone, *interrupts], [], [], left)
        if not ready or gone in ready:
            return None
        if number not in ready:
            return _NOT_YET
        piece = b""
        with contextlib.suppress(OSError):  # the terminal went away
            piece = os.read(number, 4096)
        if not piece:
            return ""
        typed += piece
        if not by_line:
            break
    return typed.decode("utf-8", "replace")


_IN_MODIFY, _IN_OPEN = 0x2, 0x20
_HEAD = struct.Struct("iIII")  # of a report: watch, what happened, cookie, length of the name that follows


class TtyWatch:
    """A context manager. `number` is the terminal's file; where it cannot be watched, nothing is ever reported. `apart`: one's
    own writing goes by `/dev/tty`, which is not watched, so that every report is about somebody else."""

    def __init__(self, number: int, *, apart: bool) -> None:
        self._terminal, self._apart = number, apart
        self._events = -1
        self._is_touched = False

    def __enter__(self) -> TtyWatch:
        try:
            path = device(self._terminal)
            libc = ctypes.CDLL(None, use_errno=True)
            self._events = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
            if self._events >= 0 and libc.inotify_add_watch(self._events, os.fsencode(path), _IN_MODIFY | _IN_OPEN) < 0:
                self.close()
        except (OSError, AttributeError):  # no terminal, or not Linux
            self.close()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        for number in self.files:
            os.close(number)
        self._events = -1

    @property
    def files(self) -> list[int]:
        """What becomes readable when something is reported; for `select`."""
        return [self._events] if self._events >= 0 else []

    @contextlib.contextmanager
    def own_write(self) -> Iterator[None]:
        """Around each writing of one's own, which does not count."""
        self.was_touched()
        yield
        reports = self._reports()
        # Ours are one report: the kernel joins equal ones that follow each other, and so also somebody else's with ours.
        self._is_touched |= bool(reports[1:] if reports[:1] == [_IN_MODIFY] and not self._apart else reports)

    def was_touched(self) -> bool:
        """Whether something else opened the terminal or wrote to it since `reset`."""
        self._is_touched |= bool(self._reports())
        return self._is_touched

    def reset(self) -> None:
        self._reports()
        self._is_touched = False

    def _reports(self) -> list[int]:
        found: list[int] = []
        data = b""
        with contextlib.suppress(BlockingIOError):
            data = os.read(self._events, 65_536) if self._events >= 0 else b""
        while data:
            _, mask, _, length = _HEAD.unpack_from(data)
            found.append(mask)
            data = data[_HEAD.size + length :]
        return found


def device(number: int) -> str:
    """The terminal's own device: `/dev/tty` is another name, and what others do under the first is not reported for it."""
    path = os.ttyname(number)
    if path != "/dev/tty":
        return path
    with open("/proc/self/stat", encoding="utf-8", errors="replace") as file:
        code = int(file.read().rpartition(")")[2].split()[4])
    major, minor = code >> 8 & 0xFFF, code & 0xFF | code >> 12 & 0xFFF00
    if not 136 <= major <= 143:  # not a pseudo terminal
        raise OSError(f"device {major}:{minor} is not known")
    return f"/dev/pts/{minor + (major - 136) * 256}"
