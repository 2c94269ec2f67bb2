"""How the contract tests make an environment of each backend: one function a backend, and the service that it needs.

`folder` is empty, and the subject's alone. `service` is what the fixture gave: see tests/services/fixtures.py.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from handrail.testing.environment_conformance import Conformance
from handrail.tools.environments.far import proc
from handrail.tools.environments.local import LocalEnvironment
from handrail.tools.environments.sandbox import Mechanism, SandboxPolicy


class Backend(NamedTuple):
    subject: Callable[[Path, Any], Conformance]
    fixture: str | None = None


def local(folder: Path, service: None) -> Conformance:
    def make() -> LocalEnvironment:
        return LocalEnvironment(str(folder), processes_dir=str(folder / "processes"))

    return Conformance(make, break_connection=kill_keeper_and_guard)


def bubblewrap(folder: Path, service: None) -> Conformance:
    return sandboxed(folder, Mechanism.BUBBLEWRAP)


def landlock(folder: Path, service: None) -> Conformance:
    return sandboxed(folder, Mechanism.LANDLOCK)


def sandboxed(folder: Path, mechanism: Mechanism) -> Conformance:
    def make() -> LocalEnvironment:
        return LocalEnvironment(str(folder), sandbox=SandboxPolicy(mechanism=mechanism))

    return Conformance(make, break_connection=kill_sandbox)


# The name before the first dash is the backend's own.
BACKENDS = {
    "local": Backend(local),
    "local-bubblewrap": Backend(bubblewrap),
    "local-landlock": Backend(landlock),
}


def kill_keeper_and_guard(environment: Any) -> None:
    keeper = environment._link._shell.line.keeper
    stat = proc.stat_of(keeper)
    assert stat is not None
    os.kill(stat.parent, signal.SIGKILL)
    os.kill(keeper, signal.SIGKILL)


def kill_sandbox(environment: Any) -> None:
    """All of it at once: bwrap's first process alone would leave the sandbox as it is."""
    proc.signal_each(proc.tree(environment._link._process.pid), signal.SIGKILL)
