"""Starts the shell host in a sandbox that is forked from this process's sandbox server (shell_host/sandbox_server.py)."""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import subprocess
from contextlib import ExitStack

from ..shell_host import wire
from ..shell_host.connection import Fatal, Lost
from ..shell_host.wire import Packet
from .channel import Channel, PipeChannel, Process
from .link import SANDBOXES, ForkServerClient, fork_servers

_START_SECONDS = 20.0


class SandboxLauncher:
    """`spec` is as in shell_host/sandbox_server.py."""

    where, client_timeout, explain = "the sandbox", 0.0, None

    def __init__(self, spec: Packet) -> None:
        self._spec = spec

    def open(self) -> Channel:
        return PipeChannel(self)

    def start(self, errors: int) -> Process:
        try:
            return self._start(errors)
        except Lost:  # the server was killed; another replaces it
            return self._start(errors)

    def _start(self, errors: int) -> Process:
        try:
            server = fork_servers.acquire(SANDBOXES)
        except OSError as error:
            raise Fatal(f"the process that forks sandboxes could not be started: {error.strerror}") from None
        try:
            return _Sandbox(server, self._spec, errors)
        except BaseException as error:
            server.is_broken = server.is_broken or isinstance(error, Lost)
            fork_servers.release(server)
            raise


class _Sandbox:
    """The first process of a sandbox, as subprocess.Popen would have it."""

    def __init__(self, server: ForkServerClient, spec: Packet, errors: int) -> None:
        self._server = server
        (their_input, stdin), (stdout, their_output) = os.pipe(), os.pipe()
        self.stdin, self.stdout = open(stdin, "wb", buffering=0), open(stdout, "rb", buffering=0)  # noqa: SIM115
        mine, theirs = wire.packet_pair()
        passed = [
            theirs.detach(),
            their_input,
            their_output,
            errors,
            wire.memory_file("spec", json.dumps(spec).encode()),
        ]
        with mine, ExitStack() as failed:
            failed.callback(self.stdin.close)
            failed.callback(self.stdout.close)
            try:
                with fork_servers.starting:
                    server.ask({}, passed)
            except OSError:
                raise Lost("the process that forks sandboxes is gone") from None
            finally:
                for fd in passed:
                    if fd != errors:
                        os.close(fd)
            self._process = self._received(mine, errors)
            failed.pop_all()

    def _received(self, answer: socket.socket, errors: int) -> int:
        """The descriptor of the process."""
        answer.settimeout(_START_SECONDS)
        try:
            packet, fds = wire.receive(answer)
        except OSError:
            raise Fatal("no sandbox was started in time") from None
        if packet is None:
            why = wire.read_whole(errors).decode("utf-8", "replace").strip()
            if why:
                raise Fatal(f"no sandbox can be started: {why}")
            raise Lost("the process that forks sandboxes is gone")
        return fds[0]

    def wait(self, timeout: float | None = None) -> int:
        """Until it and everything in the sandbox has ended. Its code is not known."""
        if self._process < 0:
            return 0
        poll = select.poll()
        poll.register(self._process, select.POLLIN)
        if not poll.poll(None if timeout is None else timeout * 1000):
            raise subprocess.TimeoutExpired("the sandbox", timeout or 0.0)
        os.close(self._process)
        self._process = -1
        fork_servers.release(self._server)
        return 0

    def kill(self) -> None:
        if self._process >= 0:
            signal.pidfd_send_signal(self._process, signal.SIGKILL)
