"""Tell far sides again and again that this process lives, where the connection would not tell them of its end."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable


class Heart:
    """One thread for all of them; there is none while nobody needs it."""

    def __init__(self) -> None:
        self._reset()

    def _reset(self) -> None:
        self._process = os.getpid()
        self._changed = threading.Condition()
        self._beats: dict[Callable[[], None], float] = {}
        self._thread: threading.Thread | None = None

    def add(self, beat: Callable[[], None], *, every: float) -> None:
        """Call it about so often, in seconds. It must not take long."""
        if self._process != os.getpid():  # after a fork the thread is the parent's, and all that it told is too
            self._reset()
        with self._changed:
            self._beats[beat] = every
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="handrail-heartbeat", daemon=True)
                self._thread.start()
            elif every <= min(self._beats.values()):
                self._changed.notify()

    def remove(self, beat: Callable[[], None]) -> None:
        if self._process == os.getpid():
            with self._changed:
                self._beats.pop(beat, None)
                if not self._beats:
                    self._changed.notify()

    def _run(self) -> None:
        while True:
            with self._changed:
                if self._beats:
                    self._changed.wait(min(self._beats.values()))
                beats = list(self._beats)
                if not beats:
                    self._thread = None
                    return
            for beat in beats:
                beat()


heart = Heart()
