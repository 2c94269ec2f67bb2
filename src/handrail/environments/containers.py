"""What containers of every engine have in common: their settings, how a shell gets into one, their names, and cleaning up."""

from __future__ import annotations

import csv
import hashlib
import io
import os
import re
import threading
from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

from ..config.paths import state_dir
from ..config.settings_reader import fail, read_settings
from ..errors import ConfigError
from ..types import Unavailable
from .command_line_tools import Answer, ask
from .errors import EnvironmentStartError
from .live_environment import LiveEnvironment
from .transport import idle_watcher
from .transport.link import Fatal, Link
from .transport.session import Session, Transport

# What installing packages needs, and ending processes of other users.
CAPABILITIES = ("CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "SETGID", "SETUID")
NEEDS = (
    "A container needs bash 4.4 and Python 3.8: choose an image that has them, such as python:3.13, or add them to it"
)
ASK_SECONDS, LEAVE_SECONDS, _CHECK_SECONDS = 30.0, 5.0, 4.0
_JOBS_ROOT = "/var/tmp/handrail"  # for persistent containers: /tmp may be emptied between uses
# An engine's containers are those of one place, which these say.
_PLACES = ("DOCKER_HOST", "APPTAINER_CONFIGDIR", "SINGULARITY_CONFIGDIR", "HOME")
_cleared: set[object] = set()
_SYSTEM = ("/bin", "/boot", "/dev", "/etc", "/lib", "/lib64", "/proc", "/run", "/sbin", "/sys", "/usr", "/var")
_NOT_SYSTEM = ("/var/tmp", "/run/user", "/dev/shm")
_SOCKETS = ("docker.sock", "podman.sock", "containerd.sock", "crio.sock", "cri-dockerd.sock")
_SOCKET_PLACES = ("/run/docker.sock", "/run/containerd/containerd.sock", "/run/podman/podman.sock")


@dataclass(frozen=True, slots=True)
class Mount:
    """A folder or file of this machine, or a named volume, mounted at `target` in the container. One that `asks` can be written
    to, and each write of a command waits for an answer."""

    source: str
    target: str
    read_only: bool = False
    asks: bool = False

    @classmethod
    def parse(cls, value: object) -> Mount:
        """`source:target`, `source:target:ro` or `source:target:ask`, or a mapping of the fields."""
        if isinstance(value, Mount):
            return value
        if isinstance(value, Mapping):
            return read_settings(cls, value, key="mounts")
        if isinstance(value, str):
            source, separator, rest = value.partition(":")
            target, _, mode = rest.partition(":")
            if separator and mode in ("", "ro", "rw", "ask"):
                return cls(source, target, read_only=mode == "ro", asks=mode == "ask")
        raise ConfigError(f"write source:target, or that with :ro or :ask, instead of {value!r}", key="mounts")

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


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerSettings:
    """`memory`, `cpus` and `pids` are limits; None means no limit. `cwd` is created if it is missing. A `persistent` container
    is found again by the next environment of the same task. Words that are added to the engine's command and could break the
    isolation need `allow_unsafe`. A container in which nothing has run for `leave_after` seconds ends by itself, which is what
    happens if the runtime is killed."""

    image: str
    memory: str | None = None
    cpus: float | None = None
    pids: int | None = None
    network: str = "default"
    mounts: tuple[Mount, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    cwd: str | None = None
    persistent: bool = False
    python: str = "python3"
    allow_unsafe: bool = False
    leave_after: float = 60.0

    added: ClassVar[str]  # the setting with words that are added to the engine's command
    harmless: ClassVar[frozenset[str]]  # those that do not break the isolation

    def __post_init__(self) -> None:
        if not self.image or self.image.startswith("-"):
            fail("image", f"{self.image!r} cannot be the name of an image")
        check_size("memory", self.memory)
        for name in ("cpus", "pids", "leave_after"):
            if (number := getattr(self, name)) is not None and not number > 0:
                fail(name, f"must be more than 0, not {number}")
        if self.cwd is not None and not os.path.isabs(self.cwd):
            fail("cwd", f"{self.cwd!r}: where the shell starts has to be an absolute path in the container")
        if self.unsafe and not self.allow_unsafe:
            message = "may give commands power over this machine; leave it out, or set allow_unsafe if you want that"
            fail("allow_unsafe", f"{', '.join(self.unsafe)} {message}")

    @property
    def unsafe(self) -> tuple[str, ...]:
        """What may break the isolation, or is not known to be harmless. Each argument is one word: `--shm-size=1g`."""
        suspects = [f"a mount of {mount.source}" for mount in self.mounts if mount.reaches_engine]
        for argument in getattr(self, self.added):
            name, _, _ = argument.partition("=")
            if not name.startswith("--"):
                message = "write each argument as one word that starts with --, such as --shm-size=1g"
                fail(self.added, f"{argument!r}: {message}")
            if name not in self.harmless and argument not in self.harmless:
                suspects.append(name)
        return tuple(suspects)

    @property
    def isolated(self) -> bool:
        return not (self.unsafe or self.network == "host" or any(mount.changes_system for mount in self.mounts))

    @property
    def reaches_host(self) -> bool:
        return bool(self.unsafe) or any(mount.changes_host for mount in self.mounts)

    @property
    def limits(self) -> list[str]:
        """As arguments of the engine. Swap would make the limit of memory twice as large."""
        words = [] if self.memory is None else [f"--memory={self.memory}", f"--memory-swap={self.memory}"]
        words += [] if self.cpus is None else [f"--cpus={self.cpus:g}"]
        return words + ([] if self.pids is None else [f"--pids-limit={self.pids}"])

    @property
    def last_arguments(self) -> list[str]:
        return [*(f"--mount={mount.argument}" for mount in self.mounts), *getattr(self, self.added)]


class ContainerEnvironment(LiveEnvironment):
    """A bash in a container. `on_progress` gets the lines that are printed while an image is loaded."""

    can_tunnel = True
    without_network: ClassVar[Mapping[str, str]] = {"network": "none"}  # the settings for that
    settings_type: ClassVar[type[Any]]
    program_setting: ClassVar[str]  # the setting that names the engine's program
    listing: ClassVar[tuple[str, ...]]  # asks the engine for something, to see whether it works

    def __init__(self, settings: Any, *, task_id: str = "", on_progress: Callable[[str], None] | None = None) -> None:
        super().__init__()
        if settings.persistent and not task_id:
            fail("persistent", "a container is found again by its task; give it a task_id")
        self.settings, self.on_progress = settings, on_progress
        self.isolated, self.reaches_host = settings.isolated, settings.reaches_host
        self.persistent = settings.persistent
        self._task, self._container = task_id, ""

    @classmethod
    @abstractmethod
    def find(cls, named: str | None = None) -> str | None:
        """The engine's program: the one that the settings name, or the usual one."""

    @classmethod
    @abstractmethod
    def unavailable(cls, named: str, answer: Answer) -> Unavailable:
        """What it means that the engine failed."""

    @classmethod
    @abstractmethod
    def prune_by(cls, program: str, *, dry_run: bool = False) -> list[str]: ...

    @abstractmethod
    def inside(self, program: str, *, is_shell: bool = False) -> list[str]:
        """The words that run a program in the container; for a shell where it starts, with an input."""

    @abstractmethod
    def have_container(self, program: str) -> bool:
        """Start it unless it runs. Whether it had to be made."""

    @property
    def keeps_files(self) -> bool:
        """Whether files outlast a container that went away."""
        return False

    def prepare(self, program: str) -> None:
        """What else the shell needs in a container that runs."""

    @abstractmethod
    def end(self, program: str, name: str) -> None:
        """End it; nothing uses it any longer."""

    @classmethod
    def from_settings(
        cls, settings: Mapping[str, Any], *, task_id: str, cwd: str | None = None, env: Mapping[str, str] | None = None
    ) -> Self:
        made = read_settings(cls.settings_type, settings, key=cls.name)
        return cls(replace(made, cwd=cwd or made.cwd, env={**made.env, **(env or {})}), task_id=task_id)

    @classmethod
    def check(cls, settings: Mapping[str, Any] | None = None) -> Unavailable | None:
        named = (settings or {}).get(cls.program_setting)
        program = cls.find(named)
        if program is None:
            fix = f"install it, or set {cls.program_setting} to the one that is there"
            return Unavailable(f"{named or cls.name} is not installed", fix)
        answer = ask([program, *cls.listing], seconds=_CHECK_SECONDS)
        return None if answer.ok else cls.unavailable(named or cls.name, answer)

    @classmethod
    def prune(cls, dry_run: bool = False) -> list[str]:
        """Remove the temporary containers of runtimes that have exited. Persistent ones hold files, and stay."""
        program = cls.find()
        return [] if program is None else cls.prune_by(program, dry_run=dry_run)

    def connect(self, state: bytes | None) -> Link:
        settings, named = self.settings, getattr(self.settings, self.program_setting)
        program = self.find(named)
        if program is None:
            raise EnvironmentStartError(f"{named or self.name} is not installed; install it, or choose another one")
        place = (program, *map(os.environ.get, _PLACES))
        if place not in _cleared:  # with the first container of this process, remove what earlier processes left there
            _cleared.add(place)
            threading.Thread(target=self.prune_by, args=(program,), name="handrail-prune", daemon=True).start()
        before = self._container
        is_new = self.have_container(program)
        if is_new and before and not self.keeps_files:
            self.files_lost()
            state = None
        where = f"the container {self._container}"
        transport = Transport(lambda words: [*self.inside(program, is_shell=True), *words], where, settings.python)
        try:
            if settings.cwd is not None:
                answer = ask([*self.inside(program), "mkdir", "-p", "--", settings.cwd], seconds=ASK_SECONDS)
                if not answer.ok:
                    why = f"the directory {settings.cwd} could not be created: {answer.message}"
                    raise EnvironmentStartError(why)
            self.prepare(program)
            return Session(
                transport,
                env=dict(settings.env),
                cwd="",
                jobs_root=_JOBS_ROOT if settings.persistent else "",
                state=state,
                effects=self.effects_elsewhere(),
                asked_mounts=[mount.target for mount in settings.mounts if mount.asks],
                on_held=self.held.answer,
                way_out=self.way_out,
            )
        except (Fatal, EnvironmentStartError) as error:
            if is_new:
                self.disconnected()
            if isinstance(error, EnvironmentStartError):
                raise
            why = f"no shell could be started from the image {settings.image}: {error}. {NEEDS}"
            raise EnvironmentStartError(why) from None

    def idle_watcher(self, *words: str) -> list[str]:
        """The command that runs the idle watcher in the container."""
        return [self.settings.python, "-I", "-S", "-c", idle_watcher.source(), *words]

    def forked(self) -> None:
        self._container = ""

    def disconnected(self) -> None:
        program = self.find(getattr(self.settings, self.program_setting))
        if program is None or not self._container:
            return
        # A persistent one stays if something that was started to survive runs in it, or something else uses it.
        leave = [*self.inside(program), *self.idle_watcher("leave", f"{LEAVE_SECONDS:g}")]
        name, self._container = self._container, ""
        if not self.persistent or ask(leave, seconds=ASK_SECONDS).code != idle_watcher.IN_USE:
            self.end(program, name)


def check_size(key: str, size: str | None) -> None:
    if size is not None and not re.fullmatch(r"[1-9][0-9]*[bkmgBKMG]?", size):
        fail(key, f"{size!r} is not a size, such as 512m or 4g")


def temporary_name(readable: str) -> str:
    return "-".join(filter(None, ("handrail", readable, os.urandom(3).hex())))


def persistent_name(task: str) -> str:
    """The same for the same task of the same user, so that two simultaneous starts cannot make two."""
    return "handrail-" + fingerprint(os.getuid(), str(state_dir()), task)


def fingerprint(*parts: object) -> str:
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:16]


def _is_below(path: str, places: Iterable[str]) -> bool:
    return any(path == place or path.startswith(place.rstrip("/") + "/") for place in places)


def _sockets() -> list[str]:
    """Where engines listen: the usual places, those of this user, and the one that this process would use."""
    own = [f"/run/user/{os.getuid()}/{name}" for name in ("docker.sock", "podman/podman.sock")]
    _, scheme, path = os.environ.get("DOCKER_HOST", "").partition("unix://")
    return [os.path.realpath(place) for place in (*_SOCKET_PLACES, *own, *([path] if scheme else []))]
