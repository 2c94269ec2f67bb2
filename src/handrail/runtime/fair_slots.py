"""Share a limited number of places fairly between sessions."""

from __future__ import annotations

import threading
from collections import OrderedDict, deque
from concurrent.futures import Future


class FairSlots:
    """A session with a thousand calls waiting does not hold up another's first: places are given in turn."""

    def __init__(self, total: int, per_session: int) -> None:
        self._total = total
        self._per_session = per_session
        self._free = total
        self._used: dict[str, int] = {}
        self._waiting: OrderedDict[str, deque[Future[None]]] = OrderedDict()
        self._lock = threading.Lock()

    def acquire(self, session: str) -> Future[None] | None:
        """None when a place was free; else what to wait for. A wait that is given up must be cancelled."""
        with self._lock:
            if self._free and session not in self._waiting and self._used.get(session, 0) < self._per_session:
                self._take(session)
                return None
            turn: Future[None] = Future()
            self._waiting.setdefault(session, deque()).append(turn)
            return turn

    def release(self, session: str) -> None:
        with self._lock:
            self._free += 1
            self._used[session] -= 1
            if not self._used[session]:
                del self._used[session]
            granted = self._grant()
        for turn in granted:
            turn.set_result(None)

    @property
    def in_use(self) -> int:
        return self._total - self._free

    def _grant(self) -> list[Future[None]]:
        granted = []
        for session in list(self._waiting):
            if not self._free:
                break
            if self._used.get(session, 0) >= self._per_session:
                continue
            queue = self._waiting[session]
            while queue:
                turn = queue.popleft()
                if turn.set_running_or_notify_cancel():
                    self._take(session)
                    granted.append(turn)
                    break
            if queue:
                self._waiting.move_to_end(session)
            else:
                del self._waiting[session]
        return granted

    def _take(self, session: str) -> None:
        self._free -= 1
        self._used[session] = self._used.get(session, 0) + 1
