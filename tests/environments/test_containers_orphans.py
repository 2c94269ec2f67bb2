"""What a killed runtime leaves: nothing that runs, and a container that ends by itself or is cleared away by the next.

The engines here are these tests' own: clearing away means everything that has lost its owner, another test's too.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from handrail.environments import containers

from ..services.apptainer import Apptainer
from ..services.components import require
from ..services.docker import Docker
from ..services.podman import Podman
from ..services.tenants import Services
from ..support import wait_until
from .conftest import PATIENCE_SECONDS, text
from .container_kinds import CLASSES, Kind

# What differs between Docker and Podman is the engine: our code is the same.
pytestmark = pytest.mark.by_turns("service", ("docker", "podman"))

_NEEDS = {
    "docker": (Docker, ("dockerd", "docker", "containerd", "runc"), "docker.io"),
    "podman": (Podman, ("podman", "runc", "nsenter"), "podman"),
    "apptainer": (Apptainer, ("apptainer",), "run scripts/services/install.sh"),
}


@pytest.fixture(scope="module", params=_NEEDS)
def service(request: pytest.FixtureRequest, services: Services) -> Iterator[Kind]:
    make, programs, packages = _NEEDS[request.param]
    require(*programs, packages=packages)
    service = make.join(services, own=True)
    with service.tenant:
        yield Kind(request.param, service.image, service.env, service)


@pytest.fixture
def kind(service: Kind, monkeypatch: pytest.MonkeyPatch) -> Iterator[Kind]:
    for name, value in service.env.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(containers, "_cleared", set())
    yield service
    wait_until(lambda: _pruned(service) == [])


def test_a_killed_runtime_leaves_nothing_running_and_its_container_ends_by_itself(kind: Kind) -> None:
    client, name = kind.client(commands=("setsid -f sleep 2001",), leave_after=5)
    assert "sleep 2001" in kind.programs(name)
    client.kill()
    client.wait()
    wait_until(lambda: set(kind.programs(name)) - {"appinit"} == {"handrail-wait"})
    wait_until(lambda: not kind.is_there(name), timeout=PATIENCE_SECONDS)
    CLASSES[kind.name].prune()  # the log of an instance


def test_what_a_killed_runtime_left_is_found_and_cleared_away_by_the_next(kind: Kind) -> None:
    client, name = kind.client(leave_after=1000)
    assert name not in _pruned(kind)  # its owner lives
    client.kill()
    client.wait()
    assert name in _pruned(kind)
    assert kind.is_running(name)
    with kind.make():
        wait_until(lambda: not kind.is_there(name))


def test_pruning_takes_away_what_it_names(kind: Kind) -> None:
    client, name = kind.client(task="lost", leave_after=1000)
    client.kill()
    client.wait()
    assert name in _names(CLASSES[kind.name].prune())
    assert not kind.is_there(name)


def test_a_persistent_one_of_a_killed_runtime_stops_by_itself_and_keeps_its_files(kind: Kind) -> None:
    client, name = kind.client("lasting", ("echo kept >/file",), persistent=True, leave_after=5)
    client.kill()
    client.wait()
    wait_until(lambda: not kind.is_running(name), timeout=PATIENCE_SECONDS)
    assert name not in _pruned(kind)
    with kind.make("lasting", persistent=True, leave_after=5) as shell:
        assert text(shell.execute("cat /file", timeout=PATIENCE_SECONDS)) == "kept\n"


def _pruned(kind: Kind) -> list[str]:
    return _names(CLASSES[kind.name].prune(dry_run=True))


def _names(orphans: list[str]) -> list[str]:
    """Without the engine's name before, and the task behind. Not the folders of this machine, which all engines share."""
    names = [orphan.split()[1].rstrip(",") for orphan in orphans]
    return [name for name in names if not name.startswith("/")]
