"""Run a process that cannot outlive the call it works for."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterator, Sequence

    from .query import Query


class Child:
    """A running process. When the query's time is over or it is cancelled, its whole group is killed."""

    def __init__(self, process: subprocess.Popen[bytes], errors: IO[bytes], query: Query) -> None:
        self._process, self._errors, self._query = process, errors, query
        self._overdue = threading.Event()
        self._ended = threading.Lock()
        self.stdin, self.stdout = process.stdin, process.stdout

    def wait(self) -> tuple[int, str]:
        """The exit status and what was written to stderr. Raises CallCancelled or CallTimeout when it was killed."""
        status = self._process.wait()
        self.check()
        self._errors.seek(0)
        return status, self._errors.read(10_000).decode("utf-8", "replace")

    def check(self) -> None:
        """Raise CallCancelled or CallTimeout when that is why the process is gone."""
        self._query.cancel.raise_if_cancelled()
        if self._overdue.is_set():
            raise self._query.too_long()

    def overdue(self) -> None:
        self._overdue.set()
        self.kill()

    def kill(self) -> None:
        with self._ended:
            if self._process.poll() is None:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(self._process.pid, signal.SIGKILL)

    def close(self) -> None:
        self.kill()
        for stream in (self.stdin, self.stdout):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()
        self._process.wait()


@contextlib.contextmanager
def child_of(query: Query, argv: Sequence[str], *, cwd: str | None = None, feed: bool = False) -> Iterator[Child]:
    """Start `argv` without a shell, in a process group of its own. It is dead when the block is left, however it is."""
    import subprocess
    import tempfile

    query.check()
    # stderr goes to a file, which need not be emptied while stdout is read.
    with tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(
            argv,
            cwd=cwd,
            stdin=subprocess.PIPE if feed else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            start_new_session=True,
        )
        child = Child(process, errors, query)
        timer = threading.Timer(max(0.0, query.seconds_left), child.overdue)
        timer.daemon = True
        timer.start()
        forget = query.cancel.on_cancel(child.kill)
        try:
            yield child
        finally:
            forget()
            timer.cancel()
            child.close()
