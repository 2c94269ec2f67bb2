"""One thread that polls all watched processes. There is none while nothing is watched."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .tracked import TrackedProcess

log = logging.getLogger(__name__)

_FIRST_PAUSE_SECONDS, _MAX_PAUSE_SECONDS = 0.02, 0.5
_END_SECONDS = 5.0


class PollResult(Enum):
    """What polling one process found."""

    QUIET = "quiet"
    NEWS = "news"
    OVER = "over"  # there is nothing more to come from it


class Watcher:
    """`poll` is called for each process in turn."""

    def __init__(self, poll: Callable[[TrackedProcess], PollResult]) -> None:
        self._poll = poll
        self._watched: dict[str, TrackedProcess] = {}
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._is_closed = False

    def watch(self, process: TrackedProcess) -> None:
        with self._changed:
            if self._is_closed:
                return
            self._watched[process.id] = process
            if self._thread is None or not self._thread.is_alive():  # a forked child has none
                self._thread = threading.Thread(target=self._run, name="handrail-processes", daemon=True)
                self._thread.start()
            self._changed.notify_all()

    def forget(self, id: str) -> None:  # noqa: A002  the process's id
        with self._changed:
            self._watched.pop(id, None)

    def close(self) -> None:
        with self._changed:
            self._is_closed = True
            self._watched.clear()
            thread = self._thread
            self._changed.notify_all()
        if thread is not None and thread is not threading.current_thread():
            thread.join(_END_SECONDS)

    def _run(self) -> None:
        pause = _FIRST_PAUSE_SECONDS
        while True:
            with self._changed:
                if self._changed.wait(pause):
                    pause = _FIRST_PAUSE_SECONDS
                watched = list(self._watched.values())
                if not watched:
                    self._thread = None
                    return
            is_quiet = {self._poll_safely(process) for process in watched} == {PollResult.QUIET}
            pause = min(pause * 1.3, _MAX_PAUSE_SECONDS) if is_quiet else _FIRST_PAUSE_SECONDS

    def _poll_safely(self, process: TrackedProcess) -> PollResult:
        try:
            result = self._poll(process)
        except Exception as error:  # noqa: BLE001  one process's trouble must not leave the others unwatched
            log.warning("process %s can no longer be watched: %s: %s", process.id, type(error).__name__, error)
            result = PollResult.OVER
        if result is PollResult.OVER:
            self.forget(process.id)
        return result
