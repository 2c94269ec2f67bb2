"""A Docker engine of the tests' own, with one image in it."""

from __future__ import annotations

import http.client
import socket
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..support import wait_until
from . import containers, image, leftovers, places
from .tenants import Services, Tenant

_START_SECONDS = 30.0


@dataclass(frozen=True)
class Docker:
    """A running engine: `docker` with `env` in its environment talks to it, and `image` is there."""

    tenant: Tenant

    @classmethod
    def join(cls, services: Services, *, own: bool = False) -> Docker:
        return cls(services.join("docker:Dockerd", own=own))

    @property
    def image(self) -> str:
        return image.NAME

    @property
    def env(self) -> Mapping[str, str]:
        return {"DOCKER_HOST": self.tenant.facts["host"], "DOCKER_CONFIG": self.tenant.facts["config"]}

    def run(self, *arguments: str, **options: Any) -> str:
        """What a `docker` command printed. It fails loudly."""
        return docker(self.tenant.facts["host"], *arguments, **options)

    def kill(self) -> None:
        """`kill -9` of the engine; what runs in containers runs on. Only for an engine of one's own."""
        self.tenant.order("kill")

    def start_again(self) -> None:
        self.tenant.order("start_again")


class Dockerd:
    """The engine, as its caretaker sees it."""

    orders = frozenset({"kill", "start_again"})

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._socket = folder / "docker.sock"
        self._host = f"unix://{self._socket}"
        self._config = folder / "config"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> dict[str, Any]:
        self._config.mkdir()
        self.start_again()
        self._import_image()
        return {"host": self._host, "config": str(self._config)}

    def start_again(self) -> None:
        self._socket.unlink(missing_ok=True)
        # A pid file of a killed engine would name a process that is now something else.
        (self._folder / "docker.pid").unlink(missing_ok=True)
        command = [
            "dockerd",
            *("--host", self._host),
            *("--data-root", str(self._folder / "data")),
            *("--exec-root", str(self._folder / "exec")),
            *("--pidfile", str(self._folder / "docker.pid")),
            *("--cgroup-parent", places.control_group_of(self._folder)),
            *("--exec-opt", "native.cgroupdriver=cgroupfs"),
            "--storage-driver=overlay2",
            "--iptables=false",
            "--bridge=none",
        ]
        with open(self._folder / "dockerd.log", "ab") as log:
            self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        wait_until(self._answers, timeout=_START_SECONDS, otherwise=self._log)

    def kill(self) -> None:
        assert self._process
        self._process.kill()
        self._process.wait()

    def stop(self) -> None:
        """The caretaker ends what is in the namespace; an orderly stop would wait for containers that ignore it."""
        if self._process and self._process.poll() is None:
            leftovers.expect_none("containers", lambda: docker(self._host, *containers.THROW_AWAY).split())

    def _answers(self) -> bool:
        assert self._process
        if self._process.poll() is not None:
            raise AssertionError(self._log())
        connection = http.client.HTTPConnection("docker")
        try:
            connection.sock = socket.socket(socket.AF_UNIX)
            connection.sock.connect(str(self._socket))
            connection.request("GET", "/_ping")
            return connection.getresponse().status == 200
        except OSError:
            return False
        finally:
            connection.close()

    def _log(self) -> str:
        return (self._folder / "dockerd.log").read_text(errors="replace")[-4000:]

    def _import_image(self) -> None:
        command = ["docker", "--host", self._host, "import", "-", image.NAME]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as importing:
            assert importing.stdin
            image.write(importing.stdin)
            importing.stdin.close()
        assert importing.returncode == 0, self._log()


def docker(host: str, *arguments: str, stdin: bytes | None = None) -> str:
    done = subprocess.run(["docker", "--host", host, *arguments], input=stdin, capture_output=True, check=False)
    assert done.returncode == 0, f"docker {' '.join(arguments)}: {done.stderr.decode(errors='replace')}"
    return done.stdout.decode(errors="replace").strip()
