"""Use a service: start it if nobody has, share it with whoever is there, and as the last one see it stopped."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import struct
import subprocess
import sys
import tempfile
import uuid
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..support import wait_until
from . import leftovers, places, seclusion
from .caretaker import Plan

_MAX_ATTEMPTS = 50


class ServiceFailed(AssertionError):
    """A service did not start, or did not do what it was told. The text is what it said."""


@dataclass(frozen=True)
class Services:
    """The services of one test run. Runs do not share services; the workers of a run do."""

    run: str = field(default_factory=lambda: uuid.uuid4().hex[:8])

    def join(
        self,
        service: str,
        *,
        name: str = "",
        own: bool = False,
        processes: bool = True,
        network: bool = False,
        **options: Any,
    ) -> Tenant:
        """A tenancy of `module:class`, under the module's name or `name`; with `own` of one that nobody else can join.

        `processes` and `network` are the namespaces that it has for itself, beside the one of mounts.
        """
        unique = f"-{uuid.uuid4().hex[:8]}" if own else ""
        folder = places.folder_of(self.run, (name or service.partition(":")[0]) + unique)
        for _ in range(_MAX_ATTEMPTS):
            connection = _connect(folder)
            if connection is None:
                _launch(seclusion.flags(processes=processes), str(folder), service, options, network)
                continue
            with contextlib.suppress(_WasLeaving):
                return Tenant(folder, connection)
        raise ServiceFailed(f"{service}: no caretaker stays")


class Tenant:
    """A use of a service. `facts` is what the service tells; `with` it, or `leave` it."""

    def __init__(self, folder: Path, connection: socket.socket) -> None:
        self.folder = folder
        self._connection = connection
        self._lines = connection.makefile("rb")
        try:
            self.facts: dict[str, Any] = self._answer()
        except BaseException:
            self.leave()
            raise

    @property
    def caretaker(self) -> int:
        """Its process id, as seen from here."""
        credentials = self._connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
        return int(struct.unpack("3i", credentials)[0])

    def order(self, name: str, **arguments: Any) -> Any:
        self._connection.sendall(json.dumps({"name": name, "arguments": arguments}).encode())
        return self._answer()

    def leave(self) -> None:
        """If no one else uses the service, it is stopped and its last process is gone when this returns."""
        if self._connection.fileno() < 0:
            return
        session = self._session()
        said = b""
        with self._connection, self._lines, contextlib.suppress(OSError):
            self._connection.shutdown(socket.SHUT_WR)
            said = self._lines.read()
        if b'"error"' in said:
            raise ServiceFailed(said.decode())
        if b'"stopped"' in said:
            wait_until(lambda: not leftovers.in_session(session), otherwise=lambda: f"{self.folder.name} does not end")

    def __enter__(self) -> Tenant:
        return self

    def __exit__(self, *_: object) -> None:
        self.leave()

    def _session(self) -> int:
        try:
            return os.getsid(self.caretaker)
        except ProcessLookupError:
            return -1

    def _answer(self) -> Any:
        try:
            line = self._lines.readline()
        except ConnectionError:
            line = b""
        if not line:
            raise _WasLeaving(f"the caretaker of {self.folder.name} ended")
        answer = json.loads(line)
        if "error" in answer:
            raise ServiceFailed(answer["error"])
        return answer["result"]


class _WasLeaving(ServiceFailed):
    """The caretaker ended between being found and answering."""


def _connect(folder: Path) -> socket.socket | None:
    connection = socket.socket(socket.AF_UNIX)
    try:
        connection.connect(places.address_of(folder))
    except OSError:
        connection.close()
        return None
    return connection


def _launch(unshare_flags: list[str], *plan: Any) -> None:
    """Start a caretaker and return when it can be connected to, or when another one was faster."""
    # Here, not in the caretaker: what is left of a killed one may be in no namespace.
    leftovers.sweep()
    read_fd, write_fd = os.pipe()
    with tempfile.TemporaryFile() as said, open(read_fd, "rb") as started:
        whole_plan = Plan(*plan, seclusion.process_namespace(), write_fd)
        command = [sys.executable, "-m", f"{__package__}.caretaker", whole_plan.to_json()]
        # Nobody's child: it outlives this worker if another one uses the service.
        launched = ["setsid", "--fork", "unshare", *unshare_flags, "--", *command]
        try:
            subprocess.run(
                launched,
                cwd=places.ROOT,
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=said,
                pass_fds=[write_fd],
                check=True,
            )
        finally:
            os.close(write_fd)
        if not started.read(1):
            said.seek(0)
            if complaint := said.read().decode(errors="replace"):
                raise ServiceFailed(complaint)
