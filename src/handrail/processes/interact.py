"""Type into a background process, and wait for its reaction.

The names of keys:

a single character           itself
ENTER TAB ESC SPACE …        a key by its name, in any case
C-c  ^c  CTRL+C              with Control
M-x  ALT+X                   with Meta, which most keyboards call Alt
S-TAB  C-LEFT  C-M-x         Shift, and several at once
"""

import re
import time
from typing import NamedTuple

from ..base.suggest import did_you_mean
from ..environments.base import ProcessState
from ..errors import InvalidArguments
from ..types import CancelToken
from .tracked import State, Status, TrackedProcess

_POLL_SECONDS, _SLICE_SECONDS = 0.02, 0.25
# An editor reads its terminal for a moment before it continues or ends, and a program that reads a pipe may do other work at the
# same time: only if the reading lasts does a program wait for input.
_STEADY_SECONDS, _STEADY_ON_A_PIPE_SECONDS = 0.2, 2.0
_TYPED_KEPT = 10_000
_KEYS_ON_A_PIPE = {"ENTER": "\n", "TAB": "\t", "SPACE": " "}
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


class Typed(NamedTuple):
    """The bytes to send, and the current line with them."""

    data: bytes
    line: str


def typed(tracked: TrackedProcess, text: str, keys: list[str], *, enter: bool) -> Typed:
    """The bytes for a text, the keys after it, and Enter if asked for. Raises InvalidArguments for a key that is not known."""
    if tracked.record.has_pty:
        # Programs select other cursor keys at their start, and only the screen knows.
        application = bool(keys) and tracked.screen().wants_application_keys
        data = text.encode("utf-8", "replace") + encode(keys, application=application) + (b"\r" if enter else b"")
    else:
        data = (text + "".join(map(_on_a_pipe, keys)) + ("\n" if enter else "")).encode("utf-8", "replace")
    return Typed(data, tracked.typed + data.decode("utf-8", "replace"))


def _on_a_pipe(key: str) -> str:
    text = _KEYS_ON_A_PIPE.get(key.upper(), key if len(key) == 1 else "")
    if not text:
        raise InvalidArguments(
            f"key {key!r} needs a terminal, and this process has none: end its input with close, end it with kill, "
            "or start it with pty"
        )
    return text


def send(tracked: TrackedProcess, what: Typed) -> None:
    tracked.use(lambda process: process.write(what.data))
    tracked.typed = what.line.replace("\r", "\n").rpartition("\n")[2][-_TYPED_KEPT:]  # empty after an end of line


def settle(tracked: TrackedProcess, timeout: float, cancel: CancelToken | None = None) -> None:
    """Wait until it has read its input: it waits for more, has ended, or the timeout is over."""
    end = time.monotonic() + timeout
    before, waits_since = -1, None
    while (now := time.monotonic()) < end and not (cancel is not None and cancel.cancelled):
        status = tracked.use(lambda process: process.wait(min(_POLL_SECONDS, end - now), cancel=cancel))
        at = tracked.end_of_log()
        # Right after a write it may still seem to wait: there must be no output in between.
        is_waiting = at == before and tracked.waits_for_input()
        waits_since = (waits_since or now) if is_waiting else None
        before = at
        if status.state is not ProcessState.RUNNING or (waits_since and now - waits_since >= _STEADY_SECONDS):
            return


class Waited(NamedTuple):
    status: Status
    waits_for_input: bool
    seconds: float


def wait(tracked: TrackedProcess, timeout: float, cancel: CancelToken | None = None) -> Waited:
    """Wait until it has ended, it waits for input, the timeout is over, or `cancel` is set."""
    began = time.monotonic()
    waits_since: float | None = None
    steady = _STEADY_SECONDS if tracked.record.has_pty else _STEADY_ON_A_PIPE_SECONDS
    while True:
        status = tracked.status()
        now = time.monotonic()
        left = timeout - (now - began)
        if status.state is not State.RUNNING or left <= 0 or (cancel is not None and cancel.cancelled):
            return Waited(status, False, now - began)
        waits_since = (waits_since or now) if tracked.waits_for_input() else None
        if waits_since is not None and now - waits_since >= steady:
            return Waited(status, True, now - began)
        pause = min(left, _SLICE_SECONDS if waits_since is None else steady / 2)
        tracked.use(lambda process: process.wait(pause, cancel=cancel))  # noqa: B023  called immediately


def encode(names: list[str], *, application: bool = False) -> bytes:
    """What a terminal sends for these keys. `application`: the program has selected application cursor keys."""
    return b"".join(_encode(name, application=application).encode() for name in names)


def _encode(name: str, *, application: bool) -> str:
    key, modifiers = _parse(name)
    if key == "BTAB" or (key == "TAB" and "s" in modifiers):
        return "\x1b[Z"
    number = 1 + ("s" in modifiers) + 2 * ("m" in modifiers) + 4 * ("c" in modifiers)  # as xterm counts them
    if key in _CURSOR or key in _FIRST_FUNCTIONS:
        letter = _CURSOR.get(key) or _FIRST_FUNCTIONS[key]
        if number > 1:
            return f"\x1b[1;{number}{letter}"
        return f"\x1bO{letter}" if application or key in _FIRST_FUNCTIONS else f"\x1b[{letter}"
    if key in _NUMBERED:
        return f"\x1b[{_NUMBERED[key]};{number}~" if number > 1 else f"\x1b[{_NUMBERED[key]}~"
    text = _PLAIN.get(key, key)
    if "s" in modifiers:
        text = text.upper()
    if "c" in modifiers:
        text = _with_control(text, name)
    return f"\x1b{text}" if "m" in modifiers else text


def _parse(name: str) -> tuple[str, set[str]]:
    """The key, and the first letters of its modifiers: shift, meta, control."""
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
    return rest, found


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
