"""What is typed while the agent works: shown as it is typed, and heard by the agent or kept for the chat once it is sent."""

import codecs
import re

from .pastes import Pastes

_KEY = re.compile(
    r"\x1b\[200~(?P<pasted>.*?)\x1b\[201~"  # as terminals mark it
    r"|(?P<shift_tab>\x1b\[Z)"
    r"|\x1b\[(?!200~)[0-?]*[ -/]*[@-~]|\x1bO."  # arrows and the like: there is one place to type, the end
    r"|\x1b(?P<with_alt>[^\[O])|(?P<plain>[^\x1b])",
    re.DOTALL,
)
COMMAND_SIGNS = ("/", "!")  # of a line on which the chat acts, not the agent
_ENDS = ("\r", "\n")
_MAX_PENDING = 1_000_000  # a paste that never ends


class TypedAhead:
    """`lines` are whole messages, `text` is the one that is being typed. Both have the marks of `pastes`."""

    def __init__(self, text: str = "", pastes: Pastes | None = None) -> None:
        self._pastes = pastes or Pastes()
        self.lines: list[str] = []
        self.text = text
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._pending = ""
        self.escaped = False  # Esc was pressed, by itself
        self.opened = False  # Ctrl-O was pressed
        self.modes = 0  # how often Shift-Tab was pressed

    def feed(self, data: bytes) -> None:
        """What came from the terminal, in any pieces; b"" when nothing came for a moment."""
        if not data and self._pending == "\x1b":  # the beginning of no other key: those come in one piece
            self._pending, self.escaped = "", True
        self._pending += self._decoder.decode(data)
        place = 0
        while match := _KEY.match(self._pending, place):
            place = match.end()
            if (pasted := match["pasted"]) is not None:
                self.text += self._pastes.folded(pasted.replace("\r\n", "\n").replace("\r", "\n"))
            elif match["shift_tab"]:
                self.modes += 1
            elif (key := match["with_alt"] or match["plain"]) is not None:
                self._press(key, with_alt=match["with_alt"] is not None)
        self._pending = self._pending[place:][:_MAX_PENDING]

    def _press(self, key: str, *, with_alt: bool) -> None:
        if key in _ENDS and (with_alt or self.text.endswith("\\")):
            self.text = (self.text if with_alt else self.text[:-1]) + "\n"
        elif key in _ENDS:
            if self.text.strip():
                self.lines.append(self.text)
            self.text = ""
        elif key in ("\x7f", "\x08"):
            self.text = self.text[:-1]
        elif key == "\x0f":
            self.opened = True
        elif key == "\x15":  # Ctrl-U
            self.text = ""
        elif key == "\x17":  # Ctrl-W
            self.text = re.sub(r"\S*\s*\Z", "", self.text)
        elif key.isprintable() and not with_alt:
            self.text += key
