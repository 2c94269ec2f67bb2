"""Commands in a container of Podman, which takes the commands of Docker."""

from .docker import DockerEnvironment


class PodmanEnvironment(DockerEnvironment):
    """A bash in a container of Podman."""

    name = engine = "podman"


BACKEND = PodmanEnvironment
