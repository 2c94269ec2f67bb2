"""The terminal: messages scroll up, and a few lines below them change while something runs.

The cursor waits where those lines begin, so that they are cleared by clearing what follows it. A terminal keeps it there when
its window changes, even if it wraps the lines again. A terminal that cannot move its cursor has none of these lines; writing
to one that was closed does nothing.
"""

import contextlib
import os
import re
import select
import shutil
import signal
import sys
import termios
import threading
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any, TextIO

from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text
from rich.theme import Theme

from ..output import colours, point_at_nothing, visible
from ..runtime import handling

_WIDEST = 120
_KEYS_BYTES = 4096
# First the line, then what follows its first column: what is cleared from the corner of the screen, tmux keeps in its history.
CLEAR, _SHOW_CURSOR = "\x1b[K\x1b[C\x1b[J", "\x1b[?25h"
# Without wrapping a line is one row, even if the window has become narrower since its width was asked for.
_BEGIN_ROWS, _END_ROWS = "\x1b[?25l\x1b[?7l", "\x1b[?7h\r"
_PADDING = re.compile(r" +((?:\x1b\[[0-9;]*m)*)$", re.MULTILINE)
_AROUND = re.compile(r"\A(?:(?:\x1b\[[0-9;]*m)*\n)+|\n(?:(?:\x1b\[[0-9;]*m)*\n)*\Z")


