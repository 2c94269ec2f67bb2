"""A way from a container to this process that goes past its engine: a socket in a folder that both see.

What an engine carries passes three programs of its own on the way in, and on the way back: more than half of the time that a
short command takes. So a throw-away container has an empty folder of this machine mounted, read-only, and while a shell is being
started there is a socket in it. The far side comes there, and says a word that it was told by the engine's own stream, which is
then no longer used. Where it cannot come, because the container is on another machine or in a virtual one or may not, it stays
with the stream.
"""

from __future__ import annotations

import contextlib
import hmac
import os
import shutil
import socket
import time
from collections.abc import Iterator

from .. import private_dirs
from ..shell_host.connection import Lost
from ..shell_host.wire import Packet
from .channel import Channel, SocketChannel

_INSIDE = "/.handrail"  # where the container has it: under no other mount
_WORD_BYTES = 16
_CALLERS = 8
_LET_IN_SECONDS = 20.0


class DoorFolder:
    """What is mounted. Other users of this machine cannot get there: the folder around it is this user's alone."""

    def __init__(self, engine: str) -> None:
        self._around = private_dirs.make(_prefix(engine))
        self.path = os.path.join(self._around, "door")
        # Open to all, because who is who in the container is another matter.
        os.mkdir(self.path)
        os.chmod(self.path, 0o755)

    @property
    def mount(self) -> str:
        """The option for an engine's `run`."""
        return f"--mount=type=bind,source={self.path},target={_INSIDE},readonly"

    def remove(self) -> None:
        shutil.rmtree(self._around, ignore_errors=True)


@contextlib.contextmanager
def open_door(folder: DoorFolder | None) -> Iterator[Door | None]:
    """As long as a shell is being started. None where there is no folder, or it was taken away."""
    door = None
    if folder is not None:
        with contextlib.suppress(OSError):
            door = Door(folder.path)
    try:
        yield door
    finally:
        if door is not None:
            door.close()


class DoorChannel(SocketChannel):
    """What has come in by a door. `stream` is where the far side was started, and where its end is seen."""

    def __init__(self, caller: socket.socket, stream: Channel) -> None:
        super().__init__(stream.where, stream.silence, caller)
        self._stream = stream

    def failure(self, noise: bytes) -> Exception:
        return self._stream.failure(noise)

    def let_go(self) -> None:
        self._shut()
        self._stream.let_go()

    def close(self) -> None:
        with contextlib.suppress(OSError):  # it is gone already
            self._way.shutdown(socket.SHUT_RDWR)  # which ends the wait of whoever sends or receives
        self._stream.close()
        with self._sending, self._receiving:
            self._shut()

    def _shut(self) -> None:
        self._out = self._in = -1
        self._drop_descriptors()
        self._way.close()


class Door:
    """Lets one in: who knows the word."""

    def __init__(self, folder: str) -> None:
        self._word = os.urandom(_WORD_BYTES)
        name = os.urandom(4).hex()
        self._path = os.path.join(folder, name)
        self.invitation: Packet = {"path": f"{_INSIDE}/{name}", "word": self._word.hex()}
        self._listener = socket.socket(socket.AF_UNIX)
        try:
            self._listener.bind(self._path)
            os.chmod(self._path, 0o666)
            self._listener.listen(_CALLERS)
        except OSError:
            self.close()
            raise

    def let_in(self, stream: Channel) -> Channel:
        """The far side that has left `stream` to come here. Others in the container are sent away. Raises Lost."""
        end = time.monotonic() + _LET_IN_SECONDS
        while (left := end - time.monotonic()) > 0:
            self._listener.settimeout(left)
            try:
                caller, _ = self._listener.accept()
            except OSError:
                break
            if self._knows_the_word(caller):
                return DoorChannel(caller, stream)
            caller.close()
        raise Lost(f"{stream.where} did not come to the door")

    def close(self) -> None:
        self._listener.close()
        with contextlib.suppress(OSError):
            os.unlink(self._path)

    def _knows_the_word(self, caller: socket.socket) -> bool:
        caller.settimeout(_LET_IN_SECONDS / _CALLERS / 2)
        try:
            return hmac.compare_digest(caller.recv(_WORD_BYTES), self._word)
        except OSError:
            return False


def prune(engine: str, *, dry_run: bool) -> list[str]:
    """What processes that were killed have left, and is removed unless `dry_run`."""
    return private_dirs.prune(_prefix(engine), engine, dry_run=dry_run)


def _prefix(engine: str) -> str:
    return f"handrail-{engine}"
