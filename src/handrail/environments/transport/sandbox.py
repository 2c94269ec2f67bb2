"""The first process of a sandbox that is forked from this process's sandbox server (shell_host/sandbox_server.py)."""

import json
import os
import select
import shutil
import signal
import subprocess

from ..shell_host import wire
from ..shell_host.connection import Fatal, Lost
from ..shell_host.wire import Packet
from .link import SANDBOXES, ForkServerClient, fork_servers

_START_SECONDS = 20.0


class Sandbox:
    """As a subprocess.Popen with its stdin and stdout. `errors` is the descriptor of its stderr."""

    def __init__(self, spec: Packet, errors: int) -> None:
        self._temporary = spec.get("temporary", "")
        (input_, stdin), (stdout, output) = os.pipe(), os.pipe()
        self.stdin, self.stdout = os.fdopen(stdin, "wb", 0), os.fdopen(stdout, "rb", 0)
        try:
            streams = [input_, output, errors]
            self._server, self._process = fork_servers.use(lambda server: _started(server, spec, streams), SANDBOXES)
        except BaseException:
            shutil.rmtree(self._temporary, ignore_errors=True)
            self.stdin.close()
            self.stdout.close()
            raise
        finally:
            os.close(input_)
            os.close(output)

    def wait(self, timeout: float | None = None) -> int:
        """Until it and everything in the sandbox has ended. Its code is not known."""
        if self._process >= 0:
            poll = select.poll()
            poll.register(self._process, select.POLLIN)
            if not poll.poll(None if timeout is None else timeout * 1000):
                raise subprocess.TimeoutExpired("the sandbox", timeout or 0.0)
            os.close(self._process)
            self._process = -1
            shutil.rmtree(self._temporary, ignore_errors=True)
            fork_servers.release(self._server)
        return 0

    def kill(self) -> None:
        if self._process >= 0:
            signal.pidfd_send_signal(self._process, signal.SIGKILL)


def _started(server: ForkServerClient, spec: Packet, streams: list[int]) -> int:
    """Ask for it. Returns the descriptor of the process."""
    mine, theirs = wire.packet_pair()
    file = wire.memory_file("spec", json.dumps(spec).encode())
    try:
        with mine, fork_servers.starting:
            with theirs:
                server.ask(
                    {"network": spec.get("network"), "temporary": spec.get("temporary")},
                    [theirs.fileno(), *streams, file],
                )
            mine.settimeout(_START_SECONDS)
            packet, fds = wire.receive(mine)
    except OSError:
        packet, fds = None, []
    finally:
        os.close(file)
    if packet is None:
        raise Lost("the process that forks sandboxes does not answer")
    if not fds:
        raise Fatal(f"no sandbox can be started: {packet['why']}")
    return fds[0]
