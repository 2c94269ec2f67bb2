"""Tell shell hosts regularly that this process is alive, where a connection would not show its end."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable


class KeepAlive:
    """One thread for all sessions; there is none while no session needs it."""

    def __init__(self) -> None:
        self._reset()

    def _reset(self) -> None:
        self._process = os.getpid()
        self._changed = threading.Condition()
        self._senders: dict[Callable[[], None], float] = {}
        self._thread: threading.Thread | None = None

    def add(self, send: Callable[[], None], *, every: float) -> None:
        """Call `send` about every so many seconds. It must not take long."""
        if self._process != os.getpid():  # after a fork the thread and its sessions are the parent's
            self._reset()
        with self._changed:
            self._senders[send] = every
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="handrail-keep-alive", daemon=True)
                self._thread.start()
            elif every <= min(self._senders.values()):
                self._changed.notify()

    def remove(self, send: Callable[[], None]) -> None:
        if self._process == os.getpid():
            with self._changed:
                self._senders.pop(send, None)
                if not self._senders:
                    self._changed.notify()

    def _run(self) -> None:
        while True:
            with self._changed:
                if self._senders:
                    self._changed.wait(min(self._senders.values()))
                senders = list(self._senders)
                if not senders:
                    self._thread = None
                    return
            for send in senders:
                send()


keep_alive = KeepAlive()
