"""Long results, one private file each: they are streamed and searched, and can be hundreds of megabytes."""

from __future__ import annotations

import contextlib
import os
import re
import time
from collections.abc import Callable
from pathlib import Path

from ..errors import ResultNotFound
from ..protocols import StoredResult

_VALID_ID = re.compile(r"r_[0-9a-f]{16}")
_DAY_SECONDS = 86_400


class FileResultStore:
    """Results in a folder that only its owner can read. The oldest are deleted first, by age and by total size."""

    def __init__(self, folder: Path, *, keep_days: float = 7, max_total_bytes: int = 1 << 30) -> None:
        self._folder = folder
        self._keep_seconds = keep_days * _DAY_SECONDS
        self._max_total_bytes = max_total_bytes

    def put(self, tool: str, text: str) -> StoredResult:
        writer = self.writer(tool)
        try:
            writer.write(text)
            return writer.finish()
        except BaseException:
            writer.discard()
            raise

    def writer(self, tool: str) -> FileResultWriter:
        import secrets

        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
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
        return self._folder / f"{result_id}.txt"

    def _prune(self, new: str) -> None:
        """Make room for a new file. Also deletes what a killed process left half-written."""
        now, total = time.time(), os.stat(new).st_size
        files = []
        for entry in os.scandir(self._folder):
            if entry.path == new:
                continue
            with contextlib.suppress(FileNotFoundError):
                files.append((entry.stat().st_mtime, entry.stat().st_size, entry.path))
        for modified, size, path in sorted(files, reverse=True):
            total += size
            if now - modified > self._keep_seconds or total > self._max_total_bytes:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(path)


class FileResultWriter:
    """Writes to a temporary file, and renames it when it is complete; older results are pruned then."""

    def __init__(self, tool: str, result_id: str, path: Path, prune: Callable[[str], None]) -> None:
        import tempfile

        self._result = StoredResult(result_id, tool, 0, 1)
        self._path, self._prune = path, prune
        handle, self._temporary = tempfile.mkstemp(dir=path.parent, prefix=".new-")
        self._file = os.fdopen(handle, "wb", buffering=0)

    def write(self, text: str) -> None:
        encoded = text.encode("utf-8", "replace")
        data = memoryview(encoded)
        while data:
            data = data[self._file.write(data) :]
        _, _, chars, lines = self._result
        self._result = self._result._replace(chars=chars + len(text), lines=lines + encoded.count(b"\n"))

    def finish(self) -> StoredResult:
        self._file.close()
        self._prune(self._temporary)
        os.replace(self._temporary, self._path)
        return self._result

    def discard(self) -> None:
        self._file.close()
        with contextlib.suppress(OSError):
            os.unlink(self._temporary)
