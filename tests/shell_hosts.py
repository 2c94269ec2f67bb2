"""Start processes that fork shells in a third of the time: from one that has loaded what they run (loaded_shell_host.py)."""

from __future__ import annotations

import json
import os
import socket
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from handrail.environments.shell_host import proc
from handrail.environments.transport import bundle
from handrail.environments.transport.channel import PipeChannel, Transport

from .fork_server import Host, Process, connect

_HOST = Host(modules=("tests.loaded_shell_host",))
# Whose tests are about the start of a shell host, and about what becomes of one that is killed.
_WITH_REAL_ONES = (
    "environments/shell_host/",
    "environments/test_command_input",
    "environments/test_live_environment_crashes",
    "environments/test_live_environment_leaks",
    "environments/test_sandbox",
    "environments/test_shell_pool",
    "environments/transport/",
)
_started: list[Process] = []


def are_real() -> bool:
    """Whether the test that runs now is to have those that users have."""
    return os.environ.get("PYTEST_CURRENT_TEST", "").partition("tests/")[2].startswith(_WITH_REAL_ONES)


def start_process(role: str, client: socket.socket, arguments: dict[str, Any]) -> Process:
    """As `handrail.environments.transport.link.start_process`."""
    nothing = subprocess.DEVNULL
    words = ("-c", "from tests.loaded_shell_host import main; main()", json.dumps({**arguments, "role": role}))
    return _fork(words, {}, cwd=Path("/"), stdin=client.fileno(), stdout=nothing, stderr=nothing)


class FramedTransport(Transport):
    """A shell of this machine that is reached as one on another machine is: as `Transport(argv=list, where=...)` starts it."""

    def open(self, arguments: Sequence[str] = bundle.PYTHON_ARGUMENTS) -> PipeChannel:
        return (PipeChannel if are_real() else _ForkedChannel)(self, arguments)


class _ForkedChannel(PipeChannel):
    def _start(self, transport: Transport, arguments: Sequence[str]) -> Any:
        words = ("-c", "from tests.loaded_shell_host import remote; remote()")
        pipe = subprocess.PIPE
        return _fork(words, os.environ, cwd=Path.cwd(), stdin=pipe, stdout=pipe, stderr=self._errors)


def _fork(words: Sequence[str], env: Mapping[str, str], **options: Any) -> Process:
    process = Process(words, env, start_new_session=True, host=_HOST, **options)
    _started[:] = [each for each in _started if each.poll() is None]
    _started.append(process)
    return process


def prepare() -> None:
    """What is opened once for all tests of this process."""
    connect(_HOST)


def below() -> set[int]:
    """The processes of this test: those below this one, and those that were forked for it."""
    found = set(proc.tree(os.getpid()))
    for process in _started:
        if process.poll() is None:
            found |= {process.pid, *proc.tree(process.pid)}
    return found
