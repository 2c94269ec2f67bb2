"""Type into a background process, and wait for its reaction."""

from __future__ import annotations

import time
from typing import NamedTuple

from ..environments.base import ProcessState
from ..errors import InvalidArguments
from ..types import CancelToken
from .keys import encode
from .tracked import State, Status, TrackedProcess

_POLL_SECONDS = 0.02
_SLICE_SECONDS = 0.25
# An editor reads its terminal for a moment before it continues or ends, and a program that reads a pipe may do other work at the
# same time: only if the reading lasts does a program wait for input.
_STEADY_SECONDS = 0.2
_STEADY_ON_A_PIPE_SECONDS = 2.0
_TYPED_KEPT = 10_000
_KEYS_ON_A_PIPE = {"ENTER": "\n", "TAB": "\t", "SPACE": " "}


class Typed(NamedTuple):
    """The bytes to send, and the current line with them."""

    data: bytes
    line: str

    def line_after(self) -> str:
        """The current line after this was typed: empty after an end of line."""
        return self.line.replace("\r", "\n").rpartition("\n")[2][-_TYPED_KEPT:]


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
    tracked.typed = what.line_after()


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
