"""What a test asks for when it needs a real service. Nothing is started before it is asked for.

The plain ones are shared by the whole run: leave in them what you found. The ones called `own_` are the test's alone, and
may be killed.
"""

from __future__ import annotations

import hashlib
import importlib
from collections.abc import Iterator
from types import ModuleType

import pytest

from .. import conftest
from .apptainer import Apptainer
from .clouds import Cloud
from .components import absent, require
from .docker import Docker
from .homeassistant import IS_COMPLETE as HOMEASSISTANT_IS_COMPLETE
from .homeassistant import HomeAssistant
from .podman import Podman
from .searx import Searx
from .sshd import Ssh
from .synapse import PYTHON as SYNAPSE_PYTHON
from .synapse import Matrix
from .tenants import Services


@pytest.fixture(scope="session")
def services(request: pytest.FixtureRequest) -> Services:
    """The services of this run, which all its workers share."""
    worker = getattr(request.config, "workerinput", None)
    return Services(hashlib.sha256(worker["testrunuid"].encode()).hexdigest()[:8]) if worker else Services()


@pytest.fixture(scope="session")
def docker_service(services: Services) -> Iterator[Docker]:
    require("dockerd", "docker", "containerd", "runc", packages="docker.io")
    docker = Docker.join(services)
    with docker.tenant:
        yield docker


@pytest.fixture
def own_docker_service(services: Services) -> Iterator[Docker]:
    require("dockerd", "docker", "containerd", "runc", packages="docker.io")
    docker = Docker.join(services, own=True)
    with docker.tenant:
        yield docker


@pytest.fixture(scope="session")
def podman_service(services: Services) -> Iterator[Podman]:
    require("podman", "runc", "nsenter", packages="podman")
    podman = Podman.join(services)
    with podman.tenant:
        yield podman


@pytest.fixture(scope="session")
def apptainer_service(services: Services) -> Iterator[Apptainer]:
    require("apptainer", packages="run scripts/services/install.sh")
    apptainer = Apptainer.join(services)
    with apptainer.tenant:
        yield apptainer


@pytest.fixture(scope="session")
def ssh_service(services: Services) -> Iterator[Ssh]:
    require("sshd", "ssh", "ssh-keygen", packages="openssh-server")
    ssh = Ssh.join(services)
    with ssh.tenant:
        yield ssh


@pytest.fixture
def own_ssh_service(services: Services) -> Iterator[Ssh]:
    require("sshd", "ssh", "ssh-keygen", packages="openssh-server")
    ssh = Ssh.join(services, own=True)
    with ssh.tenant:
        yield ssh


@pytest.fixture
def far_ssh_service(services: Services) -> Iterator[Ssh]:
    """Behind a link that can be cut: `far_ssh_service.link`."""
    require("sshd", "ssh", "ssh-keygen", "ip", "nsenter", packages="openssh-server")
    ssh = Ssh.far(services)
    with ssh.tenant:
        yield ssh


@pytest.fixture(scope="session")
def searx_service(services: Services) -> Iterator[Searx]:
    require("searx-run", packages="searx")
    searx = Searx.join(services)
    with searx.tenant:
        yield searx


@pytest.fixture(scope="session")
def modal_service(services: Services, docker_service: Docker) -> Iterator[Cloud]:
    require(packages="pip install 'handrail[modal]'", modules=("modal", "grpclib"))
    cloud = Cloud.modal(services, docker_service)
    with cloud.tenant:
        yield cloud


@pytest.fixture(scope="session")
def daytona_service(services: Services, docker_service: Docker) -> Iterator[Cloud]:
    require(packages="pip install 'handrail[daytona]'", modules=("daytona", "aiohttp"))
    cloud = Cloud.daytona(services, docker_service)
    with cloud.tenant:
        yield cloud


@pytest.fixture(scope="session")
def matrix_service(services: Services) -> Iterator[Matrix]:
    require(str(SYNAPSE_PYTHON), packages="run scripts/services/install-synapse.sh")
    matrix = Matrix.join(services)
    with matrix.tenant:
        yield matrix


@pytest.fixture(scope="session")
def home_service(services: Services) -> Iterator[HomeAssistant]:
    require(packages="")
    if not HOMEASSISTANT_IS_COMPLETE.exists():
        absent("Home Assistant", "run scripts/services/install-homeassistant.sh")
    home = HomeAssistant.join(services)
    with home.tenant:
        yield home


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
