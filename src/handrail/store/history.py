"""A log of every action that passed the gate, one line each, so that another policy can be tried on it."""

from __future__ import annotations

import contextlib
import json
import logging
import os
from collections.abc import Iterator
from pathlib import Path

from ..types import JsonDict

log = logging.getLogger(__name__)

_WRITES_BETWEEN_CHECKS = 64
_MAX_TEXT = 4000
_encoder = json.JSONEncoder(separators=(",", ":"))


class ActionHistory:
    """An append-only file, one write per line: a few microseconds, and intact after a kill.

    At half of `max_bytes` it replaces the previous old file, and a new one is started.
    """

    def __init__(self, path: Path, *, max_bytes: int = 16 << 20) -> None:
        self.path = path
        self._old = path.with_name(path.name + ".old")
        self._max_bytes = max_bytes
        self._file = -1
        self._process = 0
        self._until_check = 0
        self._is_broken = False

    def add(self, line: JsonDict) -> None:
        """Never fails: harmless actions must not stop because a disk is full. The problem is logged once."""
        text = line["text"]
        if len(text) > _MAX_TEXT:
            line = {**line, "text": text[:_MAX_TEXT], "cut": len(text)}
        data = _encoder.encode(line).encode() + b"\n"
        try:
            if self._until_check <= 0 or self._process != os.getpid():
                self._check()
            self._until_check -= 1
            os.write(self._file, data)
        except OSError as error:
            if not self._is_broken:
                log.warning("the history of actions cannot be written to %s: %s", self.path, error.strerror)
            self._is_broken = True

    def lines(self) -> Iterator[JsonDict]:
        """The recorded actions, oldest first. A line that was cut off by a full disk is skipped."""
        for path in (self._old, self.path):
            with contextlib.suppress(FileNotFoundError), path.open(encoding="utf-8", errors="replace") as file:
                for text in file:
                    with contextlib.suppress(ValueError):
                        line = json.loads(text)
                        if isinstance(line, dict):
                            yield line

    def close(self) -> None:
        if self._file >= 0 and self._process == os.getpid():
            os.close(self._file)
        self._file, self._until_check = -1, 0

    def _check(self) -> None:
        """Reopen the current file: another process may have rotated it, or it is time to."""
        self.close()
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with contextlib.suppress(FileNotFoundError):
            if self.path.stat().st_size > self._max_bytes // 2:
                os.replace(self.path, self._old)
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
        self._file = os.open(self.path, flags, 0o600)
        self._process, self._until_check, self._is_broken = os.getpid(), _WRITES_BETWEEN_CHECKS, False
