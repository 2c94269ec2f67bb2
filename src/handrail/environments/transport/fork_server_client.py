"""The fork servers of this process's local shells, one per protection: started by the first shell, ended by the last."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import NamedTuple

from ..shell_host import wire
from ..shell_host.wire import Packet
from . import bundle

_START_SECONDS = 20.0
_END_SECONDS = 10.0


class Confinement(NamedTuple):
    """A policy of shell_host/protection.py, made when a fork server starts. Shells with the same key share one."""

    key: str
    policy: Callable[[], Packet]


class ForkServerClient:
    """One fork server process. A shell is a fork of it: milliseconds, and little memory."""

    def __init__(self, protection: Packet | None = None) -> None:
        """`protection` is a policy of shell_host/protection.py. How it is enforced is in `report` then."""
        self._socket, theirs = wire.packet_pair()
        self.users = 0
        self.report: Packet = {}
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
            arguments = {"socket": theirs.fileno(), "owner": os.getpid(), "protection": protection}
            with self._process.stdin as pipe:
                pipe.write(bundle.bundle(role="fork_server", **arguments))
        if protection is not None:
            self._receive_report()

    def _receive_report(self) -> None:
        self._socket.settimeout(_START_SECONDS)
        try:
            report, _ = wire.receive(self._socket)
        except OSError:
            report = None
        if report is None:
            self.end()
            raise OSError(errno.EIO, "it ended before it could protect what belongs to Handrail")
        self._socket.settimeout(None)
        self.report = report

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
    """Counts the users of each fork server. After a fork the child gets its own."""

    def __init__(self) -> None:
        self._forget()

    def _forget(self) -> None:
        self._lock, self._process = threading.Lock(), os.getpid()
        self._current: dict[str, ForkServerClient] = {}

    def acquire(self, confinement: Confinement | None = None) -> ForkServerClient:
        if self._process != os.getpid():
            self._forget()
        key = confinement.key if confinement is not None else ""
        with self._lock:
            found = self._current.get(key)
            if found is None or not found.is_alive:
                policy = confinement.policy() if confinement is not None else None
                found = self._current[key] = ForkServerClient(policy)
            found.users += 1
            return found

    def release(self, fork_server: ForkServerClient) -> None:
        with self._lock:
            fork_server.users -= 1
            if fork_server.users > 0:
                return
            for key in [key for key, current in self._current.items() if current is fork_server]:
                del self._current[key]
        fork_server.end()


fork_servers = ForkServerClients()
