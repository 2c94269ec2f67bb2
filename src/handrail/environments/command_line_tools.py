"""Run a command-line tool of this machine, such as `docker`, with a timeout, and return what it printed."""

import os
import re
import select
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from typing import IO, NamedTuple

_MESSAGE_CHARS = 2000
_READ_BYTES = 1 << 16
_SETTLE_SECONDS = 5.0
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")  # some tools colour their errors even without a terminal


class Answer(NamedTuple):
    """`code` is None if the program timed out and was killed. `message` is the end of its error output."""

    code: int | None
    out: str
    message: str

    @property
    def ok(self) -> bool:
        return self.code == 0


def ask(
    words: Sequence[str],
    *,
    seconds: float,
    cwd: str | None = None,
    env: Mapping[str, str] | None = None,
    listener: Callable[[str], None] | None = None,
) -> Answer:
    """Run it to its end. A `listener`, for a long one, gets each line as it is printed."""
    try:
        process = subprocess.Popen(
            list(words),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE if listener is None else subprocess.STDOUT,
            cwd=cwd,
            env=env,
            start_new_session=True,  # a Ctrl-C on our terminal is for us
        )
    except OSError as error:
        return Answer(127, "", f"{words[0]} cannot be run: {error.strerror}")
    with process:
        try:
            if listener is None:
                out, message = process.communicate(timeout=seconds)
            else:
                assert process.stdout is not None
                out = message = _forward_lines(process.stdout, listener, time.monotonic() + seconds)
                process.wait(_SETTLE_SECONDS)
        except subprocess.TimeoutExpired:
            _kill(process)
            return Answer(None, "", f"timed out after {seconds:g} s")
        except BaseException:
            _kill(process)
            raise
    return Answer(process.returncode, _text(out), _COLOUR.sub("", _text(message))[-_MESSAGE_CHARS:].strip())


def _forward_lines(pipe: IO[bytes], listener: Callable[[str], None], end: float) -> bytes:
    """Pass each line to the listener until the pipe is closed. Returns the last part."""
    kept = line = b""
    while select.select([pipe], [], [], max(0.0, end - time.monotonic()))[0]:
        data = os.read(pipe.fileno(), _READ_BYTES)
        if not data:
            return kept
        kept = (kept + data)[-_MESSAGE_CHARS:]
        *lines, line = (line + data).replace(b"\r", b"\n").split(b"\n")
        for whole in filter(None, map(bytes.strip, lines)):
            listener(_text(whole))
    raise subprocess.TimeoutExpired("", 0)


def _kill(process: subprocess.Popen[bytes]) -> None:
    os.killpg(process.pid, signal.SIGKILL)  # it was not waited for: the pid is still its own
    process.wait()


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")
