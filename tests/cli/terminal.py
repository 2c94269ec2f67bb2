"""A command at a terminal: type into it, wait for what it shows."""

from __future__ import annotations

import codecs
import contextlib
import fcntl
import os
import pty
import re
import select
import signal
import struct
import termios
import time
from pathlib import Path
from types import TracebackType

from .. import fork_server

PATIENCE_SECONDS = 120.0


class Terminal:
    """`with Terminal(["-m", "handrail"], ...) as terminal:`; the process is gone at the end, whatever happened."""

    def __init__(self, python_arguments: list[str], *, cwd: Path, env: dict[str, str], columns: int) -> None:
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
        self.shown = ""
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")  # a piece may end within a character
        self._process = fork_server.start(
            *python_arguments, cwd=cwd, env=env, stdin=slave, stdout=slave, stderr=slave, start_new_session=True
        )
        os.close(slave)

    def __enter__(self) -> Terminal:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()
        os.close(self._master)

    @property
    def text(self) -> str:
        """What was shown, without colours and the like."""
        return re.sub(r"\x1b\[[0-9;]*m", "", self.shown)

    def type(self, text: str) -> None:
        os.write(self._master, text.encode())

    def interrupt(self) -> None:
        self._process.send_signal(signal.SIGINT)

    def wait_for(self, text: str, *, times: int = 1) -> None:
        """Wait until it shows the text; a line may break at any space of it."""
        wrapped = re.compile(r"\s+".join(map(re.escape, text.split(" "))))
        end = time.monotonic() + PATIENCE_SECONDS
        while max(self.shown.count(text), len(wrapped.findall(self.text))) < times:
            assert time.monotonic() < end, f"never showed {text!r}, but: {self.shown}"
            assert self._read(), f"ended without showing {text!r}: {self.shown}"

    def end(self) -> int:
        """Wait for the command's end; its exit code."""
        while self._read():
            pass
        return self._process.wait(PATIENCE_SECONDS)

    def _read(self) -> bool:
        ready, _, _ = select.select([self._master], [], [], PATIENCE_SECONDS)
        assert ready, f"nothing more came, and it did not end: {self.shown}"
        piece = b""
        with contextlib.suppress(OSError):  # Linux: the other side was closed
            piece = os.read(self._master, 65536)
        self.shown = (self.shown + self._decoder.decode(piece)).replace("\r\n", "\n")
        return bool(piece)
