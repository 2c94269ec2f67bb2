"""Long results, one private file each: they are streamed and searched, and can be hundreds of megabytes."""

import contextlib
import os
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ..config.paths import replace_private
from ..errors import ResultNotFound
from ..protocols import StoredResult

_VALID_ID = re.compile(r"r_[0-9a-f]{16}")
_DAY_SECONDS = 86_400
_PART, _CLOCK = ".new-", ".clock"
_TICKS = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)  # the first one counts while the machine sleeps, too


@dataclass(frozen=True)
class FileResultStore:
    """Results in a folder that only its owner can read. The oldest are deleted first, by age and by total size."""

    folder: Path
    keep_days: float = 7
    max_total_bytes: int = 1 << 30

    def put(self, tool: str, text: str) -> StoredResult:
        writer = self.writer(tool)
        try:
            writer.write(text)
            return writer.finish()
        except BaseException:
            writer.discard()
            raise

    def writer(self, tool: str) -> "FileResultWriter":
        import secrets

        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        result_id = f"r_{secrets.token_hex(8)}"
        return FileResultWriter(tool, result_id, self._path(result_id), self._prune)

    def get(self, result_id: str) -> str:
        if not _VALID_ID.fullmatch(result_id):
            raise ResultNotFound(f"{result_id!r} is not a result id; one looks like r_0123456789abcdef")
        try:
            return self._path(result_id).read_bytes().decode("utf-8", "replace")
        except FileNotFoundError:
            raise ResultNotFound(f"no result {result_id}: results are kept for a limited time") from None

    def _path(self, result_id: str) -> Path:
        return self.folder / f"{result_id}.txt"

    def _prune(self, new: str, now: float) -> None:
        """Make room for a new file. What another call is still writing stays; what a killed process left of one goes."""
        total, files = os.stat(new).st_size, []
        for entry in os.scandir(self.folder):
            if entry.path == new or entry.name.startswith(_CLOCK):
                continue
            with contextlib.suppress(FileNotFoundError):
                if not entry.name.startswith(_PART):
                    files.append((entry.stat().st_mtime, entry.stat().st_size, entry.path))
                elif not _removed_if_left(entry.path):
                    total += entry.stat().st_size
        for modified, size, path in sorted(files, reverse=True):
            total += size
            if now - modified > self.keep_days * _DAY_SECONDS or total > self.max_total_bytes:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(path)


def _removed_if_left(path: str) -> bool:
    """Remove a part that nobody writes any more. False: somebody does."""
    import fcntl  # most starts store no result

    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.unlink(path)  # while it is locked: a writer that has just made it sees that it is gone
    except BlockingIOError:
        return False
    finally:
        os.close(fd)
    return True


def _now(path: Path) -> float:
    """A time that only ever passes: it goes on from when it was last read, however the clocks of the machine are set. While the
    machine was off, a day passes at most."""
    from ..base.own_process import boot_id  # most starts store no result

    boot, ticks, now = boot_id(), time.clock_gettime(_TICKS), time.time()
    with contextlib.suppress(OSError, ValueError):
        known_boot, known_ticks, known = path.read_text("ascii").split()
        off = min(max(0.0, now - float(known)), _DAY_SECONDS)
        now = float(known) + (max(0.0, ticks - float(known_ticks)) if known_boot == boot else off)
    with contextlib.suppress(OSError):
        replace_private(path, f"{boot} {ticks} {now}")
    return now


class FileResultWriter:
    """Writes to a temporary file, and renames it when it is complete; older results are pruned then."""

    def __init__(self, tool: str, result_id: str, path: Path, prune: Callable[[str, float], None]) -> None:
        import fcntl  # likewise
        import tempfile

        self._result = StoredResult(result_id, tool, 0, 1)
        self._path, self._prune = path, prune
        while True:
            handle, self._temporary = tempfile.mkstemp(dir=path.parent, prefix=_PART)
            fcntl.flock(handle, fcntl.LOCK_EX)  # whoever makes room sees that somebody writes
            if os.fstat(handle).st_nlink:  # else it was taken for left over before it was locked
                break
            os.close(handle)
        self._file = os.fdopen(handle, "wb", buffering=0)

    def write(self, text: str) -> None:
        encoded = text.encode("utf-8", "replace")
        data = memoryview(encoded)
        while data:
            data = data[self._file.write(data) :]
        _, _, chars, lines = self._result
        self._result = self._result._replace(chars=chars + len(text), lines=lines + encoded.count(b"\n"))

    def finish(self) -> StoredResult:
        now = _now(self._path.with_name(_CLOCK))
        self._prune(self._temporary, now)
        os.utime(self._temporary, (now, now))
        os.replace(self._temporary, self._path)
        self._file.close()
        return self._result

    def discard(self) -> None:
        self._file.close()
        with contextlib.suppress(OSError):
            os.unlink(self._temporary)
