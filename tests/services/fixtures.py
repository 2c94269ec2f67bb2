"""What a test asks for when it needs a real service. Nothing is started before it is asked for.

The plain ones are shared by the whole run: leave in them what you found. The ones called `own_` are the test's alone, and
may be killed.
"""

from __future__ import annotations

import hashlib
import importlib
from collections.abc import Iterator
from types import ModuleType
from typing import Protocol, TypeVar

import pytest

from .. import conftest
from .apptainer import Apptainer
from .clouds import Cloud
from .components import absent, require
from .docker import Docker
from .homeassistant import IS_COMPLETE as HOMEASSISTANT_IS_COMPLETE
from .homeassistant import HomeAssistant
from .podman import Podman
from .postgres import Postgres
from .postgres import program as postgres_program
from .searx import Searx
from .sshd import Ssh
from .synapse import PYTHON as SYNAPSE_PYTHON
from .synapse import Matrix
from .tenants import Services, Tenant


class _Joined(Protocol):
    @property
    def tenant(self) -> Tenant: ...


_Service = TypeVar("_Service", bound=_Joined)


@pytest.fixture(scope="session")
def services(request: pytest.FixtureRequest) -> Services:
    """The services of this run, which all its workers share."""
    worker = getattr(request.config, "workerinput", None)
    return Services(hashlib.sha256(worker["testrunuid"].encode()).hexdigest()[:8]) if worker else Services()


@pytest.fixture(scope="session")
def docker_service(services: Services) -> Iterator[Docker]:
    require("dockerd", "docker", "containerd", "runc", packages="docker.io")
    yield from _lent(Docker.join(services))


@pytest.fixture
def own_docker_service(services: Services) -> Iterator[Docker]:
    require("dockerd", "docker", "containerd", "runc", packages="docker.io")
    yield from _lent(Docker.join(services, own=True))


@pytest.fixture(scope="session")
def podman_service(services: Services) -> Iterator[Podman]:
    require("podman", "runc", "nsenter", packages="podman")
    yield from _lent(Podman.join(services))


@pytest.fixture(scope="session")
def apptainer_service(services: Services) -> Iterator[Apptainer]:
    require("apptainer", packages="run scripts/services/install.sh")
    yield from _lent(Apptainer.join(services))


@pytest.fixture(scope="session")
def ssh_service(services: Services) -> Iterator[Ssh]:
    require("sshd", "ssh", "ssh-keygen", packages="openssh-server")
    yield from _lent(Ssh.join(services))


@pytest.fixture
def own_ssh_service(services: Services) -> Iterator[Ssh]:
    require("sshd", "ssh", "ssh-keygen", packages="openssh-server")
    yield from _lent(Ssh.join(services, own=True))


@pytest.fixture
def far_ssh_service(services: Services) -> Iterator[Ssh]:
    """Behind a link that can be cut: `far_ssh_service.link`."""
    require("sshd", "ssh", "ssh-keygen", "ip", "nsenter", packages="openssh-server")
    yield from _lent(Ssh.far(services))


@pytest.fixture(scope="session")
def searx_service(services: Services) -> Iterator[Searx]:
    require("searx-run", packages="searx")
    yield from _lent(Searx.join(services))


@pytest.fixture(scope="session")
def postgres_service(services: Services) -> Iterator[Postgres]:
    require("setpriv", packages="postgresql", modules=("psycopg",))
    if not postgres_program("postgres"):
        absent("PostgreSQL", "apt-get install postgresql")
    yield from _lent(Postgres.join(services))


@pytest.fixture(scope="session")
def modal_service(services: Services, docker_service: Docker) -> Iterator[Cloud]:
    require(packages="pip install 'handrail[modal]'", modules=("modal", "grpclib"))
    yield from _lent(Cloud.modal(services, docker_service))


@pytest.fixture(scope="session")
def daytona_service(services: Services, docker_service: Docker) -> Iterator[Cloud]:
    require(packages="pip install 'handrail[daytona]'", modules=("daytona", "aiohttp"))
    yield from _lent(Cloud.daytona(services, docker_service))


@pytest.fixture(scope="session")
def matrix_service(services: Services) -> Iterator[Matrix]:
    require(str(SYNAPSE_PYTHON), packages="run scripts/services/install-synapse.sh")
    yield from _lent(Matrix.join(services))


@pytest.fixture(scope="session")
def home_service(services: Services) -> Iterator[HomeAssistant]:
    require(packages="")
    if not HOMEASSISTANT_IS_COMPLETE.exists():
        absent("Home Assistant", "run scripts/services/install-homeassistant.sh")
    yield from _lent(HomeAssistant.join(services))


@pytest.fixture
def modal_sdk(modal_service: Cloud, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """The real SDK, talking to the double."""
    for name, value in modal_service.env.items():
        monkeypatch.setenv(name, value)
    modal = importlib.import_module("modal")
    loop = importlib.import_module("modal._utils.async_utils").synchronizer._get_loop(start=True)
    # The SDK keeps this one in a thread for as long as the process lives: no test has left it running.
    conftest._loops[:] = [counted for counted in conftest._loops if counted[0]() is not loop]
    yield modal
    # The next test may mean another server.
    modal.Client.from_env().__exit__(None, None, None)


@pytest.fixture
def daytona_sdk(daytona_service: Cloud, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The real SDK, talking to the double."""
    for name, value in daytona_service.env.items():
        monkeypatch.setenv(name, value)
    return importlib.import_module("daytona")


def _lent(service: _Service) -> Iterator[_Service]:
    """Until those who use it are done."""
    with service.tenant:
        yield service
