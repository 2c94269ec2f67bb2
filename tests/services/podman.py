"""A Podman with a storage of the tests' own, and one image in it."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import containers, image, leftovers
from .tenants import Services, Tenant

# A machine without systemd and without the right to raise limits needs all of it.
_SETTINGS = """\
[containers]
default_ulimits = ["nofile=1024:1024", "nproc=1024:1024"]
netns = "none"
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
events_logger = "file"
"""
# Podman has no engine to talk to: it runs here, among the caretaker's mounts. No new process, so it can be killed as itself.
_PROGRAM = """\
#!/bin/sh
export CONTAINERS_CONF='{folder}/containers.conf' {mark}='{folder}'
exec nsenter --mount=/proc/{caretaker}/ns/mnt --wdns="$PWD" -- '{podman}' \
--root '{folder}/storage' --runroot '{folder}/run' --tmpdir '{folder}/tmp' "$@"
"""


@dataclass(frozen=True)
class Podman:
    """`podman` with `env` in its environment has the test's storage, and `image` is there."""

    tenant: Tenant

    @classmethod
    def join(cls, services: Services, *, own: bool = False) -> Podman:
        return cls(services.join("podman:Storage", own=own, processes=False))

    @property
    def image(self) -> str:
        return image.NAME

    @property
    def program(self) -> Path:
        return self.tenant.folder / "bin" / "podman"

    @property
    def env(self) -> Mapping[str, str]:
        return {"PATH": f"{self.program.parent}:{os.environ['PATH']}"}

    def run(self, *arguments: str, stdin: bytes | None = None) -> str:
        """What a `podman` command printed. It fails loudly."""
        done = subprocess.run([self.program, *arguments], input=stdin, capture_output=True, check=False)
        assert done.returncode == 0, f"podman {' '.join(arguments)}: {done.stderr.decode(errors='replace')}"
        return done.stdout.decode(errors="replace").strip()


class Storage:
    """The storage, as its caretaker sees it. Containers live among the machine's processes, and carry a mark."""

    orders: frozenset[str] = frozenset()

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._program = folder / "bin" / "podman"

    def start(self) -> dict[str, Any]:
        podman = shutil.which("podman")
        assert podman, "no podman"
        (self._folder / "containers.conf").write_text(_SETTINGS)
        self._program.parent.mkdir()
        text = _PROGRAM.format(folder=self._folder, mark=leftovers.MARK, caretaker=os.getpid(), podman=podman)
        self._program.write_text(text)
        self._program.chmod(0o755)
        with subprocess.Popen(
            [self._program, "import", "--quiet", "-", image.NAME], stdin=subprocess.PIPE
        ) as importing:
            assert importing.stdin
            image.write(importing.stdin)
            importing.stdin.close()
        assert importing.returncode == 0
        return {}

    def stop(self) -> None:
        try:
            leftovers.expect_none("containers", self._left)
        finally:
            subprocess.run([self._program, "rm", "--all", "--force", "--time", "0"], capture_output=True, check=False)

    def _left(self) -> list[str]:
        listed = subprocess.run([self._program, *containers.THROW_AWAY], capture_output=True, text=True, check=False)
        return listed.stdout.split()
