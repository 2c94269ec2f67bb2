"""A double of a cloud's server, as its caretaker sees it: a process that speaks the cloud's protocol on loopback."""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

from ..support import free_port, wait_until
from . import containers, places
from .docker import docker

_START_SECONDS = 60.0


class Double:
    """`module` is run with the engine's host, the double's name and the port. It keeps its state in the containers."""

    orders = frozenset({"kill", "start_again"})

    def __init__(self, folder: Path, *, module: str, engine: str) -> None:
        self._folder = folder
        self._module = module
        self._engine = engine
        self._port = free_port()
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> dict[str, Any]:
        self.start_again()
        return {"port": self._port, "owner": self._folder.name}

    def start_again(self) -> None:
        command = [
            sys.executable,
            "-m",
            f"{__package__}.{self._module}",
            self._engine,
            self._folder.name,
            str(self._port),
        ]
        with open(self._folder / "log", "ab") as log:
            self._process = subprocess.Popen(command, cwd=places.ROOT, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        wait_until(self._answers, timeout=_START_SECONDS, otherwise=self._log)

    def kill(self) -> None:
        assert self._process
        self._process.kill()
        self._process.wait()

    def stop(self) -> None:
        if self._process:
            self.kill()
        left = docker(
            self._engine, "ps", "--all", "--quiet", "--filter", f"label={containers.OWNER}={self._folder.name}"
        )
        if left:
            docker(self._engine, "rm", "--force", *left.split())

    def _answers(self) -> bool:
        assert self._process
        if self._process.poll() is not None:
            raise AssertionError(self._log())
        with socket.socket() as connection:
            return connection.connect_ex(("127.0.0.1", self._port)) == 0

    def _log(self) -> str:
        return (self._folder / "log").read_text(errors="replace")[-4000:]
