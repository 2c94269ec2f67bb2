"""Take turns, one at a time, first come first served; a waiter holds a future and no thread."""

from __future__ import annotations

import threading
from collections import deque
from concurrent.futures import Future


class Turns:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: deque[Future[None]] = deque()

    def take(self) -> Future[None]:
        """A future that is done when it is the caller's turn. Call `leave` for each, also one that never came."""
        turn: Future[None] = Future()
        with self._lock:
            self._waiting.append(turn)
            is_first = len(self._waiting) == 1
        if is_first:
            _begin(turn)
        return turn

    def leave(self, turn: Future[None]) -> None:
        with self._lock:
            was_first = bool(self._waiting) and self._waiting[0] is turn
            self._waiting.remove(turn)
            following = self._waiting[0] if was_first and self._waiting else None
        if following is not None:
            _begin(following)


def _begin(turn: Future[None]) -> None:
    if turn.set_running_or_notify_cancel():
        turn.set_result(None)
