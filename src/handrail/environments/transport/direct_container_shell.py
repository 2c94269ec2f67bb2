"""A shell in a container of this machine, spoken to directly: its pipes are in this process, as those of a local shell are.

With frames to a Python in the container a command takes four wake-ups; this takes two. That Python stays for all else, and has
handed over the descriptors of its line to the keeper (far/pump.py). A container that means harm must not make this process
wait: descriptors that came from there are opened anew, as whether they block would be for both sides to say. No process id of
there is used here.
"""

from __future__ import annotations

import contextlib
import os
import resource
import socket
import stat
import time
from collections.abc import Callable

from ..shell_host.connection import MAX_CHILDREN_BYTES, UNKNOWN, Connection, Lost
from ..shell_host.wire import Packet

_MAX_STATE_BYTES = 1 << 20
_CLOCK_SECONDS = 5.0


def has_room() -> bool:
    """Whether this process can hold some descriptors more for a shell. With many containers it could run short of them."""
    try:
        lowest_free = os.open("/dev/null", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    os.close(lowest_free)
    return lowest_free < resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 2


class NearConnection(Connection):
    """`facts` and `fds` were handed over, and the latter are closed. `kill` ends a keeper, by its process id there.

    Raises OSError, ValueError, LookupError or TypeError where what was handed over is of no use.
    """

    def __init__(self, facts: Packet, fds: list[int], kill: Callable[[int], object]) -> None:
        self._kill = kill
        self._text = self._place = self._family_file = -1
        self._can_look = False
        with contextlib.ExitStack() as undo:
            undo.callback(_close, fds)
            keeper, out, text, go, done, place, *family = fds
            if abs(facts["now"] - time.monotonic()) > _CLOCK_SECONDS:
                raise ValueError("a time limit would mean another time there")
            own_out = _own(out, os.O_RDONLY)
            super().__init__(socket.socket(fileno=os.dup(keeper)), own_out)
            with contextlib.ExitStack() as failed:
                failed.callback(self.let_go)
                self._text = _file(text)
                self._family_file = _file(family[0]) if family else -1
                self._on_birth({**facts, "ended": None}, [go, done, place])
                with contextlib.suppress(OSError):  # another user's, which this one may not look at
                    self._can_look = os.readlink("cwd", dir_fd=self._place) == facts["where"]
                failed.pop_all()

    def hear(self) -> None:
        try:
            super().hear()
        except (OSError, ValueError, LookupError, TypeError):
            raise Lost("what its keeper says makes no sense") from None

    def give(self, words: bytes) -> None:
        try:
            super().give(words)
        except BlockingIOError:
            raise Lost("nobody there reads what it is told") from None

    def cwd_of_bash(self) -> str:
        if self._can_look:
            return os.readlink("cwd", dir_fd=self._place)
        return str(self.ask("cwd")["cwd"])

    def kill_keeper(self) -> None:
        self._kill(self.keeper)

    def bury(self) -> None:
        """Who hands over the next one does it."""
        self.let_go()

    def let_go(self) -> None:
        super().let_go()
        _close([fd for fd in (self._text, self._place, self._family_file) if fd >= 0])
        self._text = self._place = self._family_file = -1

    def _children(self) -> bytes:
        try:
            return os.pread(self._family_file, MAX_CHILDREN_BYTES, 0) if self._family_file >= 0 else UNKNOWN
        except OSError:
            return UNKNOWN

    def _on_packet(self, packet: Packet, fds: list[int]) -> None:
        if packet["op"] == "saved":
            found = os.fstat(fds[0])
            if not stat.S_ISREG(found.st_mode):
                raise ValueError("it is no file")
            if found.st_size > _MAX_STATE_BYTES:
                return
        super()._on_packet(packet, fds)

    def _on_birth(self, packet: Packet, fds: list[int]) -> None:
        go, done, place = fds
        ours = [_own(done, os.O_RDONLY)]
        try:
            ours.insert(0, _own(go, os.O_WRONLY))
            super()._on_birth(packet, ours)
        finally:
            _close(ours)  # what was not taken
        self.text_path = f"/proc/self/fd/{self._text}"
        _close([self._place] if self._place >= 0 else [])
        self._place = os.dup(place)


def _own(pipe: int, access: int) -> int:
    """The same end of a pipe, opened by us."""
    if not stat.S_ISFIFO(os.fstat(pipe).st_mode):
        raise ValueError("it is no pipe")
    return os.open(f"/proc/self/fd/{pipe}", access | os.O_NONBLOCK | os.O_CLOEXEC)


def _file(descriptor: int) -> int:
    """A pipe in its place would make us wait for whoever is at its other end."""
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        raise ValueError("it is no file")
    return os.dup(descriptor)


def _close(fds: list[int]) -> None:
    for fd in fds:
        os.close(fd)
