"""Each kind of container, as the tests of containers need it: how one is made, looked into, and taken away."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from handrail.base.own_process import runtime_id
from handrail.environments.backends.apptainer import ApptainerEnvironment
from handrail.environments.backends.docker import DockerEnvironment
from handrail.environments.backends.podman import PodmanEnvironment
from handrail.environments.live_environment import LiveEnvironment

from ..services.apptainer import Apptainer
from ..services.docker import Docker
from ..services.podman import Podman

# Makes an environment, says what its container is called, and stays in the middle of a command.
_CLIENT = """
import json, sys
from tests.environments.container_kinds import CLASSES, name_of
kind, task, settings, commands = sys.argv[1], sys.argv[2], *map(json.loads, sys.argv[3:])
shell = CLASSES[kind].from_settings(settings, task_id=task)
for command in commands:
    shell.execute(command)
shell.execute("echo begun; sleep 2000", on_output=lambda _: print(name_of(shell), flush=True))
"""

CLASSES: dict[str, Any] = {
    "docker": DockerEnvironment,
    "podman": PodmanEnvironment,
    "apptainer": ApptainerEnvironment,
}


def name_of(shell: LiveEnvironment) -> str:
    name = shell._container  # type: ignore[attr-defined]
    assert isinstance(name, str)
    return name


@dataclass(frozen=True)
class Kind:
    """`env` has to be in this process's environment for the rest to work."""

    name: str
    image: str
    env: Mapping[str, str]
    service: Docker | Podman | Apptainer

    def make(self, task: str = "t", **settings: Any) -> LiveEnvironment:
        made: LiveEnvironment = CLASSES[self.name].from_settings({"image": self.image, **settings}, task_id=task)
        return made

    def is_there(self, name: str) -> bool:
        """Whether there is such a container, running or not."""
        return name in self._names(all_of_them=True)

    def is_running(self, name: str) -> bool:
        return name in self._names(all_of_them=False)

    def inside(self, name: str, *words: str) -> str:
        """What a program in it prints."""
        if self.name == "apptainer":
            return self.service.run("--quiet", "exec", "--cleanenv", "--pwd=/", f"instance://{name}", *words)
        return self.service.run("exec", name, *words)

    def programs(self, name: str) -> list[str]:
        """What runs in it, beside the process that asks."""
        lines = self.inside(name, "ps", "-eo", "comm,args").splitlines()[1:]
        return [line.split(None, 1)[1] for line in lines if not line.startswith("ps ")]

    def remove(self, *names: str) -> None:
        if self.name == "apptainer":
            for name in names:
                self.service.run("instance", "stop", "--signal", "KILL", name)
        else:
            self.service.run("rm", "--force", *names)

    def client(
        self, task: str = "t", commands: tuple[str, ...] = (), **settings: Any
    ) -> tuple[subprocess.Popen[str], str]:
        """A runtime of its own that is in the middle of a command, and the name of its container."""
        words = [self.name, task, json.dumps({"image": self.image, **settings}), json.dumps(commands)]
        client = subprocess.Popen([sys.executable, "-c", _CLIENT, *words], stdout=subprocess.PIPE, text=True)
        assert client.stdout is not None
        with client.stdout:
            name = client.stdout.readline().strip()
        assert name, "the client failed"
        return client, name

    def left(self) -> list[str]:
        """What this process made to throw away, and is still there."""
        owner = runtime_id()
        if self.name == "apptainer":
            logs = Path(self.env["APPTAINER_CONFIGDIR"]).glob(f"instances/logs/*/*/*{owner}*")
            return [*(name for name in self._names(all_of_them=True) if owner in name), *map(str, logs)]
        filters = (f"--filter=label=handrail.owner={owner}", "--filter=label=handrail.lifetime=passing")
        return self.service.run("ps", "--all", *filters, "--format={{.Names}}").split()

    def _names(self, *, all_of_them: bool) -> list[str]:
        if self.name == "apptainer":
            return [one["instance"] for one in json.loads(self.service.run("instance", "list", "--json"))["instances"]]
        options = ["--all"] if all_of_them else []
        return self.service.run("ps", *options, "--filter=label=handrail=1", "--format={{.Names}}").split()


# Leaves `sh`, which is a link to bash.
_REMOVE = """
import glob, os, shutil, sys
root, program = sys.argv[1:]
os.unlink(root + "/usr/bin/sh")
shutil.copy(root + "/usr/bin/bash", root + "/usr/bin/sh")
for path in glob.glob(root + "/usr/bin/" + program + "*"):
    os.unlink(path)
"""


def without(kind: Kind, program: str, folder: str) -> str:
    """An image that lacks a program."""
    if kind.name == "apptainer":
        image = os.path.join(folder, "image")
        shutil.copytree(kind.image, image, symlinks=True, copy_function=os.link)
        subprocess.run([sys.executable, "-c", _REMOVE, image, program], check=True)
        return image
    name, made = f"without-{program}:1", f"making-{program}-{os.urandom(4).hex()}"
    kind.service.run("run", "--network=none", f"--name={made}", kind.image, "python3", "-c", _REMOVE, "", program)
    kind.service.run("commit", made, name)
    kind.service.run("rm", made)
    return name
