"""What the settings of containers have in common: mounts, limits, and which options are unsafe."""

from __future__ import annotations

import csv
import io
import os
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

from ..config.settings_reader import fail, read_settings
from ..errors import ConfigError

_SYSTEM = ("/bin", "/boot", "/dev", "/etc", "/lib", "/lib64", "/proc", "/run", "/sbin", "/sys", "/usr", "/var")
_NOT_SYSTEM = ("/var/tmp", "/run/user", "/dev/shm")
_SOCKETS = ("docker.sock", "podman.sock", "containerd.sock", "crio.sock", "cri-dockerd.sock")
_SOCKET_PLACES = ("/run/docker.sock", "/run/containerd/containerd.sock", "/run/podman/podman.sock")


@dataclass(frozen=True, slots=True)
class Mount:
    """A folder or file of this machine, or a named volume, mounted at `target` in the container."""

    source: str
    target: str
    read_only: bool = False

    @classmethod
    def parse(cls, value: object) -> Mount:
        """`source:target` or `source:target:ro`, or a mapping of the fields."""
        if isinstance(value, Mount):
            return value
        if isinstance(value, Mapping):
            return read_settings(cls, value, key="mounts")
        if isinstance(value, str):
            source, separator, rest = value.partition(":")
            target, _, mode = rest.partition(":")
            if separator and mode in ("", "ro", "rw"):
                return cls(source, target, read_only=mode == "ro")
        raise ConfigError(f"write source:target, or source:target:ro, instead of {value!r}", key="mounts")

    def __post_init__(self) -> None:
        if not self.source:
            fail("mounts", f"{self} does not say what is mounted")
        if not os.path.isabs(self.target) or "/../" in f"{self.target}/":
            fail("mounts", f"{self.target!r}: the path in the container has to be absolute")
        if not self.is_volume:
            object.__setattr__(self, "source", os.path.abspath(os.path.expanduser(self.source)))

    @property
    def is_volume(self) -> bool:
        """A plain name means a volume, as for the engines themselves."""
        return self.source[0] not in "/.~"

    @property
    def changes_host(self) -> bool:
        return not (self.is_volume or self.read_only)

    @property
    def changes_system(self) -> bool:
        """Whether what runs in the container could change the machine itself."""
        if not self.changes_host:
            return False
        path = os.path.realpath(self.source)
        is_system = path == "/" or _is_below(path, _SYSTEM)
        return is_system and not _is_below(path, _NOT_SYSTEM)

    @property
    def reaches_engine(self) -> bool:
        """Whether it exposes an engine's socket. Whoever has that is root here, even through a read-only mount."""
        if self.is_volume:
            return False
        path = os.path.realpath(self.source)
        return os.path.basename(path) in _SOCKETS or any(_is_below(socket, (path,)) for socket in _sockets())

    @property
    def argument(self) -> str:
        """For `--mount`, which is a line of comma-separated values."""
        kind = "volume" if self.is_volume else "bind"
        fields = [f"type={kind}", f"source={self.source}", f"target={self.target}", *(["ro"] if self.read_only else [])]
        line = io.StringIO()
        csv.writer(line, lineterminator="").writerow(fields)
        return line.getvalue()


class Common(Protocol):
    """The settings that every kind of container has."""

    @property
    def image(self) -> str: ...
    @property
    def memory(self) -> str | None: ...
    @property
    def cpus(self) -> float | None: ...
    @property
    def pids(self) -> int | None: ...
    @property
    def cwd(self) -> str | None: ...
    @property
    def leave_after(self) -> float: ...
    @property
    def unsafe(self) -> tuple[str, ...]: ...
    @property
    def allow_unsafe(self) -> bool: ...


def check_common(settings: Common) -> None:
    if not settings.image or settings.image.startswith("-"):
        fail("image", f"{settings.image!r} cannot be the name of an image")
    check_size("memory", settings.memory)
    for name, number in (("cpus", settings.cpus), ("pids", settings.pids), ("leave_after", settings.leave_after)):
        if number is not None and not number > 0:
            fail(name, f"must be more than 0, not {number}")
    if settings.cwd is not None and not os.path.isabs(settings.cwd):
        fail("cwd", f"{settings.cwd!r}: where the shell starts has to be an absolute path in the container")
    if settings.unsafe and not settings.allow_unsafe:
        message = "may give commands power over this machine; leave it out, or set allow_unsafe if you want that"
        fail("allow_unsafe", f"{', '.join(settings.unsafe)} {message}")


def check_size(key: str, size: str | None) -> None:
    if size is not None and not re.fullmatch(r"[1-9][0-9]*[bkmgBKMG]?", size):
        fail(key, f"{size!r} is not a size, such as 512m or 4g")


def unsafe(key: str, arguments: Iterable[str], harmless: Collection[str], mounts: Iterable[Mount]) -> tuple[str, ...]:
    """What may break the isolation, or is not known to be harmless. Each argument is one word: `--shm-size=1g`."""
    suspects = [f"a mount of {mount.source}" for mount in mounts if mount.reaches_engine]
    for argument in arguments:
        name, _, _ = argument.partition("=")
        if not name.startswith("--"):
            fail(key, f"{argument!r}: write each argument as one word that starts with --, such as --shm-size=1g")
        if name not in harmless and argument not in harmless:
            suspects.append(name)
    return tuple(suspects)


def _is_below(path: str, places: Iterable[str]) -> bool:
    return any(path == place or path.startswith(place.rstrip("/") + "/") for place in places)


def _sockets() -> list[str]:
    """Where engines listen: the usual places, those of this user, and the one that this process would use."""
    own = [f"/run/user/{os.getuid()}/{name}" for name in ("docker.sock", "podman/podman.sock")]
    _, scheme, path = os.environ.get("DOCKER_HOST", "").partition("unix://")
    return [os.path.realpath(place) for place in (*_SOCKET_PLACES, *own, *([path] if scheme else []))]
