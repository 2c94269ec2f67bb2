"""What a user would see on the terminal of a program: its control sequences, rendered by pyte. pyte does not know everything
that programs send: it prints what it cannot parse, and raises for what it does not expect. What it lacks is added here, or
removed before it gets there."""

import codecs
import contextlib
import re
from typing import Any

import pyte
from pyte.screens import Char, Cursor, StaticDefaultDict

ROWS, COLUMNS = 24, 80
_APPLICATION_CURSOR = 1 << 5
_ALTERNATE = {47, 1047, 1049}
_MAX_HELD = 4096  # of a sequence whose end has not come

# Strings to the terminal itself (DCS, APC, PM, SOS), and sequences with parameters or letters that pyte takes for text.
_UNKNOWN = re.compile(
    r"\x1b[PX^_][^\x07\x1b]*(?:\x1b\\|\x07)"
    r"|\x1b\[[<=>][0-?]*[ -/]*[@-~]|\x1b\[[0-?]*:[0-?]*[ -/]*[@-~]|\x1b\[[0-?]*[ -/]+[@-~]"
    r"|\x1b\[\?[0-?]*[a-gi-km-zA-IL-Z@`{|}~]"
)
_PARTS = re.compile(r"\x1b?[^\x1b]*")
_MODES = re.compile(rb"\x1b\[\?[0-9;]*[hl]")
_BEGUN = re.compile(r"\x1b(?:[PX^_\]][^\x07\x1b]*\x1b?|\[[0-?]*[ -/]*|[ -/]*)?\Z")

_Buffer = dict[int, StaticDefaultDict[int, Char]]


class Screen:
    """Feed it everything that the program prints."""

    def __init__(self, rows: int = ROWS, columns: int = COLUMNS) -> None:
        self._screen = _Screen(columns, rows)
        self._stream = _Stream(self._screen)
        # Otherwise it ignores line-drawing characters; its input is decoded here.
        self._stream.use_utf8 = False
        self._decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        self._held = ""

    def feed(self, data: bytes) -> None:
        text = self._held + self._decode(data)
        begun = _BEGUN.search(text, max(0, len(text) - _MAX_HELD))
        self._held = text[begun.start() :] if begun else ""
        if begun:
            text = text[: begun.start()]
        for part in _PARTS.findall(_UNKNOWN.sub("", text)):
            # Suppressed: a sequence that pyte cannot handle costs only itself.
            with contextlib.suppress(ValueError, TypeError, LookupError, ArithmeticError):
                self._stream.feed(part)

    def skip(self, data: bytes) -> None:
        """Apply only the mode changes in output that is too long to render: a program sets them once."""
        self.feed(b"".join(_MODES.findall(data)))

    def resize(self, rows: int, columns: int) -> None:
        self._screen.resize(rows, columns)

    @property
    def text(self) -> str:
        """Its lines, without trailing blanks and empty lines."""
        return "\n".join(line.rstrip() for line in self._screen.display).rstrip()

    @property
    def size(self) -> tuple[int, int]:
        return self._screen.lines, self._screen.columns

    @property
    def cursor(self) -> tuple[int, int]:
        """Row and column, counted from 1."""
        return self._screen.cursor.y + 1, min(self._screen.cursor.x, self._screen.columns - 1) + 1

    @property
    def wants_application_keys(self) -> bool:
        return _APPLICATION_CURSOR in self._screen.mode


class _Stream(pyte.Stream):
    csi = pyte.Stream.csi | {"S": "scroll_up", "T": "scroll_down", "Z": "back_tab"}
    csi |= {"b": "repeat", "s": "keep_cursor", "u": "fetch_cursor"}


class _Screen(pyte.Screen):
    def __init__(self, columns: int, lines: int) -> None:
        self._behind: tuple[_Buffer, Cursor] | None = None
        self._last = ""
        super().__init__(columns, lines)

    def set_mode(self, *modes: int, **kwargs: Any) -> None:
        if kwargs.get("private") and _ALTERNATE.intersection(modes) and self._behind is None:
            self._behind = (dict(self.buffer), _copy(self.cursor))
            self.buffer.clear()
        super().set_mode(*modes, **kwargs)

    def reset_mode(self, *modes: int, **kwargs: Any) -> None:
        super().reset_mode(*modes, **kwargs)
        if kwargs.get("private") and _ALTERNATE.intersection(modes) and self._behind is not None:
            buffer, self.cursor = self._behind
            self._behind = None
            self.buffer.clear()
            self.buffer.update(buffer)
            self.ensure_hbounds()  # it may have been made smaller meanwhile
            self.ensure_vbounds()

    def draw(self, data: str) -> None:
        super().draw(data)
        self._last = data[-1:] or self._last

    def repeat(self, count: int = 1) -> None:
        super().draw(self._last * min(max(1, count), self.columns))

    def back_tab(self, count: int = 1) -> None:
        for _ in range(min(max(1, count), self.columns)):
            self.cursor.x = max((stop for stop in self.tabstops if stop < self.cursor.x), default=0)

    def keep_cursor(self, *_: int) -> None:
        self.save_cursor()

    def fetch_cursor(self, *_: int) -> None:
        self.restore_cursor()

    def scroll_up(self, count: int = 1) -> None:
        self._scroll(self.delete_lines, count)

    def scroll_down(self, count: int = 1) -> None:
        self._scroll(self.insert_lines, count)

    def _scroll(self, change: Any, count: int) -> None:
        kept = _copy(self.cursor)
        self.cursor.y = self.margins.top if self.margins else 0
        change(max(1, count))
        self.cursor = kept


def _copy(cursor: Cursor) -> Cursor:
    copied = Cursor(cursor.x, cursor.y, cursor.attrs)
    copied.hidden = cursor.hidden
    return copied
