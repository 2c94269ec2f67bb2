"""Shells of this machine that have started before a task needs one.

The first task starts its shell itself. From the second on, the next ones are made meanwhile, with the same variables and
protection; a task that takes one over enters its own directory. No bash is used by two tasks: after a task in whose shell nothing
runs any longer its supervisor starts another, which knows nothing of that one, or is ended if there are enough.
"""

import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, wait

from ..base.workers import Lane
from ..base.workers import pool as workers
from .shell_host.wire import Packet
from .transport.link import Confinement, DirectLink, Fatal, Lost

_IDLE_SECONDS, _RENEWAL_SECONDS = 10.0, 1.0
_ending_lane = Lane(workers, 4)


class ShellPool:
    """`size` shells are kept ready, all with the settings that were wanted last, until nobody has wanted one for a while."""

    def __init__(self, size: int, *, idle_seconds: float = _IDLE_SECONDS) -> None:
        self._size, self._idle_seconds = size, idle_seconds
        self._forget()

    def _forget(self) -> None:
        self._lock, self._process = threading.Condition(threading.Lock()), os.getpid()
        self._ready: list[DirectLink] = []
        self._key = ""
        self._renewing = self._waiting = 0
        self._filling: Future[None] | None = None
        self._ending: list[Future[None]] = []
        self._timer: threading.Timer | None = None
        self._used_at = 0.0

    def take(
        self, env: dict[str, str], cwd: str, jobs_root: str, confinement: Confinement | None, effects: Packet | None
    ) -> DirectLink:
        """A link to a shell in `cwd`: one that is ready, or a new one. Raises Fatal or Lost."""

        def start() -> DirectLink:
            places = _standing(confinement)  # before there are mounts
            link = DirectLink(env, cwd, jobs_root, confinement, effects)
            link.made_for = key, confinement, places
            return link

        if self._process != os.getpid():  # after a fork the shells are the parent's
            for inherited in self._ready:
                inherited.close_inherited()
            self._forget()
        confined = (confinement.key, confinement.shell) if confinement is not None else ()
        key = repr((sorted(env.items()), jobs_root, confined, effects))
        with self._lock:
            self._used_at, others = time.monotonic(), []
            if key != self._key:
                self._key, others, self._ready = key, self._ready, []
            if not self._ready and self._renewing > self._waiting:  # sooner there than a new one
                self._waiting += 1
                self._lock.wait_for(lambda: self._ready or not self._renewing, _RENEWAL_SECONDS)
                self._waiting -= 1
            link = self._ready.pop(0) if self._ready and key == self._key else None
            is_low = 2 * (len(self._ready) + self._renewing) < self._size  # most tasks give one back
            if is_low and (self._filling is None or self._filling.done()):
                self._filling = workers.submit(self._fill, key, start)
        for other in others:
            other.close()
        if link is not None:
            try:
                link.enter(cwd)
                return link
            except (Fatal, Lost, OSError):  # it was killed meanwhile
                link.close()
        return start()

    def end(self, link: DirectLink) -> bool:
        """Soon end a shell whose task is over. False if something still runs in it, or nobody wants shells any longer: then the
        caller ends it."""
        if not link.is_idle:
            return False
        with self._lock:
            if not self._key or self._process != os.getpid():
                return False
            self._ending = [each for each in self._ending if not each.done()]
            is_wanted = link.made_for[0] == self._key and len(self._ready) + self._renewing < self._size
            self._renewing += is_wanted
            self._ending.append(_ending_lane.submit(self._renew if is_wanted else DirectLink.close, link))
        return True

    def _renew(self, link: DirectLink) -> None:
        key, confinement, places = link.made_for
        try:
            if "_operations" in vars(link) or places != _standing(confinement):
                raise Lost("it has run more than commands, or its mounts would be others now")
            link.renew()
        except (Fatal, Lost, OSError):  # it was used in a way that cannot be undone, or killed
            is_new = False
        else:
            is_new = True
        with self._lock:
            self._renewing -= 1
            self._lock.notify_all()
            if is_new and self._key == key:
                self._add(link)
                return
        link.close()

    def close_task(self, task_id: str) -> None:
        """A shell that is ready belongs to no task."""

    def close(self) -> None:
        """End the shells that are ready, and the one that is being started. None of those that were to end is left."""
        with self._lock:
            ready, self._ready, self._key, self._used_at = self._ready, [], "", 0.0
            timer, self._timer = self._timer, None
        if timer is not None:
            timer.cancel()
        if self._process == os.getpid():
            for link in ready:
                link.close()
            wait([*self._ending, *([self._filling] if self._filling is not None else [])])

    def _fill(self, key: str, start: Callable[[], DirectLink]) -> None:
        while True:
            with self._lock:
                if self._key != key or len(self._ready) + self._renewing >= self._size:
                    return
            try:
                link = start()
            except (Fatal, Lost, OSError):  # whoever needs one will be told
                return
            with self._lock:
                is_wanted = self._key == key
                if is_wanted:
                    self._add(link)
            if not is_wanted:
                link.close()

    def _add(self, link: DirectLink) -> None:
        self._ready.append(link)
        if self._timer is None:
            self._watch(self._idle_seconds)

    def _watch(self, seconds: float) -> None:
        self._timer = threading.Timer(seconds, self._on_timer)
        self._timer.name, self._timer.daemon = "handrail-shells", True
        self._timer.start()

    def _on_timer(self) -> None:
        with self._lock:
            self._timer = None
            left = self._used_at + self._idle_seconds - time.monotonic()
            if left > 0 and self._ready:
                self._watch(left)
                return
        self.close()


def _standing(confinement: Confinement | None) -> list[tuple[int, int] | None]:
    """Which files and folders are now at the places that the mounts of a shell are about."""
    found: list[tuple[int, int] | None] = []
    if confinement is not None:
        shell = confinement.shell
        for place in (*shell["read_only"], *shell["covered"], *(shell["contained"] or {}).get("writable", ())):
            try:
                stat = os.stat(place)
                found.append((stat.st_dev, stat.st_ino))
            except OSError:
                found.append(None)
    return found
