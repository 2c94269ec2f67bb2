"""Start processes that fork shells in a third of the time: from one that has loaded what they run (loaded_shell_host.py)."""

from __future__ import annotations

import json
import os
import socket
import subprocess
from pathlib import Path
from typing import Any

from handrail.environments.shell_host import proc

from .fork_server import Host, Process, connect

_HOST = Host(modules=("tests.loaded_shell_host",))
_started: list[Process] = []


def start_process(role: str, client: socket.socket, arguments: dict[str, Any]) -> Process:
    """As `handrail.environments.transport.link.start_process`."""
    process = Process(
        ("-c", "from tests.loaded_shell_host import main; main()", json.dumps({**arguments, "role": role})),
        {},
        cwd=Path("/"),
        stdin=client.fileno(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        host=_HOST,
    )
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
