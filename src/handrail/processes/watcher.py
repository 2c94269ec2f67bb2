"""One thread that looks at all watched processes. There is none while nothing is watched."""

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


class Look(Enum):
    """What came of looking at one process."""

    QUIET = "quiet"
    NEWS = "news"
    OVER = "over"  # there is nothing more to come from it


class Watcher:
    """`look` is called for each in turn, and says what came of it."""

    def __init__(self, look: Callable[[TrackedProcess], Look]) -> None:
        self._look = look
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

    def forget(self, id: str) -> None:  # noqa: A002  what it is
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
            is_quiet = {self._look_safely(process) for process in watched} == {Look.QUIET}
            pause = min(pause * 1.3, _MAX_PAUSE_SECONDS) if is_quiet else _FIRST_PAUSE_SECONDS

    def _look_safely(self, process: TrackedProcess) -> Look:
        try:
            look = self._look(process)
        except Exception as error:  # noqa: BLE001  one process's trouble must not leave the others unwatched
            log.warning("process %s cannot be watched any more: %s: %s", process.id, type(error).__name__, error)
            look = Look.OVER
        if look is Look.OVER:
            self.forget(process.id)
        return look
