"""Links to a live shell: direct on this machine, by frames if it is elsewhere (session.py).

Local shells are forked from fork servers, one per protection: started by the first shell, ended by the last.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import shlex
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Protocol, TypeVar

from ..shell_host import proc, wire
from ..shell_host.command_run import Command, CommandRun, Ended
from ..shell_host.connection import Fatal, Lost, connect
from ..shell_host.held_calls import DENY, STOP, HeldCall
from ..shell_host.live_shell import LiveShell
from ..shell_host.operations import Operations
from ..shell_host.wire import Packet
from . import bundle

if TYPE_CHECKING:
    from ...types import CancelToken
    from ..output import OutputSink

__all__ = [
    "BegunCommand",
    "Command",
    "Confinement",
    "DirectLink",
    "Ended",
    "Fatal",
    "Link",
    "Lost",
    "Shared",
    "answer_of",
    "fork_servers",
]

T = TypeVar("T")
log = logging.getLogger(__name__)

_START_SECONDS = 20.0
_END_SECONDS = 10.0
# More at once would only slow each other down, until one has waited too long for its bash.
_STARTING_AT_ONCE = 8


class Link(Protocol):
    """Raises Fatal if no shell can be started, Lost if it is gone, and OSError for an operation that failed."""

    @property
    def cwd(self) -> str:
        """Where the shell started."""

    @property
    def state(self) -> bytes | None:
        """The last known state, for the next link to continue from."""

    @property
    def uncovered(self) -> str:
        """Why what commands change is not written to the journal; empty if it is."""

    def run(self, command: Command, sink: OutputSink, cancel: CancelToken | None) -> Ended: ...

    def call(self, op: str, data: bytes = b"", **details: object) -> tuple[Packet, bytes]:
        """Perform an operation of shell_host/operations.py. Safe from any thread, also while a command runs."""

    def interrupt(self) -> None:
        """Abandon the running command. Safe from any thread."""

    def close(self) -> None:
        """Called when no command runs."""

    def close_inherited(self) -> None:
        """In a forked child: close what was inherited, without ending what is the parent's."""


class DirectLink:
    """A shell on this machine, forked from this process's fork server."""

    state = None  # the fork server has it
    made_for: tuple[Any, ...] = ()  # by the pool that it is from

    def __init__(
        self,
        env: dict[str, str],
        cwd: str,
        jobs_root: str,
        confinement: Confinement | None = None,
        effects: Packet | None = None,
    ) -> None:
        spec: Packet = {"env": env, "cwd": cwd, "is_remote": False}
        if confinement is not None:
            spec["confinement"] = confinement.shell
        name = self._name = os.urandom(8).hex()

        def start(server: ForkServerClient) -> LiveShell:
            self._connect = partial(connect, server.ask, name, spec)
            with fork_servers.starting:
                return LiveShell(self._connect)

        self._fork_server, self.shell = fork_servers.use(start, confinement, effects)
        self.uncovered = self._fork_server.uncovered
        self._jobs_root = jobs_root
        self._is_closed = False

    def ask_when_held(self, on_held: Callable[[HeldCall], str]) -> None:
        """`on_held` answers when a system call of a command waits; see shell_host/held_calls.py."""
        self._fork_server.askers[self._name] = lambda held: self._answer(held, on_held)

    @property
    def cwd(self) -> str:
        return self.shell.connection.cwd

    @property
    def is_idle(self) -> bool:
        """Whether nothing runs in its shell, neither a command nor what one has left."""
        connection = self.shell.connection
        return not self.shell.is_running and list(proc.tree(connection.supervisor)) == [connection.bash]

    def renew(self) -> None:
        """Make it a shell in which nothing has run, under the same supervisor. Raises Fatal, Lost or OSError; close it then."""
        self._fork_server.askers.pop(self._name, None)
        old = [self.shell.connection]
        self.shell = LiveShell(lambda state, page: old.pop().renewed(page) if old else self._connect(state, page))

    def enter(self, cwd: str) -> None:
        """For one that was started ahead: make it a shell that has started in `cwd`."""
        connection = self.shell.connection
        if connection.cwd == cwd and os.path.samestat(os.stat(cwd), os.stat(f"/proc/{connection.bash}/cwd")):
            return
        connection.notify({"op": "place", "cwd": cwd})
        text = f"command cd -- {shlex.quote(cwd)} && command unset OLDPWD"
        ended = self.shell.run(Command(text.encode("utf-8", "surrogateescape")), lambda fd: len(os.read(fd, 1 << 16)))
        if ended.code != 0:
            raise Lost(f"{cwd} cannot be entered")
        self.shell.connection.cwd = cwd

    def run(self, command: Command, sink: OutputSink, cancel: CancelToken | None) -> Ended:
        may_block = sink.listener is not None
        if cancel is None:
            return self.shell.run(command, sink.read_from, may_block=may_block)
        forget: list[Callable[[], object]] = []

        def begin(number: int) -> None:
            forget.append(cancel.on_cancel(lambda: self.shell.kill(number, "cancelled")))

        try:
            return self.shell.run(command, sink.read_from, may_block=may_block, on_begin=begin)
        finally:
            for function in forget:
                function()

    def _answer(self, held: HeldCall, ask: Callable[[HeldCall], str]) -> str:
        go_on = self.shell.hold(held.call)
        try:
            answer = ask(held)
        finally:
            go_on()
        if answer == STOP:
            self.shell.stop(held.call)
        return answer

    def end_call(self, call: int) -> None:
        """What a call had left running was ended: it is over now."""
        self.shell.connection.end_call(call)

    def interrupt(self) -> None:
        self.shell.interrupt()

    def call(self, op: str, data: bytes = b"", **details: object) -> tuple[Packet, bytes]:
        return self._operations.call(op, details, data)

    @cached_property
    def _operations(self) -> Operations:
        return Operations(self.shell, self._jobs_root)

    def close_inherited(self) -> None:
        self._is_closed = True
        self.shell.connection.close_inherited()

    def close(self) -> None:
        if not self._is_closed:
            self._is_closed = True
            self._fork_server.askers.pop(self._name, None)
            self.shell.close()
            if "_operations" in vars(self):  # else it has only run commands
                self._operations.remove_folders()
            fork_servers.release(self._fork_server)


