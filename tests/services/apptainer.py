"""An Apptainer with folders of the tests' own, and a root file system to run from."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import image, leftovers
from .tenants import Services, Tenant


@dataclass(frozen=True)
class Apptainer:
    """`apptainer` with `env` in its environment keeps its files with the test; `image` is a sandbox folder to run from."""

    tenant: Tenant

    @classmethod
    def join(cls, services: Services, *, own: bool = False) -> Apptainer:
        return cls(services.join("apptainer:Folders", own=own, processes=False))

    @property
    def image(self) -> str:
        return str(self.tenant.folder / "image")

    @property
    def env(self) -> Mapping[str, str]:
        return _environment(self.tenant.folder)

    def run(self, *arguments: str, stdin: bytes | None = None) -> str:
        """What an `apptainer` command printed. It fails loudly."""
        env = {**os.environ, **self.env}
        done = subprocess.run(["apptainer", *arguments], input=stdin, env=env, capture_output=True, check=False)
        assert done.returncode == 0, f"apptainer {' '.join(arguments)}: {done.stderr.decode(errors='replace')}"
        return done.stdout.decode(errors="replace").strip()


class Folders:
    """The folders, as their caretaker sees them. What runs from them was started by a test."""

    orders: frozenset[str] = frozenset()

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def start(self) -> dict[str, Any]:
        for name in ("cache", "config", "root", "tmp"):
            (self._folder / name).mkdir()
        root = self._folder / "root"
        with subprocess.Popen(["tar", "-x", "-C", root], stdin=subprocess.PIPE) as unpacking:
            assert unpacking.stdin
            image.write(unpacking.stdin)
            unpacking.stdin.close()
        assert unpacking.returncode == 0
        # A bare file system can be executed in; an instance needs the start scripts, too.
        command = ["apptainer", "--quiet", "build", "--sandbox", str(self._folder / "image"), str(root)]
        subprocess.run(command, env={**os.environ, **_environment(self._folder)}, check=True, capture_output=True)
        return {}

    def stop(self) -> None:
        """The caretaker ends what has the folder among its mounts."""
        leftovers.expect_none("instances", self._left)

    def _left(self) -> list[str]:
        """What an environment should have ended. Those that are used again have no owner in their names."""
        env = {**os.environ, **_environment(self._folder)}
        listed = subprocess.run(["apptainer", "instance", "list", "--json"], env=env, capture_output=True, check=False)
        names = [one["instance"] for one in json.loads(listed.stdout or "{}").get("instances") or []]
        return [name for name in names if re.fullmatch(r"handrail(-\w+){7}", name)]


def _environment(folder: Path) -> dict[str, str]:
    return {
        "APPTAINER_CACHEDIR": str(folder / "cache"),
        "APPTAINER_CONFIGDIR": str(folder / "config"),
        "APPTAINER_TMPDIR": str(folder / "tmp"),
    }
