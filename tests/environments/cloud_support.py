"""Environments in sandboxes of the clouds' doubles, for both clouds alike."""

from __future__ import annotations

import json
import subprocess
import sys
import uuid
from dataclasses import dataclass, field
from typing import Any

from handrail.environments.cloud import CloudEnvironment

from ..services.clouds import Cloud
from ..services.proofs import running_with
from .conftest import PATIENCE_SECONDS, text

RUNTIME = """
import importlib, json, sys
module, name, settings, task = sys.argv[1:]
kind = getattr(importlib.import_module(module), name)
environment = kind.from_settings(json.loads(settings), task_id=task)
environment.background("sleep 2000")
environment.execute("setsid -f sleep 2001 >/dev/null 2>&1")
environment.execute("echo begun; sleep 2002", on_output=lambda _: print("begun", flush=True))
"""


@dataclass
class Place:
    """One cloud, and what a test made in it."""

    kind: type[CloudEnvironment]
    service: Cloud
    sdk: Any
    mark: str = field(default_factory=lambda: uuid.uuid4().hex)
    made: list[CloudEnvironment] = field(default_factory=list)

    def make(self, *, task_id: str = "task", **settings: Any) -> CloudEnvironment:
        task_id = f"{self.mark[:8]}-{task_id}"
        self.made.append(self.kind.from_settings(settings, task_id=task_id, env={"MARK": self.mark}))
        return self.made[-1]

    def sandboxes(self) -> dict[str, str]:
        """Those of this test with their labels; other workers have theirs in the same cloud."""
        lines = self.service.docker.run("ps", "--all", "--format", "{{.Names}} {{.Labels}}").splitlines()
        return {line.split()[0]: line for line in lines if self.mark[:8] in line}

    def sandbox(self, environment: CloudEnvironment) -> str:
        assert environment._sandbox is not None
        return environment._opened()[1].id_of(environment._sandbox)

    def running(self) -> list[int]:
        return running_with(self.mark)

    def remove(self, *sandboxes: str) -> None:
        self.service.docker.run("rm", "--force", *sandboxes)

    def start_runtime(self, **settings: Any) -> subprocess.Popen[bytes]:
        """A process of its own, in the middle of a command."""
        given = json.dumps({"env": {"MARK": self.mark}, **settings})
        runtime = subprocess.Popen(
            [
                sys.executable,
                "-W",
                "ignore",
                "-c",
                RUNTIME,
                self.kind.__module__,
                self.kind.__name__,
                given,
                f"{self.mark[:8]}-killed",
            ],
            stdout=subprocess.PIPE,
        )
        assert runtime.stdout is not None
        with runtime.stdout as said:
            assert said.readline() == b"begun\n"
        return runtime


def run(environment: CloudEnvironment, command: str) -> str:
    return text(environment.execute(command, timeout=PATIENCE_SECONDS))