class Screen:
    """Safe under threads. Renders with rich, in colours only where they are wanted."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stdout
        self.coloured = colours(self._stream)
        self.code_theme = "ansi_dark"
        self.moves = self._stream.isatty() and os.environ.get("TERM", "dumb") != "dumb"
        self._lock = threading.RLock()
        self._below: list[Text] = []  # as they are shown now
        self._kept: list[str] | None = None
        self._reads_keys = False
        self._gone = False

    @property
    def size(self) -> tuple[int, int]:
        columns, rows = shutil.get_terminal_size()
        return max(20, columns), max(5, rows)

    @property
    def width(self) -> int:
        """How wide text is set. The last column stays free: some terminals wrap when it is used."""
        return min(self.size[0], _WIDEST) - 1

    def print(self, *parts: RenderableType, below: Sequence[Text] | None = None) -> None:
        """Write something that stays. `below` goes with it in place of the lines below, if there are any."""
        self.write("".join(map(self.rendered, parts)), below)

    def markdown(self, text: str, below: Sequence[Text] | None = None, *, end: str = "") -> None:
        """The same for what a model wrote, as Markdown; as it is where nothing can be drawn."""
        text = visible(text)
        if not self.moves:
            self.write(f"{text}\n{end}")
            return
        from .markdown import Markdown

        self.write(self.rendered(Markdown(text, code_theme=self.code_theme, hyperlinks=False)) + end, below)

    def table(self, headers: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
        """The same for a table; its last column gives way where there is no room."""
        table = Table(box=None, pad_edge=False, header_style="bold", expand=True)
        for header in headers:
            table.add_column(header, no_wrap=True, overflow="ellipsis", ratio=1 if header == headers[-1] else None)
        for row in rows:
            table.add_row(*row)
        self.print(table)

    def write(self, text: str, below: Sequence[Text] | None = None) -> None:
        """The same for text that is ready, with its line ends."""
        with self._lock:
            if self._kept is not None:
                self._kept.append(text)
                return
            self._put(self._replaced(text, below if below and self._below else self._below))

    def below(self, lines: Sequence[Text]) -> None:
        """Replace the lines below by these. Each is cut at the edge."""
        with self._lock:
            if self.moves and self._kept is None:
                self._put(self._replaced("", lines))

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Leave the terminal to a question: what is written meanwhile comes afterwards."""
        with self._lock:
            self.below(())
            self._kept = []
            self._mark_pastes(False)
        try:
            with keyboard(shown=True):
                yield
        finally:
            with self._lock:
                kept, self._kept = self._kept, None
                self._mark_pastes(True)
                self.write("".join(kept))

    def suspend(self) -> None:
        """Stop this process as Ctrl-Z does, with the terminal left as a shell wants it. Returns once the user comes back."""
        with self.held() if self._kept is None else keyboard(shown=True), handling(signal.SIG_DFL, signal.SIGTSTP):
            signal.raise_signal(signal.SIGTSTP)

    @contextlib.contextmanager
    def reading_keys(self) -> Iterator[bool]:
        """Let `keys` return what is typed. Yields False where the changing lines cannot show it."""
        if not self.moves or not os.isatty(0):
            yield False
            return
        with keyboard(shown=False, by_key=True):
            self._reads_keys = True
            self._mark_pastes(True)
            try:
                yield True
            finally:
                self._mark_pastes(False)
                self._reads_keys = False

    def keys(self, timeout: float) -> bytes:
        """What has been typed, after `timeout` seconds at most. Nothing while a question is shown."""
        select.select([] if self._kept is not None else [0], [], [], timeout)
        with self._lock, contextlib.suppress(OSError):  # the terminal was closed
            # Once more, now that nobody else can read: a question may have come and gone, and taken what was typed.
            is_ours = self._kept is None and select.select([0], [], [], 0)[0]
            return os.read(0, _KEYS_BYTES) if is_ours else b""
        return b""

    def _mark_pastes(self, wanted: bool) -> None:
        if self._reads_keys:
            self._put("\x1b[?2004h" if wanted else "\x1b[?2004l")

    def rendered(self, part: RenderableType) -> str:
        """With its line ends; without the spaces with which rich fills up lines, and empty lines around it."""
        with self._lock, self._console.capture() as capture:
            self._console.width = self.width
            self._console.print(part)
        return _AROUND.sub("", _PADDING.sub(r"\1", capture.get())) + "\n"

    @cached_property
    def _console(self) -> Console:
        return Console(
            theme=Theme({"markdown.code": "bold cyan"}),  # rich's own puts black behind it, on white screens too
            force_terminal=self.coloured,
            color_system="auto" if self.coloured else None,
            highlight=False,
            markup=False,
            emoji=False,
            legacy_windows=False,
        )

    def _replaced(self, text: str, lines: Sequence[Text]) -> str:
        """Clear the lines below, and write this text and these lines in their place."""
        before, self._below = self._below, list(lines)[-(self.size[1] - 2) :]
        for line in self._below:
            line.truncate(self.width - 1, overflow="ellipsis")
        if before:
            text = f"\r{CLEAR}\r{'' if self._below else _SHOW_CURSOR}{text}"
        if not self._below:
            return text
        shown = "".join(map(self.rendered, self._below)).removesuffix("\n")
        back = f"\x1b[{len(self._below) - 1}A" if len(self._below) > 1 else ""
        return f"{text}{_BEGIN_ROWS}{shown}{_END_ROWS}{back}"

    def _put(self, text: str) -> None:
        if self._gone or not text:
            return
        try:
            self._stream.write(text)
            self._stream.flush()
        except OSError:  # the terminal was closed
            self._gone = True
            # Else what is buffered fails again wherever rich flushes, before the signal comes.
            point_at_nothing(self._stream)


@contextlib.contextmanager
def keyboard(*, shown: bool, by_key: bool = False) -> Iterator[None]:
    """Whether the terminal shows what is typed, and gives it key by key. What nobody reads is there for whoever does next."""
    try:
        before: list[Any] = termios.tcgetattr(0)
    except (termios.error, OSError):
        yield
        return
    changed = list(before)
    # Else Enter would be read later as Ctrl-J, which begins a new line.
    changed[0] = changed[0] | termios.ICRNL if shown else changed[0] & ~termios.ICRNL
    changed[3] = changed[3] | termios.ECHO if shown else changed[3] & ~termios.ECHO
    if by_key:
        changed[3] &= ~termios.ICANON
    elif shown:
        changed[3] |= termios.ICANON
    with contextlib.suppress(termios.error, OSError):
        termios.tcsetattr(0, termios.TCSANOW, changed)
    try:
        yield
    finally:
        with contextlib.suppress(termios.error, OSError):
            termios.tcsetattr(0, termios.TCSANOW, before)
