"""The fork servers of this process's local shells, one per protection: started by the first shell, ended by the last."""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import NamedTuple

from ..shell_host import wire
from ..shell_host.held_calls import DENY, HeldCall
from ..shell_host.wire import Packet
from . import bundle

log = logging.getLogger(__name__)

_START_SECONDS = 20.0
_END_SECONDS = 10.0
# More at once would only slow each other down, until one has waited too long for its bash.
_STARTING_AT_ONCE = 8


class Confinement(NamedTuple):
    """A policy of shell_host/protection.py, made when a fork server starts, and that of a shell. Shells with the same key share
    a fork server."""

    key: str
    policy: Callable[[], Packet]
    shell: Packet


class ForkServerClient:
    """One fork server process. A shell is a fork of it: milliseconds, and little memory."""

    def __init__(self, protection: Packet | None = None, effects: Packet | None = None) -> None:
        """`protection` is a policy of shell_host/protection.py, `effects` the settings of shell_host/effect_server.py.
        `report` says how the one is enforced, and `uncovered` why the other are not."""
        self._socket, theirs = wire.packet_pair()
        self.users = 0
        self.report: Packet = {}
        self.uncovered = ""
        self.is_broken = False  # found dead before the system reports it
        self.askers: dict[
            str, Callable[[HeldCall], str]
        ] = {}  # by shell: who answers when one of its system calls waits
        self._stays = False
        self._reader: threading.Thread | None = None
        effects = None if effects is None else {**effects, "asks": True}
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
            arguments = {"socket": theirs.fileno(), "owner": os.getpid(), "protection": protection, "effects": effects}
            with self._process.stdin as pipe:
                pipe.write(bundle.bundle(role="fork_server", compiled=True, **arguments))
        self._receive_report()

    def _receive_report(self) -> None:
        self._socket.settimeout(_START_SECONDS)
        try:
            report, _ = wire.receive(self._socket)
        except OSError:
            report = None
        if report is None:
            self.end()
            raise OSError(errno.EIO, "it ended before it was ready")
        self._socket.settimeout(None)
        self.uncovered = report.pop("uncovered")
        self.report = report
        self._reader = threading.Thread(target=self._receive, name="handrail-held", daemon=True)
        self._reader.start()

    def _receive(self) -> None:
        """Take what it sends until it ends."""
        with contextlib.suppress(OSError):  # closed after it hung
            while (packet := wire.receive(self._socket)[0]) is not None:
                self._stays = self._stays or "stays" in packet
                if packet.get("op") == "held":  # in a thread of its own: others must not wait for the answer
                    threading.Thread(target=self._answer, args=(packet,), name="handrail-ask", daemon=True).start()

    def _answer(self, packet: Packet) -> None:
        held, answer = HeldCall(*packet["about"]), DENY
        try:
            asker = self.askers.get(packet["shell"])
            answer = asker(held) if asker is not None else DENY
        except Exception as error:  # noqa: BLE001  a question that cannot be asked is a no, and somebody waits for it
            log.warning("a system call that waits could not be asked about: %s: %s", type(error).__name__, error)
        with contextlib.suppress(OSError):  # it is gone, and whoever waited too
            self.ask({"op": "answer", "held": packet["held"], "answer": answer}, [])

    def ask(self, packet: Packet, fds: list[int]) -> None:
        wire.send(self._socket, packet, fds)

    @property
    def is_alive(self) -> bool:
        return not self.is_broken and self._process.poll() is None

    def end(self) -> bool:
        """Whether its process goes on, to watch background processes that survive."""
        with contextlib.suppress(OSError):  # it was gone already
            self._socket.shutdown(socket.SHUT_WR)
        if self._reader is not None:
            self._reader.join(_END_SECONDS)
        self._socket.close()
        if not self._stays:
            self._wait_for_end()
        return self._stays

    def _wait_for_end(self) -> None:
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
        self.starting = threading.Semaphore(_STARTING_AT_ONCE)  # held while a shell starts
        self._current: dict[str, ForkServerClient] = {}
        self._outliving: list[ForkServerClient] = []  # kept so that each is reaped when it ends

    def acquire(self, confinement: Confinement | None = None, effects: Packet | None = None) -> ForkServerClient:
        if self._process != os.getpid():
            self._forget()
        key = repr((confinement.key if confinement is not None else "", effects))
        with self._lock:
            self._outliving = [one for one in self._outliving if one.is_alive]
            found = self._current.get(key)
            if found is None or not found.is_alive:
                policy = confinement.policy() if confinement is not None else None
                found = self._current[key] = ForkServerClient(policy, effects)
            found.users += 1
            return found

    def release(self, fork_server: ForkServerClient) -> None:
        with self._lock:
            fork_server.users -= 1
            if fork_server.users > 0:
                return
            for key in [key for key, current in self._current.items() if current is fork_server]:
                del self._current[key]
        if fork_server.end():
            with self._lock:
                self._outliving.append(fork_server)


fork_servers = ForkServerClients()
