"""Ask a program of this machine, such as `docker`, by its command line: bounded in time, with what it said."""

from __future__ import annotations

import os
import re
import select
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from typing import IO, NamedTuple

_SAID_CHARS = 2000
_READ_BYTES = 1 << 16
_SETTLE_SECONDS = 5.0
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")  # some colour their complaints for anyone


class Answer(NamedTuple):
    """`code` is None when the program did not end in time, and was killed. `said` is the end of what it complained."""

    code: int | None
    out: str
    said: str

    @property
    def is_good(self) -> bool:
        return self.code == 0


def ask(
    words: Sequence[str],
    *,
    seconds: float,
    cwd: str | None = None,
    listener: Callable[[str], None] | None = None,
) -> Answer:
    """Run it to its end. With a listener, for one that takes long, each line that it prints goes there as it comes."""
    try:
        process = subprocess.Popen(
            list(words),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE if listener is None else subprocess.STDOUT,
            cwd=cwd,
            start_new_session=True,  # a Ctrl-C on our terminal is for us
        )
    except OSError as error:
        return Answer(127, "", f"{words[0]} cannot be run: {error.strerror}")
    with process:
        try:
            if listener is None:
                out, said = process.communicate(timeout=seconds)
            else:
                assert process.stdout is not None
                out = said = _passed_on(process.stdout, listener, time.monotonic() + seconds)
                process.wait(_SETTLE_SECONDS)
        except subprocess.TimeoutExpired:
            _kill(process)
            return Answer(None, "", f"it did not end within {seconds:g} s")
        except BaseException:
            _kill(process)
            raise
    return Answer(process.returncode, _text(out), _COLOUR.sub("", _text(said))[-_SAID_CHARS:].strip())


def _passed_on(pipe: IO[bytes], listener: Callable[[str], None], end: float) -> bytes:
    """Give on each line, until the pipe is closed. What is returned is the last part."""
    kept = line = b""
    while select.select([pipe], [], [], max(0.0, end - time.monotonic()))[0]:
        data = os.read(pipe.fileno(), _READ_BYTES)
        if not data:
            return kept
        kept = (kept + data)[-_SAID_CHARS:]
        *lines, line = (line + data).replace(b"\r", b"\n").split(b"\n")
        for whole in filter(None, map(bytes.strip, lines)):
            listener(_text(whole))
    raise subprocess.TimeoutExpired("", 0)


def _kill(process: subprocess.Popen[bytes]) -> None:
    os.killpg(process.pid, signal.SIGKILL)  # it was not waited for: the pid is still its own
    process.wait()


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")
