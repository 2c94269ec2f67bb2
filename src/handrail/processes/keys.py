"""The names of keys, and what a terminal sends for them.

a single character           itself
ENTER TAB ESC SPACE …        a key by its name, in any case
C-c  ^c  CTRL+C              with Control
M-x  ALT+X                   with Meta, which most keyboards call Alt
S-TAB  C-LEFT  C-M-x         Shift, and several at once
"""

from __future__ import annotations

import re
from typing import NamedTuple

from ..base.suggest import did_you_mean
from ..errors import InvalidArguments

_PLAIN = {"ENTER": "\r", "TAB": "\t", "ESC": "\x1b", "SPACE": " ", "BACKSPACE": "\x7f"}
# The last letter of CSI; in a terminal's application mode of SS3.
_CURSOR = {"UP": "A", "DOWN": "B", "RIGHT": "C", "LEFT": "D", "END": "F", "HOME": "H"}
_NUMBERED = {"INSERT": 2, "DELETE": 3, "PAGEUP": 5, "PAGEDOWN": 6}
_NUMBERED |= dict(zip((f"F{n}" for n in range(5, 13)), (15, 17, 18, 19, 20, 21, 23, 24), strict=True))
_FIRST_FUNCTIONS = {"F1": "P", "F2": "Q", "F3": "R", "F4": "S"}
_OTHER_NAMES = {
    "RETURN": "ENTER", "CR": "ENTER", "ESCAPE": "ESC", "BSPACE": "BACKSPACE", "BS": "BACKSPACE", "DEL": "DELETE",
    "DC": "DELETE", "IC": "INSERT", "INS": "INSERT", "PGUP": "PAGEUP", "PPAGE": "PAGEUP", "PGDN": "PAGEDOWN",
    "PGDOWN": "PAGEDOWN", "NPAGE": "PAGEDOWN", "PAGE_UP": "PAGEUP", "PAGE_DOWN": "PAGEDOWN",
}  # fmt: skip
NAMES = (*_PLAIN, *_CURSOR, *_NUMBERED, *_FIRST_FUNCTIONS, "BTAB")
_WITH = re.compile(r"(c|ctrl|control|m|meta|a|alt|s|shift)[-+](?=.)", re.IGNORECASE)


class _Modified(NamedTuple):
    key: str
    shift: bool = False
    meta: bool = False
    control: bool = False

    @property
    def number(self) -> int:
        """As xterm counts them."""
        return 1 + self.shift + 2 * self.meta + 4 * self.control


def encode(names: list[str], *, application: bool = False) -> bytes:
    """What a terminal sends for these keys. `application`: the program has selected application cursor keys."""
    return b"".join(_encode(name, application=application).encode() for name in names)


def _encode(name: str, *, application: bool) -> str:
    modified = _parse(name)
    key = modified.key
    if key == "BTAB" or (key == "TAB" and modified.shift):
        return "\x1b[Z"
    if key in _CURSOR or key in _FIRST_FUNCTIONS:
        letter = _CURSOR.get(key) or _FIRST_FUNCTIONS[key]
        if modified.number > 1:
            return f"\x1b[1;{modified.number}{letter}"
        return f"\x1bO{letter}" if application or key in _FIRST_FUNCTIONS else f"\x1b[{letter}"
    if key in _NUMBERED:
        return f"\x1b[{_NUMBERED[key]};{modified.number}~" if modified.number > 1 else f"\x1b[{_NUMBERED[key]}~"
    text = _PLAIN.get(key, key)
    if modified.shift:
        text = text.upper()
    if modified.control:
        text = _with_control(text, name)
    return f"\x1b{text}" if modified.meta else text


def _parse(name: str) -> _Modified:
    rest, found = name, set()
    if len(rest) == 2 and rest[0] == "^":
        rest = f"C-{rest[1]}"
    while match := _WITH.match(rest):
        found.add(match[1][0].lower().replace("a", "m"))
        rest = rest[match.end() :]
    if len(rest) != 1:
        upper = rest.upper()
        rest = _OTHER_NAMES.get(upper, upper)
        if rest not in NAMES:
            raise InvalidArguments(
                f"there is no key {name!r}; {did_you_mean(upper, NAMES)}; a key may have C- (Control), M- (Alt) or "
                "S- (Shift) before it, such as C-c; text goes into data"
            )
    return _Modified(rest, "s" in found, "m" in found, "c" in found)


def _with_control(text: str, name: str) -> str:
    if text in (" ", "2"):
        return "\0"
    if text in ("?", "\x7f"):
        return {"?": "\x7f", "\x7f": "\x08"}[text]
    code = ord(text.upper())
    if text in ("\r", "\t", "\x1b"):
        return text  # the same with Control
    if not 64 <= code < 96:
        raise InvalidArguments(f"no terminal has a key {name!r}; Control goes with letters and @ [ \\ ] ^ _ ?")
    return chr(code & 31)
