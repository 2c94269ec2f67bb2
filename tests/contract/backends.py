"""How the contract tests make an environment of each backend: one function per backend, and the service that it needs.
A backend that needs neither is found by its file.

`folder` is empty, and the subject's alone. `service` is the value of the fixture: see tests/services/fixtures.py. Its `env` is in
this process's environment for as long as the subject is used.
"""

from __future__ import annotations

import os
import signal
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from handrail.environments import LocalEnvironment, SandboxPolicy, default_backends
from handrail.environments.backend_table import built_in
from handrail.environments.sandbox import Mechanism
from handrail.environments.shell_host import proc
from handrail.testing import Conformance


class Backend(NamedTuple):
    """`fixture` is the name of the service's fixture."""

    subject: Callable[[Path, Any], Conformance]
    fixture: str | None = None


def local(folder: Path, service: None) -> Conformance:
    def make() -> LocalEnvironment:
        return LocalEnvironment(str(folder), processes_dir=str(folder / "processes"))

    return Conformance(make, break_connection=kill_supervisor_and_fork_server)


def namespaces(folder: Path, service: None) -> Conformance:
    return sandboxed(folder, Mechanism.NAMESPACES)


def landlock(folder: Path, service: None) -> Conformance:
    return sandboxed(folder, Mechanism.LANDLOCK)


def sandboxed(folder: Path, mechanism: Mechanism) -> Conformance:
    def make() -> LocalEnvironment:
        return LocalEnvironment(str(folder), sandbox=SandboxPolicy(mechanism=mechanism))

    return Conformance(make, break_connection=lambda env: env._link._channel._process.kill())


def docker(folder: Path, service: Any) -> Conformance:
    return contained("docker", service)


def podman(folder: Path, service: Any) -> Conformance:
    return contained("podman", service)


def contained(backend: str, service: Any) -> Conformance:
    make = maker(backend, {"image": service.image})
    return Conformance(make, break_connection=lambda env: service.run("rm", "--force", env._container))


def apptainer(folder: Path, service: Any) -> Conformance:
    make = maker("apptainer", {"image": service.image})

    def stop(env: Any) -> None:
        service.run("instance", "stop", "--signal", "KILL", env._container)

    return Conformance(make, break_connection=stop)


def ssh(folder: Path, service: Any) -> Conformance:
    make = maker("ssh", {"host": service.alias, "config_file": str(service.config)})
    return Conformance(make, break_connection=lambda env: os.kill(client(env), signal.SIGKILL))


def modal(folder: Path, service: Any) -> Conformance:
    return clouded("modal", service)


def daytona(folder: Path, service: Any) -> Conformance:
    return clouded("daytona", service)


def clouded(backend: str, service: Any) -> Conformance:
    make = maker(backend, {})

    def remove(env: Any) -> None:
        service.docker.run("rm", "--force", env._opened()[1].id_of(env._sandbox))

    return Conformance(make, break_connection=remove)


def default(backend: str) -> Callable[[Path, None], Conformance]:
    """For a backend that needs no service and no settings."""
    return lambda folder, service: Conformance(maker(backend, {}, cwd=str(folder)))


# The name before the first dash is the backend's own.
BACKENDS = {
    **{name: Backend(default(name)) for name in built_in()},
    "local": Backend(local),
    "local-namespaces": Backend(namespaces),
    "local-landlock": Backend(landlock),
    "docker": Backend(docker, "docker_service"),
    "podman": Backend(podman, "podman_service"),
    "apptainer": Backend(apptainer, "apptainer_service"),
    "ssh": Backend(ssh, "ssh_service"),
    "modal": Backend(modal, "modal_service"),
    "daytona": Backend(daytona, "daytona_service"),
}


def maker(backend: str, settings: dict[str, Any], cwd: str | None = None) -> Callable[[], Any]:
    """Environments of one task: what survives in one is found by the next."""
    kind = default_backends.get(backend)
    task = f"contract-{uuid.uuid4().hex[:8]}"
    return lambda: kind.from_settings(settings, task_id=task, cwd=cwd, env={})


def client(environment: Any) -> int:
    """The program that a session goes through: ssh, docker exec."""
    link = environment._link
    return int(getattr(link, "_channel", link)._process.pid)


def kill_supervisor_and_fork_server(environment: Any) -> None:
    supervisor = environment._link.shell.connection.supervisor
    stat = proc.stat_of(supervisor)
    assert stat is not None
    os.kill(stat.parent, signal.SIGKILL)
    os.kill(supervisor, signal.SIGKILL)
