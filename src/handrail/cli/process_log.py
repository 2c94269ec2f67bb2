"""Print a background process's log, to its end or as it grows."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from ..base.terminal_text import TextCleaner
from ..environments.base import ProcessState
from .output import emit, emit_bytes

if TYPE_CHECKING:
    from ..processes.tracked import TrackedProcess

_PIECE_BYTES = 1 << 20
_POLL_SECONDS = 60.0


def print_log(tracked: TrackedProcess, *, follow: bool) -> None:
    """Byte for byte into a file or a pipe; a person's terminal gets text alone, and obeys nothing in it."""
    cleaner = TextCleaner() if sys.stdout.isatty() else None
    offset = 0
    while True:
        piece = tracked.use(
            lambda process: process.read(offset, max_bytes=_PIECE_BYTES, timeout=_POLL_SECONDS if follow else 0)  # noqa: B023  called at once
        )
        offset = piece.offset + len(piece.data)
        if cleaner is not None:
            emit(cleaner.feed(piece.data), end="")
        else:
            emit_bytes(piece.data)
        if piece.data:
            continue
        if not follow or tracked.use(lambda process: process.poll()).state is not ProcessState.RUNNING:
            break
    if cleaner is not None:
        emit(cleaner.finish(), end="")
