"""Links to a live shell: direct on this machine, by frames if it is elsewhere (session.py)."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from ..shell_host.command_run import Command, Ended
from ..shell_host.connection import Fatal, Lost, connect
from ..shell_host.held_calls import STOP, HeldCall
from ..shell_host.live_shell import LiveShell
from ..shell_host.operations import Operations
from .fork_server_client import Confinement, ForkServerClient, fork_servers

if TYPE_CHECKING:
    from ...types import CancelToken
    from ..output import OutputSink
    from ..shell_host.wire import Packet

__all__ = ["Command", "DirectLink", "Ended", "Fatal", "Link", "Lost"]


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
        self._name = os.urandom(8).hex()
        try:
            self._fork_server, self._shell = self._open(self._name, spec, confinement, effects)
        except Lost:  # the fork server was killed; another replaces it
            self._fork_server, self._shell = self._open(self._name, spec, confinement, effects)
        self.uncovered = self._fork_server.uncovered
        self._ops = Operations(self._shell, jobs_root)
        self._is_closed = False

    @staticmethod
    def _open(
        name: str, spec: Packet, confinement: Confinement | None, effects: Packet | None
    ) -> tuple[ForkServerClient, LiveShell]:
        try:
            fork_server = fork_servers.acquire(confinement, effects)
        except OSError as error:
            raise Fatal(f"the process that forks shells could not be started: {error.strerror}") from None
        try:
            with fork_servers.starting:
                return fork_server, LiveShell(lambda state, page: connect(fork_server.ask, name, spec, state, page))
        except BaseException as error:
            fork_server.is_broken = fork_server.is_broken or isinstance(error, Lost)
            fork_servers.release(fork_server)
            raise

    def ask_when_held(self, on_held: Callable[[HeldCall], str]) -> None:
        """`on_held` answers when a system call of a command waits; see shell_host/held_calls.py."""
        self._fork_server.askers[self._name] = lambda held: self._answer(held, on_held)

    @property
    def cwd(self) -> str:
        return self._shell.connection.cwd

    def enter(self, cwd: str) -> None:
        """For one that was started ahead: make it a shell that has started in `cwd`."""
        self._shell.connection.notify({"op": "place", "cwd": cwd})
        text = f"command cd -- {shlex.quote(cwd)} && command unset OLDPWD"
        ended = self._shell.run(Command(text.encode("utf-8", "surrogateescape")), lambda fd: len(os.read(fd, 1 << 16)))
        if ended.code != 0:
            raise Lost(f"{cwd} cannot be entered")
        self._shell.connection.cwd = cwd

    def run(self, command: Command, sink: OutputSink, cancel: CancelToken | None) -> Ended:
        may_block = sink.listener is not None
        if cancel is None:
            return self._shell.run(command, sink.read_from, may_block=may_block)
        forget: list[Callable[[], object]] = []

        def begin(number: int) -> None:
            forget.append(cancel.on_cancel(lambda: self._shell.kill(number, "cancelled")))

        try:
            return self._shell.run(command, sink.read_from, may_block=may_block, on_begin=begin)
        finally:
            for function in forget:
                function()

    def _answer(self, held: HeldCall, ask: Callable[[HeldCall], str]) -> str:
        go_on = self._shell.hold(held.call)
        try:
            answer = ask(held)
        finally:
            go_on()
        if answer == STOP:
            self._shell.stop(held.call)
        return answer

    def end_call(self, call: int) -> None:
        """What a call had left running was ended: it is over now."""
        self._shell.connection.end_call(call)

    def interrupt(self) -> None:
        self._shell.interrupt()

    def call(self, op: str, data: bytes = b"", **details: object) -> tuple[Packet, bytes]:
        return self._ops.call(op, details, data)

    def close_inherited(self) -> None:
        self._is_closed = True
        self._shell.connection.close_inherited()

    def close(self) -> None:
        if not self._is_closed:
            self._is_closed = True
            self._fork_server.askers.pop(self._name, None)
            self._shell.close()
            self._ops.remove_folders()
            fork_servers.release(self._fork_server)