class BegunCommand(NamedTuple):
    """A command that runs in a shell of this machine."""

    link: DirectLink
    run: CommandRun
    sink: OutputSink
    cwd: str | None
    thread: int

    def kill(self) -> None:
        self.link.shell.kill(self.run.number, "cancelled")


class Confinement(NamedTuple):
    """A policy of shell_host/protection.py, made when a fork server starts, and that of a shell. Shells with the same key share
    a fork server."""

    key: str
    policy: Callable[[], Packet]
    shell: Packet


# Of a fork server that forks sandboxes instead of shells.
SANDBOXES = Confinement("sandboxes", dict, {})


class ForkServerClient:
    """One fork server process. A shell is a fork of it: milliseconds, and little memory."""

    def __init__(
        self, protection: Packet | None = None, effects: Packet | None = None, role: str = "fork_server"
    ) -> None:
        """`protection` is a policy of shell_host/protection.py, `effects` the settings of shell_host/effect_server.py.
        `report` says how the one is enforced, and `uncovered` why the other are not."""
        self._socket, theirs = wire.packet_pair()
        self.users = 0
        self.is_broken = False  # found dead before the system reports it
        # By shell: who answers when one of its system calls waits.
        self.askers: dict[str, Callable[[HeldCall], str]] = {}
        self._stays = False
        self._reader: threading.Thread | None = None
        effects = None if effects is None else {**effects, "asks": True}
        arguments = {"owner": os.getpid(), "protection": protection, "effects": effects}
        with theirs:
            self._process = start_process(role, theirs, arguments)
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
        self.uncovered: str = report.pop("uncovered")
        self.report: Packet = report
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
        answer = answer_of(self.askers.get(packet["shell"]), packet)
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
            try:
                self._process.wait(_END_SECONDS)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        return self._stays


def start_process(role: str, client: socket.socket, arguments: Packet) -> subprocess.Popen[bytes]:
    process = subprocess.Popen(
        [sys.executable, *bundle.PYTHON_ARGUMENTS],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        pass_fds=[client.fileno()],
        env={},
        cwd="/",
        start_new_session=True,  # a Ctrl-C on our terminal is for us
    )
    assert process.stdin is not None
    with process.stdin as pipe:
        pipe.write(bundle.bundle(role=role, compiled=True, is_loaded=False, socket=client.fileno(), **arguments))
    return process


def answer_of(asker: Callable[[HeldCall], str] | None, packet: Packet) -> str:
    """The answer about a system call that waits. A question that cannot be asked is a no, and somebody waits for it."""
    try:
        return asker(HeldCall(*packet["about"])) if asker is not None else DENY
    except Exception as error:  # noqa: BLE001  an approver may raise anything
        log.warning("a system call that waits could not be asked about: %s: %s", type(error).__name__, error)
        return DENY


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
                role = "sandbox_server" if confinement is SANDBOXES else "fork_server"
                found = self._current[key] = ForkServerClient(policy, effects, role)
            found.users += 1
            return found

    def use(
        self,
        start: Callable[[ForkServerClient], T],
        confinement: Confinement | None,
        effects: Packet | None = None,
        *,
        again: bool = True,
    ) -> tuple[ForkServerClient, T]:
        """Acquire one, and start something with it. One that was killed is replaced. Raises Fatal or Lost."""
        try:
            server = self.acquire(confinement, effects)
        except OSError as error:
            raise Fatal(f"the process that forks shells could not be started: {error.strerror}") from None
        try:
            return server, start(server)
        except BaseException as error:
            server.is_broken = server.is_broken or isinstance(error, Lost)
            self.release(server)
            if not (again and isinstance(error, Lost)):
                raise
        return self.use(start, confinement, effects, again=False)

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


class Shared(Generic[T]):
    """What environments of this process share: made for the first, ended by the last. After a fork the child gets its own."""

    def __init__(self, make: Callable[[], T], end: Callable[[T], None]) -> None:
        self._make, self._end = make, end
        self._forget()

    def _forget(self) -> None:
        self._lock, self._process = threading.Lock(), os.getpid()
        self._current: T | None = None
        self._users = 0

    def acquire(self) -> T:
        if self._process != os.getpid():
            self._forget()
        with self._lock:
            if self._current is None:
                self._current = self._make()
            self._users += 1
            return self._current

    def release(self, shared: T) -> None:
        with self._lock:
            if self._process != os.getpid() or shared is not self._current:
                return  # it is the parent's
            self._users -= 1
            if self._users > 0:
                return
            self._current = None
        self._end(shared)
