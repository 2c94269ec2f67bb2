"""Long results, one private file each: they are streamed and greped, and can be hundreds of megabytes."""

from __future__ import annotations

import contextlib
import os
import re
import time
from pathlib import Path

from ..errors import ResultNotFound
from ..protocols import StoredResult

_VALID_ID = re.compile(r"r_[0-9a-f]{16}")
_DAY_SECONDS = 86_400


class FileResultStore:
    """Results in a folder that only its owner can read. Old ones go first, by age and by total size."""

    def __init__(self, folder: Path, *, keep_days: float = 7, max_total_bytes: int = 1 << 30) -> None:
        self._folder = folder
        self._keep_seconds = keep_days * _DAY_SECONDS
        self._max_total_bytes = max_total_bytes

    def put(self, tool: str, text: str) -> StoredResult:
        import secrets
        import tempfile

        data = text.encode("utf-8", "replace")
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._prune(room_for=len(data))
        result_id = f"r_{secrets.token_hex(8)}"
        handle, temporary = tempfile.mkstemp(dir=self._folder, prefix=".new-")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
            os.replace(temporary, self._path(result_id))
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
            raise
        return StoredResult(result_id, tool, len(text), text.count("\n") + 1)

    def get(self, result_id: str) -> str:
        if not _VALID_ID.fullmatch(result_id):
            raise ResultNotFound(f"{result_id!r} is not a result id; one looks like r_0123456789abcdef")
        try:
            return self._path(result_id).read_bytes().decode("utf-8", "replace")
        except FileNotFoundError:
            raise ResultNotFound(f"no result {result_id}: results are kept for a limited time") from None

    def _path(self, result_id: str) -> Path:
        return self._folder / f"{result_id}.txt"

    def _prune(self, *, room_for: int) -> None:
        """Also takes away what a killed process left half-written."""
        now, total = time.time(), room_for
        files = []
        for entry in os.scandir(self._folder):
            with contextlib.suppress(FileNotFoundError):
                files.append((entry.stat().st_mtime, entry.stat().st_size, entry.path))
        for modified, size, path in sorted(files, reverse=True):
            total += size
            if now - modified > self._keep_seconds or total > self._max_total_bytes:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(path)
