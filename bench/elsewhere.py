"""Figures of commands in containers and on other machines, against the engines and the ssh server that the tests start."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing

from tests.services.apptainer import Apptainer
from tests.services.docker import Docker
from tests.services.sshd import Ssh
from tests.services.tenants import Services

from handrail.tools.environments.apptainer import ApptainerEnvironment
from handrail.tools.environments.base import Environment
from handrail.tools.environments.docker import DockerEnvironment
from handrail.tools.environments.local import LocalEnvironment
from handrail.tools.environments.ssh import SshEnvironment

from .harness import Figure, milliseconds, paired

_LIMIT_SECONDS = 1.0
_OVERSHOOT_SECONDS = 0.08
# A grandchild that ignores SIGTERM in a session of its own, one left to init, and one in the foreground.
_STUBBORN = "bash -c 'trap \"\" TERM; (setsid sleep 4242 &) ; sleep 4243' & sleep 4244"
_ALIVE = "cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' ' ' | grep -c 'sleep 424[234]'"


def figures() -> Iterator[Figure]:
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        local = stack.enter_context(LocalEnvironment(folder))
        for name, there in _places(stack):
            with closing(there):
                yield _echo(name, there, local)
                yield _time_limit(name, there)


def _places(stack: ExitStack) -> Iterator[tuple[str, Environment]]:
    services = Services()
    docker = Docker.join(services)
    stack.enter_context(docker.tenant)
    _set(docker.env)
    yield "docker", DockerEnvironment.from_settings({"image": docker.image}, task_id="bench")
    ssh = Ssh.join(services)
    stack.enter_context(ssh.tenant)
    yield "ssh", SshEnvironment.from_settings({"host": ssh.alias, "config_file": str(ssh.config)}, task_id="bench")
    apptainer = Apptainer.join(services)
    stack.enter_context(apptainer.tenant)
    _set(apptainer.env)
    yield "apptainer", ApptainerEnvironment.from_settings({"image": apptainer.image}, task_id="bench")


def _set(variables: Mapping[str, str]) -> None:
    os.environ.update(variables)


def _echo(name: str, there: Environment, local: Environment) -> Figure:
    def repeated(environment: Environment, count: int) -> None:
        for _ in range(count):
            assert environment.execute("echo hi", timeout=60).output.head == b"hi\n"

    mine, base, ratio = paired(lambda count: repeated(there, count), lambda count: repeated(local, count))
    peers = {"docker": "one exec each 45", "ssh": "one exec each 16", "apptainer": "one exec each 40"}[name]
    return Figure(f"`echo hi` in {name}, to the local one", milliseconds(mine), milliseconds(base), ratio, 3, peers)


def _time_limit(name: str, there: Environment) -> Figure:
    worst = 0.0
    for command in ("sleep 4243", _STUBBORN) * 3:
        start = time.perf_counter()
        assert there.execute(command, timeout=_LIMIT_SECONDS).timed_out
        worst = max(worst, time.perf_counter() - start - _LIMIT_SECONDS)
        assert there.execute(_ALIVE, timeout=60).output.head == b"0\n", "something lives on"
    what = f"  a limit of 1 s in {name}: overshoot, of 80 ms"
    peers = "hermes 1.4 s; SWE-ReX leaves 1-2 alive"
    return Figure(what, milliseconds(worst), "80 ms", worst / _OVERSHOOT_SECONDS, 1, peers)
