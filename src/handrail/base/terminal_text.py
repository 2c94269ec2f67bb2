"""Make a program's output readable: what a terminal would show, as lines of text.

Colours and cursor movements go, a progress bar is its last state, a backspace removes a character, and what is not text is
shown as `\\0` or `\\xff`. Bytes may come in any pieces: what comes out does not depend on where they were cut.
"""

from __future__ import annotations

import codecs
import re

# What needs no care: tab, line feed and the printable part of ASCII; and, but for what follows C2, all other characters.
_PLAIN_BYTES = bytes([9, 10, *range(32, 127)])
_TEXT_BYTES = _PLAIN_BYTES + bytes(byte for byte in range(128, 256) if byte != 0xC2)
_SPECIAL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_COLOUR = re.compile(r"\x1b\[[0-9;:]*m")
# A terminal's own strings (window titles, links) end soon; one that does not is something else.
_MAX_STRING = 4096
_TOKEN = re.compile(
    r"(?P<text>[^\x00-\x08\x0a-\x1f\x7f-\x9f]+)|(?P<control>[\n\r\x08])"
    r"|\x1b\[(?P<numbers>[0-?]*)[ -/]*(?P<command>[@-~])"
    rf"|\x1b[\]PX^_][^\x07\x1b]{{0,{_MAX_STRING}}}(?:\x07|\x1b\\)"
    r"|\x1b[ -/]*[0-~]"
    r"|(?P<stray>[\x00-\x06\x0b\x0c\x10-\x1a\x1c-\x1f\x80-\x9f]+)"
    r"|[\x07\x0e\x0f\x1b\x7f]"  # bell, other character sets, a lone escape, delete: nothing to see
)
# The start of an escape sequence whose rest has not come yet.
_BEGUN = re.compile(rf"\x1b(?:\[[0-?]*[ -/]*|[\]PX^_][^\x07\x1b]{{0,{_MAX_STRING}}}\x1b?|[ -/]*)")
# A line is drawn in parts of this length: a carriage return goes back to the beginning of a part.
_PART_CHARS = 8192


def clean(data: bytes) -> str:
    """A whole output."""
    if data.isascii() and not data.translate(None, _PLAIN_BYTES):
        return data.decode("ascii")
    cleaner = TextCleaner()
    return cleaner.feed(data) + cleaner.finish()


class TextCleaner:
    """The same for an output that comes in pieces. The line that is being drawn is held back until it ends."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("backslashreplace")
        self._begun = ""
        self._line, self._column = "", 0

    def feed(self, data: bytes) -> str:
        # Looking for single characters in bytes is many times faster than a pattern that finds all of them in text.
        strays = data.translate(None, _TEXT_BYTES)
        is_usual = not (strays.strip(b"\x1b\r") or self._begun or self._decoder.getstate()[0])
        text = self._begun + self._decoder.decode(data)
        if strays or self._begun:
            text, self._begun = _without_begun(text)
        return self._draw(text, is_usual=is_usual)

    def finish(self) -> str:
        """What was held back. Half of an escape sequence is dropped."""
        rest = self._decoder.decode(b"", final=True)
        drawn = self._draw(self._begun + rest) if rest else ""
        drawn += self._line
        self._begun, self._line, self._column = "", "", 0
        return drawn

    def _draw(self, text: str, *, is_usual: bool = False) -> str:
        """`is_usual`: of all controls there are but escapes and carriage returns."""
        # Most coloured output has nothing but colours, and most carriage returns end a line.
        if "\x1b" in text:
            colourless, count = _COLOUR.subn("", text)
            text = colourless if count == text.count("\x1b") else text
        if "\r" in text and text.count("\r") == text.count("\r\n"):
            text = text.replace("\r\n", "\n")
        has_special = "\x1b" in text or "\r" in text or (not is_usual and _SPECIAL.search(text) is not None)
        if self._column == len(self._line) and not has_special:
            return self._append(text)
        return "".join(self._put(match) for match in _TOKEN.finditer(text))

    def _append(self, text: str) -> str:
        text = self._line + text
        ended = text.rfind("\n") + 1
        ended += (len(text) - ended) // _PART_CHARS * _PART_CHARS
        self._line = text[ended:]
        self._column = len(self._line)
        return text[:ended]

    def _put(self, match: re.Match[str]) -> str:
        kind = match.lastgroup
        if kind == "text":
            return self._write(match.group())
        if kind == "control":
            return self._control(match.group())
        if kind == "command":
            return self._command(match.group("command"), match.group("numbers"))
        if kind == "stray":
            return self._write("".join("\\0" if char == "\0" else f"\\x{ord(char):02x}" for char in match.group()))
        return ""

    def _write(self, text: str) -> str:
        ended = ""
        while text:
            part, text = text[: _PART_CHARS - self._column], text[_PART_CHARS - self._column :]
            after = self._column + len(part)
            if self._column == len(self._line):
                self._line += part
            else:
                self._line = self._line[: self._column].ljust(self._column) + part + self._line[after:]
            self._column = after
            if after == _PART_CHARS:
                ended += self._line
                self._line, self._column = "", 0
        return ended

    def _control(self, control: str) -> str:
        if control == "\n":
            return self._end_line()
        self._column = 0 if control == "\r" else max(0, self._column - 1)
        return ""

    def _end_line(self) -> str:
        line, self._line, self._column = self._line, "", 0
        return line + "\n"

    def _command(self, command: str, numbers: str) -> str:
        """Those that progress bars and prompts are drawn with."""
        first = numbers.partition(";")[0]
        count = int(first[:5]) if first.isascii() and first.isdigit() else 0
        if command == "K":
            self._erase(count)
        elif command in "CDG":
            there = {"C": self._column + max(1, count), "D": self._column - max(1, count), "G": count - 1}[command]
            self._column = min(max(0, there), _PART_CHARS - 1)
        elif command in "ABEFHdf" and self._line:  # to another line: what follows is not part of this one
            return self._end_line()
        return ""

    def _erase(self, how: int) -> None:
        if how == 0:
            self._line = self._line[: self._column]
        elif how == 1:
            self._line = " " * min(self._column + 1, len(self._line)) + self._line[self._column + 1 :]
        else:
            self._line = ""


def _without_begun(text: str) -> tuple[str, str]:
    """The text, and the escape sequence at its end that is not complete."""
    at = text.rfind("\x1b")
    if at == -1:
        return text, ""
    if at == len(text) - 1:  # it may be the end of a terminal's string
        earlier = text.rfind("\x1b", 0, at)
        at = earlier if earlier != -1 and _BEGUN.fullmatch(text, earlier) else at
    return (text[:at], text[at:]) if _BEGUN.fullmatch(text, at) else (text, "")
