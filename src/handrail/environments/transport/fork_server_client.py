"""The fork server of this process's local shells: started by the first of them, ended by the last."""

from __future__ import annotations

import os
import subprocess
import sys
import threading

from ..shell_host import wire
from ..shell_host.wire import Packet
from . import bundle

_END_SECONDS = 10.0


class ForkServerClient:
    """One fork server process. A shell is a fork of it: milliseconds, and little memory."""

    def __init__(self) -> None:
        self._socket, theirs = wire.packet_pair()
        self.users = 0
        self.is_broken = False  # found dead before the system reports it
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, *bundle.PYTHON_ARGUMENTS],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                env={},
                cwd="/",
                start_new_session=True,  # a Ctrl-C on our terminal is for us
            )
            assert self._process.stdin is not None
            with self._process.stdin as pipe:
                pipe.write(bundle.bundle(role="fork_server", socket=theirs.fileno(), owner=os.getpid()))

    def ask(self, packet: Packet, fds: list[int]) -> None:
        wire.send(self._socket, packet, fds)

    @property
    def is_alive(self) -> bool:
        return not self.is_broken and self._process.poll() is None

    def end(self) -> None:
        self._socket.close()
        try:
            self._process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


class ForkServerClients:
    """Counts the users of the fork server. After a fork the child gets its own."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._current: ForkServerClient | None = None
        self._process = os.getpid()

    def acquire(self) -> ForkServerClient:
        if self._process != os.getpid():
            self._lock, self._current, self._process = threading.Lock(), None, os.getpid()
        with self._lock:
            if self._current is None or not self._current.is_alive:
                self._current = ForkServerClient()
            self._current.users += 1
            return self._current

    def release(self, fork_server: ForkServerClient) -> None:
        with self._lock:
            fork_server.users -= 1
            if fork_server.users > 0:
                return
            if self._current is fork_server:
                self._current = None
        fork_server.end()


fork_servers = ForkServerClients()
