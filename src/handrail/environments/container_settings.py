"""What the settings of containers have in common: reading them from a mapping, and what may be mounted.

A backend's settings are a frozen dataclass. `read` makes one of what a configuration file holds.
"""

from __future__ import annotations

import csv
import dataclasses
import io
import os
import re
import types
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn, Protocol, TypeVar, Union, get_args, get_origin, get_type_hints

from ..base.suggest import did_you_mean
from ..errors import ConfigError

T = TypeVar("T")

_SYSTEM = ("/bin", "/boot", "/dev", "/etc", "/lib", "/lib64", "/proc", "/run", "/sbin", "/sys", "/usr", "/var")
_NOT_SYSTEM = ("/var/tmp", "/run/user", "/dev/shm")
_SOCKETS = ("docker.sock", "podman.sock", "containerd.sock", "crio.sock", "cri-dockerd.sock")
_SOCKET_PLACES = ("/run/docker.sock", "/run/containerd/containerd.sock", "/run/podman/podman.sock")
_KINDS = {str: "text", bool: "true or false", int: "a whole number", float: "a number"}


@dataclass(frozen=True, slots=True)
class Mount:
    """A folder or file of this machine, or a named volume, that is seen inside at `target`."""

    source: str
    target: str
    read_only: bool = False

    @classmethod
    def parse(cls, value: object) -> Mount:
        """`source:target` or `source:target:ro`, or a mapping of the fields."""
        if isinstance(value, Mount):
            return value
        if isinstance(value, Mapping):
            return read(cls, value, key="mounts")
        if isinstance(value, str):
            source, separator, rest = value.partition(":")
            target, _, mode = rest.partition(":")
            if separator and mode in ("", "ro", "rw"):
                return cls(source, target, read_only=mode == "ro")
        raise ConfigError(f"write source:target, or source:target:ro, instead of {value!r}", key="mounts")

    def __post_init__(self) -> None:
        if not self.source:
            fail("mounts", f"{self} says nothing of what is mounted")
        if not os.path.isabs(self.target) or "/../" in f"{self.target}/":
            fail("mounts", f"{self.target!r}: the place inside has to be an absolute path")
        if not self.is_volume:
            object.__setattr__(self, "source", os.path.abspath(os.path.expanduser(self.source)))

    @property
    def is_volume(self) -> bool:
        """A name stands for a volume, as for the engines themselves."""
        return self.source[0] not in "/.~"

    @property
    def changes_host(self) -> bool:
        return not (self.is_volume or self.read_only)

    @property
    def changes_system(self) -> bool:
        """Whether what runs inside could change the machine itself."""
        if not self.changes_host:
            return False
        path = os.path.realpath(self.source)
        is_system = path == "/" or _is_below(path, _SYSTEM)
        return is_system and not _is_below(path, _NOT_SYSTEM)

    @property
    def reaches_engine(self) -> bool:
        """Whether an engine's socket can be seen through it. Who has that is root here, also by a read-only mount."""
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


def read(kind: type[T], settings: Mapping[str, Any], *, key: str) -> T:
    """The dataclass of these settings. Raises ConfigError for a key that is not known and a value of another type."""
    hints = get_type_hints(kind)
    fields: dict[str, dataclasses.Field[Any]] = {item.name: item for item in dataclasses.fields(kind)}  # type: ignore[arg-type]
    for name in settings:
        if name not in fields:
            fail(f"{key}.{name}", f"unknown key; {did_you_mean(name, fields)}")
    values = {name: _value(f"{key}.{name}", hints[name], value) for name, value in settings.items()}
    missing = [item.name for item in fields.values() if item.name not in values and not _has_default(item)]
    if missing:
        fail(f"{key}.{missing[0]}", "is missing")
    return kind(**values)


class Common(Protocol):
    """What the settings of every kind of container have."""

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
        fail("cwd", f"{settings.cwd!r}: where the shell begins has to be an absolute path, inside")
    if settings.unsafe and not settings.allow_unsafe:
        message = (
            "may give commands power over this machine; leave it out, or set allow_unsafe if that is what you want"
        )
        fail("allow_unsafe", f"{', '.join(settings.unsafe)} {message}")


def check_size(key: str, size: str | None) -> None:
    if size is not None and not re.fullmatch(r"[1-9][0-9]*[bkmgBKMG]?", size):
        fail(key, f"{size!r} is not a size, such as 512m or 4g")


def unsafe(key: str, arguments: Iterable[str], harmless: Collection[str], mounts: Iterable[Mount]) -> tuple[str, ...]:
    """What may break the container's walls, or is not known not to. Each argument is one word: `--shm-size=1g`."""
    suspects = [f"a mount of {mount.source}" for mount in mounts if mount.reaches_engine]
    for argument in arguments:
        name, _, _ = argument.partition("=")
        if not name.startswith("--"):
            fail(key, f"{argument!r}: write each argument as one word that begins with --, such as --shm-size=1g")
        if name not in harmless and argument not in harmless:
            suspects.append(name)
    return tuple(suspects)


def fail(key: str, message: str) -> NoReturn:
    raise ConfigError(message, key=key)


def _value(key: str, hint: Any, value: Any) -> Any:
    if get_origin(hint) in (types.UnionType, Union):
        if value is None:
            return None
        (hint,) = (kind for kind in get_args(hint) if kind is not type(None))
    if hint is Mount:
        return Mount.parse(value)
    if get_origin(hint) is tuple:
        if not isinstance(value, list | tuple):
            fail(key, f"must be a list, not {value!r}")
        return tuple(_value(key, get_args(hint)[0], item) for item in value)
    if get_origin(hint) is Mapping:
        if not isinstance(value, Mapping):
            fail(key, f"must be a mapping, not {value!r}")
        return {str(name): _value(f"{key}.{name}", get_args(hint)[1], item) for name, item in value.items()}
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if not isinstance(value, hint) or (isinstance(value, bool) and hint is not bool):
        fail(key, f"must be {_KINDS[hint]}, not {value!r}")
    return value


def _has_default(item: dataclasses.Field[Any]) -> bool:
    return item.default is not dataclasses.MISSING or item.default_factory is not dataclasses.MISSING


def _is_below(path: str, places: Iterable[str]) -> bool:
    return any(path == place or path.startswith(place.rstrip("/") + "/") for place in places)


def _sockets() -> list[str]:
    """Where engines listen: in their usual places, those of this user, and the one that this process would talk to."""
    own = [f"/run/user/{os.getuid()}/{name}" for name in ("docker.sock", "podman/podman.sock")]
    _, scheme, path = os.environ.get("DOCKER_HOST", "").partition("unix://")
    return [os.path.realpath(place) for place in (*_SOCKET_PLACES, *own, *([path] if scheme else []))]
