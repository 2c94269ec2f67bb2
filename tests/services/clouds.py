"""Two clouds, as a test sees them: doubles for the real SDKs to talk to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from . import containers
from .docker import Docker
from .tenants import Services, Tenant


@dataclass(frozen=True)
class Cloud:
    """With `env` in its environment the cloud's SDK talks to the double."""

    tenant: Tenant
    docker: Docker
    env: Mapping[str, str]

    @classmethod
    def modal(cls, services: Services, docker: Docker, *, own: bool = False) -> Cloud:
        tenant = _join(services, docker, "modal", own)
        env = {
            "MODAL_SERVER_URL": f"http://127.0.0.1:{tenant.facts['port']}",
            "MODAL_TOKEN_ID": "ak-test",
            "MODAL_TOKEN_SECRET": "as-test",
            "MODAL_ENVIRONMENT": "main",
            # No settings of the person who runs the tests.
            "MODAL_CONFIG_PATH": str(tenant.folder / "modal.toml"),
        }
        return cls(tenant, docker, env)

    @classmethod
    def daytona(cls, services: Services, docker: Docker, *, own: bool = False) -> Cloud:
        tenant = _join(services, docker, "daytona", own)
        url = f"http://127.0.0.1:{tenant.facts['port']}/api"
        return cls(tenant, docker, {"DAYTONA_API_URL": url, "DAYTONA_API_KEY": "test", "DAYTONA_TARGET": "test"})

    def sandboxes(self) -> list[str]:
        """The ids of those that there are; they are the names of their containers, too."""
        label = f"label={containers.OWNER}={self.tenant.facts['owner']}"
        return self.docker.run("ps", "--all", "--format", "{{.Names}}", "--filter", label).split()

    def kill(self) -> None:
        """`kill -9` of the server; the sandboxes run on. Only for a double of one's own."""
        self.tenant.order("kill")

    def start_again(self) -> None:
        """On the same port. It knows its sandboxes again, but not what was running in them."""
        self.tenant.order("start_again")


def _join(services: Services, docker: Docker, name: str, own: bool) -> Tenant:
    engine = docker.env["DOCKER_HOST"]
    return services.join("double:Double", name=name, own=own, module=f"{name}_double", engine=engine)
