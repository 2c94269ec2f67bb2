"""Figures of commands in containers and on other machines, against the engines and the ssh server that the tests start."""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from typing import Any

from tests.services.apptainer import Apptainer
from tests.services.clouds import Cloud
from tests.services.docker import Docker
from tests.services.podman import Podman
from tests.services.sshd import Ssh
from tests.services.tenants import Services

from handrail.environments.backends.apptainer import ApptainerEnvironment
from handrail.environments.backends.daytona import DaytonaEnvironment
from handrail.environments.backends.docker import DockerEnvironment
from handrail.environments.backends.modal import ModalEnvironment
from handrail.environments.backends.podman import PodmanEnvironment
from handrail.environments.backends.ssh import SshEnvironment
from handrail.environments.base import Environment
from handrail.environments.local_environment import LocalEnvironment

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
        services = Services()
        docker, podman, apptainer = Docker.join(services), Podman.join(services), Apptainer.join(services)
        ssh = Ssh.join(services)
        modal, daytona = Cloud.modal(services, docker), Cloud.daytona(services, docker)
        for service in (docker, podman, apptainer, ssh, modal, daytona):
            stack.enter_context(service.tenant)
        login = {"host": ssh.alias, "config_file": str(ssh.config)}
        with _there(DockerEnvironment, docker.env, image=docker.image) as there:
            yield from _both("docker", there, local)
        with _there(PodmanEnvironment, podman.env, image=podman.image) as there:
            yield from _both("podman", there, local)
        with _there(ApptainerEnvironment, apptainer.env, image=apptainer.image) as there:
            yield from _both("apptainer", there, local)
        with _there(SshEnvironment, {}, **login) as there:
            yield from _both("ssh", there, local)
        yield _bare_ssh(ssh, local)
        with _there(ModalEnvironment, modal.env) as there:
            yield _time_limit("modal's double", there)
        with _there(DaytonaEnvironment, daytona.env) as there:
            yield _time_limit("daytona's double", there)


@contextmanager
def _there(kind: Any, variables: Mapping[str, str], **settings: str) -> Iterator[Environment]:
    before = dict(os.environ)
    os.environ.update(variables)
    try:
        with closing(kind.from_settings(settings, task_id="bench")) as there:
            yield there
    finally:
        os.environ.clear()
        os.environ.update(before)


def _both(name: str, there: Environment, local: Environment) -> Iterator[Figure]:
    yield _echo(name, there, local)
    yield _time_limit(name, there)


def _echo(name: str, there: Environment, local: Environment) -> Figure:
    def repeated(environment: Environment, count: int) -> None:
        for _ in range(count):
            assert environment.execute("echo hi", timeout=60).output.head == b"hi\n"

    mine, base, ratio = paired(lambda count: repeated(there, count), lambda count: repeated(local, count))
    peers = {"ssh": "one exec each 16", "apptainer": "one exec each 40"}.get(name, "one exec each 45")
    return Figure(f"`echo hi` in {name}, to the local one", milliseconds(mine), milliseconds(base), ratio, 4, peers)


def _bare_ssh(ssh: Ssh, local: Environment) -> Figure:
    """What no shell over ssh can be quicker than: nothing but the bytes there and back, and a bash that reads them."""
    command = ["ssh", "-F", str(ssh.config), ssh.alias, "exec bash --norc"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0) as bash:
        stdin, stdout = bash.stdin, bash.stdout
        assert stdin is not None
        assert stdout is not None

        def bare(count: int) -> None:
            for _ in range(count):
                stdin.write(b"echo hi\n")
                assert stdout.read(100) == b"hi\n"

        def ours(count: int) -> None:
            for _ in range(count):
                local.execute("echo hi", timeout=60)

        floor, base, ratio = paired(bare, ours)
        stdin.close()
    return Figure("  a bare bash over ssh, to the local one of ours", milliseconds(floor), milliseconds(base), ratio)


def _time_limit(name: str, there: Environment) -> Figure:
    there.start()
    worst = 0.0
    for command in ("sleep 4243", _STUBBORN) * 3:
        start = time.perf_counter()
        assert there.execute(command, timeout=_LIMIT_SECONDS).timed_out
        worst = max(worst, time.perf_counter() - start - _LIMIT_SECONDS)
        assert there.execute(_ALIVE, timeout=60).output.head == b"0\n", "something lives on"
    what = f"  a limit of 1 s in {name}: overshoot, of 80 ms"
    peers = "hermes 1.4 s; SWE-ReX leaves 1-2 alive"
    return Figure(what, milliseconds(worst), "80 ms", worst / _OVERSHOOT_SECONDS, 1, peers)
