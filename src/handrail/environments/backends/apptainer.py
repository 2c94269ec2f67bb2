"""Commands in an instance of Apptainer (or Singularity): a container that runs as the user, with no engine behind it.

Nothing of this machine is seen inside but what is mounted: not the home folder, not /tmp, not this process's variables. The
image is not changed: what commands write goes to memory, or to an overlay folder.
"""

from __future__ import annotations

import contextlib
import glob
import json
import logging
import os
import re
import shutil
import signal
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Self

from ...base.own_process import has_exited, runtime_id
from ...config.settings_reader import fail, read_settings
from ...types import Unavailable
from .. import command_line_tools, container_settings, containers
from ..container_settings import Mount
from ..errors import EnvironmentStartError
from ..live_environment import LiveEnvironment
from ..shell_host import proc
from ..transport import idle_watcher
from ..transport.link import Fatal, Link
from ..transport.session import Session, Transport

log = logging.getLogger(__name__)

DEFAULT_IMAGE = "docker://python:3.13"

_PROGRAMS = ("apptainer", "singularity")
_HARMLESS = frozenset(
    """--app --authfile --blkio-weight --cpu-shares --cpuset-cpus --cpuset-mems --disable-cache --dns --docker-host --fakeroot
    --hostname --ipc --memory-reservation --no-https --no-mount --no-umask --nv --pem-path --pid --rocm --scratch --userns
    --uts""".split()
)
_CHECK_SECONDS = 4.0
_ASK_SECONDS = 30.0
_START_SECONDS = 1800.0  # an image may have to be loaded and unpacked
_END_SECONDS = 10.0
_LEAVE_SECONDS = 5.0
_NO_FOLDER = 4
_NO_LIMITS = "limits take root, or cgroups v2 with systemd; leave memory, cpus and pids out where neither is there"
_ENTER = 'cd -- "${0:-$HOME}" && exec "$@"'
_OWNED = re.compile(r"handrail-(?P<owner>[0-9a-f]+-[0-9a-f]+-\d+-\d+-\d+-\d+)-[0-9a-f]{6}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ApptainerSettings:
    """How the instance is made.

    `image` is a file, a sandbox folder, or a URI such as `docker://python:3.13`. `overlay` is a folder that keeps what commands
    write; without one it is in memory, and a system's administrator says how much that may be. `memory`, `cpus` and `pids`
    are limits; None means no limit. If the system cannot enforce one, nothing is started. `network` is `host` or `none`. `cwd` is
    created if it is missing; None means the home folder. A `persistent` instance keeps its files and what was started to
    survive, for the next environment of the same task. `start_arguments` are added to `instance start`; those that could break
    the isolation need `allow_unsafe`. An instance in which nothing has run for `leave_after` seconds ends by itself, which is
    what happens if the runtime is killed.
    """

    image: str = DEFAULT_IMAGE
    program: str | None = None
    overlay: str | None = None
    memory: str | None = None
    cpus: float | None = None
    pids: int | None = None
    network: str = "host"
    mounts: tuple[Mount, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    cwd: str | None = None
    persistent: bool = False
    python: str = "python3"
    start_arguments: tuple[str, ...] = ()
    allow_unsafe: bool = False
    leave_after: float = 60.0

    def __post_init__(self) -> None:
        container_settings.check_common(self)
        if self.network not in ("host", "none"):
            fail("network", f"must be host or none, not {self.network!r}")
        for mount in self.mounts:
            if mount.is_volume:
                fail("mounts", f"{mount.source!r} is not a path; there are no named volumes here")

    @property
    def unsafe(self) -> tuple[str, ...]:
        """What could break the isolation, or is not known to be harmless."""
        return container_settings.unsafe("start_arguments", self.start_arguments, _HARMLESS, self.mounts)

    @property
    def isolated(self) -> bool:
        """Never for root: without a user namespace the files of /proc are those of the machine."""
        is_open = self.unsafe or self.network == "host" or any(mount.changes_system for mount in self.mounts)
        return not is_open and os.geteuid() != 0

    @property
    def reaches_host(self) -> bool:
        return bool(self.unsafe) or os.geteuid() == 0 or any(mount.changes_host for mount in self.mounts)

    @property
    def limits(self) -> list[str]:
        words = [] if self.memory is None else [f"--memory={self.memory}", f"--memory-swap={self.memory}"]
        words += [] if self.cpus is None else [f"--cpus={self.cpus:g}"]
        return words + ([] if self.pids is None else [f"--pids-limit={self.pids}"])

    def arguments(self, folder: str | None) -> list[str]:
        """For `instance start`. `folder` is where files are kept."""
        words = ["--containall", "--cleanenv", *_privileges(), *self.limits]
        if os.geteuid() == 0:  # root could change the machine's own
            words += ["--no-mount=bind-paths", "--bind=/proc/sys:/proc/sys:ro"]
        if folder is None:
            words.append("--writable-tmpfs")
        else:
            words += [f"--overlay={folder}/overlay", f"--workdir={folder}/scratch"]
        if self.network == "none":
            words += ["--net", "--network=none"]
        words += [f"--mount={mount.argument}" for mount in self.mounts]
        return [*words, *self.start_arguments]


class Instance(NamedTuple):
    """A running instance. `pid` is that of its first process, on this machine."""

    name: str
    pid: int


class ApptainerEnvironment(LiveEnvironment):
    """A bash in an instance. `on_progress` gets the lines that are printed while an image is loaded."""

    name = "apptainer"

    def __init__(
        self, settings: ApptainerSettings, *, task_id: str = "", on_progress: Callable[[str], None] | None = None
    ) -> None:
        super().__init__()
        if settings.persistent and not task_id:
            fail("persistent", "an instance is found again by its task; give it a task_id")
        self.settings, self._task = settings, task_id
        self.on_progress = on_progress
        self.isolated, self.reaches_host = settings.isolated, settings.reaches_host
        self.persistent = settings.persistent
        self._instance, self._maker = "", 0

    @classmethod
    def from_settings(
        cls, settings: Mapping[str, Any], *, task_id: str, cwd: str | None = None, env: Mapping[str, str] | None = None
    ) -> Self:
        made = read_settings(ApptainerSettings, settings, key=cls.name)
        return cls(replace(made, cwd=cwd or made.cwd, env={**made.env, **(env or {})}), task_id=task_id)

    @classmethod
    def check(cls, settings: Mapping[str, Any] | None = None) -> Unavailable | None:
        program = _find((settings or {}).get("program"))
        if program is None:
            return Unavailable(
                "apptainer is not installed", "install Apptainer, or set program to the one that is there"
            )
        answer = command_line_tools.ask([program, "instance", "list", "--json"], seconds=_CHECK_SECONDS)
        return None if answer.ok else Unavailable(f"apptainer does not work here: {_reason(answer)}")

    @classmethod
    def prune(cls, dry_run: bool = False) -> list[str]:
        """End the instances of runtimes that have exited. Persistent ones end by themselves, and their files stay."""
        program = _find(None)
        return [] if program is None else _prune(program, dry_run=dry_run)

    def connect(self, state: bytes | None) -> Link:
        program = _find(self.settings.program)
        if program is None:
            raise EnvironmentStartError("apptainer is not installed; install it, or choose another environment")
        containers.clear_once((program, _configurations()), lambda: _prune(program))
        if self._maker != os.getpid():  # none yet, or the one of the process that this was forked from
            self._instance = ""
        before = self._instance
        is_new = self._have_instance(program)
        if is_new and before and self._folder is None:
            self.files_lost()
            state = None
        settings = self.settings
        transport = Transport(
            argv=lambda words: [*_inside(program, self._instance), "sh", "-c", _ENTER, settings.cwd or "", *words],
            where=f"the instance {self._instance}",
            python=settings.python,
        )
        try:
            self._start_idle_watcher(program)
            jobs_root = containers.JOBS_ROOT if settings.persistent else ""
            return Session(
                transport,
                env=dict(settings.env),
                cwd="",
                jobs_root=jobs_root,
                state=state,
                effects=self.effects_elsewhere(),
            )
        except (Fatal, EnvironmentStartError) as error:
            if is_new:
                self.disconnected()
            raise containers.start_error(settings.image, error) from None

    @property
    def _folder(self) -> str | None:
        if self.settings.overlay is not None:
            return os.path.abspath(os.path.expanduser(self.settings.overlay))
        if not self.settings.persistent:
            return None
        from ...config.paths import state_dir

        return str(state_dir() / "apptainer" / containers.persistent_name(self._task))

    def _have_instance(self, program: str) -> bool:
        """Whether it had to be started."""
        running = {instance.name for instance in _instances(program)}
        if self._instance in running:
            return False
        if self._instance:
            _remove_logs(self._instance)
        self._maker = os.getpid()
        self._instance = self._new_name(running)
        if self._instance in running:
            return False
        self._start(program)
        return True

    def _new_name(self, running: set[str]) -> str:
        if not self.settings.persistent:
            return containers.temporary_name(runtime_id())
        task = containers.persistent_name(self._task)
        name = f"{task}-{containers.fingerprint(self.settings.image, *self.settings.arguments(self._folder))}"
        others = [other for other in running if other.startswith(task) and other != name]
        if others:
            raise EnvironmentStartError(
                f"the instance {others[0]} of the task {self._task!r} runs with other settings; "
                f"end it with `apptainer instance stop {others[0]}`, or give the task another name"
            )
        return name

    def _start(self, program: str) -> None:
        settings, folder = self.settings, self._folder
        for part in ("overlay", "scratch") if folder is not None else ():
            os.makedirs(f"{folder}/{part}", mode=0o700, exist_ok=True)
        words = [program, "instance", "start", *settings.arguments(folder), settings.image, self._instance]
        listener = self.on_progress or (lambda line: log.info("%s", line))
        answer = command_line_tools.ask(words, seconds=_START_SECONDS, listener=listener)
        if not answer.ok:
            _remove_logs(self._instance)
            raise EnvironmentStartError(
                f"the image {settings.image} could not be started: {_explained(answer, settings)}"
            )
        if settings.limits and not _has_own_group(program, self._instance):
            _end(program, self._instance)
            raise EnvironmentStartError(f"apptainer did not apply the limits; {_NO_LIMITS}")

    def _start_idle_watcher(self, program: str) -> None:
        """Start the idle watcher in it, and create the working directory."""
        words = containers.idle_watcher_command(
            self.settings.python, "idle", f"{self.settings.leave_after:g}", "beside"
        )
        if self.settings.cwd is not None:
            words = ["sh", "-c", f'mkdir -p -- "$0" || exit {_NO_FOLDER}; exec "$@"', self.settings.cwd, *words]
        answer = command_line_tools.ask([*_inside(program, self._instance), *words], seconds=_ASK_SECONDS)
        if answer.code == _NO_FOLDER:
            raise EnvironmentStartError(f"the directory {self.settings.cwd} could not be created: {answer.message}")
        if not answer.ok:
            raise Fatal(_reason(answer))

    def disconnected(self) -> None:
        program = _find(self.settings.program)
        if program is None or not self._instance or self._maker != os.getpid():
            return
        name, self._instance = self._instance, ""
        if (
            self.settings.persistent
        ):  # stays if something that was started to survive runs in it, or something else uses it
            leave = containers.idle_watcher_command(self.settings.python, "leave", f"{_LEAVE_SECONDS:g}")
            if (
                command_line_tools.ask([*_inside(program, name), *leave], seconds=_ASK_SECONDS).code
                == idle_watcher.IN_USE
            ):
                return
        try:
            _end(program, name)
        except EnvironmentStartError as error:
            log.warning("the instance %s could not be ended: %s", name, error)


BACKEND = ApptainerEnvironment


def _find(program: str | None) -> str | None:
    return next(filter(None, map(shutil.which, (program,) if program else _PROGRAMS)), None)


def _privileges() -> list[str]:
    """Root keeps few capabilities. An ordinary user has none."""
    if os.geteuid() != 0:
        return []
    return ["--no-privs", "--add-caps=" + ",".join(f"CAP_{name}" for name in containers.CAPABILITIES)]


def _inside(program: str, name: str) -> list[str]:
    """The command that runs a program in the instance. This process's directory means nothing there."""
    return [program, "--quiet", "exec", "--cleanenv", "--pwd=/", *_privileges(), f"instance://{name}"]


def _instances(program: str) -> list[Instance]:
    answer = command_line_tools.ask([program, "instance", "list", "--json"], seconds=_ASK_SECONDS)
    if not answer.ok:
        raise EnvironmentStartError(f"apptainer does not work here: {_reason(answer)}")
    return [Instance(one["instance"], one["pid"]) for one in json.loads(answer.out)["instances"]]


def _end(program: str, name: str) -> None:
    """End it immediately. `instance stop` would take seconds."""
    for instance in _instances(program):
        if instance.name == name:
            stat = proc.stat_of(instance.pid)
            with contextlib.suppress(ProcessLookupError):
                os.kill(instance.pid, signal.SIGKILL)
            # Its parent process cleans up, and ends.
            _wait_for_end(instance.pid if stat is None else stat.parent)
    _remove_logs(name)


def _wait_for_end(pid: int) -> None:
    end = time.monotonic() + _END_SECONDS
    stat = proc.stat_of(pid)
    while stat is not None and proc.is_alive(pid, stat.start) and time.monotonic() < end:
        time.sleep(0.005)


def _remove_logs(name: str) -> None:
    for path in _logs(name):
        with contextlib.suppress(OSError):  # another process removes it as well
            os.unlink(path)


def _logs(name: str) -> list[str]:
    pattern = os.path.join("instances", "logs", "*", "*", name + ".*")
    return [path for place in _configurations() for path in glob.glob(os.path.join(glob.escape(place), pattern))]


def _configurations() -> tuple[str, ...]:
    """Where the two programs keep the state of instances."""
    return tuple(os.environ.get(f"{name.upper()}_CONFIGDIR") or os.path.expanduser(f"~/.{name}") for name in _PROGRAMS)


def _prune(program: str, *, dry_run: bool = False) -> list[str]:
    try:
        running = [instance.name for instance in _instances(program)]
    except EnvironmentStartError as error:
        log.warning("cannot list what was left behind: %s", error)
        return []
    logged = [os.path.basename(path).rpartition(".")[0] for path in _logs("handrail-*")]
    found = [name for name in sorted({*running, *logged}) if _is_left(name)]
    for name in [] if dry_run else found:
        _end(program, name)
    return [f"apptainer: {name}" for name in found]


def _is_left(name: str) -> bool:
    match = _OWNED.fullmatch(name)
    return match is not None and has_exited(match["owner"])


def _has_own_group(program: str, name: str) -> bool:
    pids = [str(instance.pid) for instance in _instances(program) if instance.name == name]
    groups = []
    for pid in (*pids, "self"):
        with open(f"/proc/{pid}/cgroup") as file:
            groups.append(file.read())
    return len(set(groups)) == 2


def _explained(answer: command_line_tools.Answer, settings: ApptainerSettings) -> str:
    reason = _reason(answer)
    return f"{reason}; {_NO_LIMITS}" if settings.limits and "cgroup" in reason else reason


def _reason(answer: command_line_tools.Answer) -> str:
    """The line with the reason; the lines before it are progress."""
    lines = [re.sub(r"^FATAL:\s*", "", line) for line in answer.message.splitlines() if line.startswith("FATAL")]
    return (lines or answer.message.splitlines()[-1:] or ["it printed nothing"])[0]
