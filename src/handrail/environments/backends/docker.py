"""Commands in a container of Docker or Podman, through the engine's command line.

The container's first process is the idle watcher (idle_watcher.py); the shell is started beside it by `exec`. So a command that
kills every process it can see costs the shell but not the container, and a container that nothing uses any longer ends by itself.
"""

from __future__ import annotations

import json
import logging
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

from ...base.own_process import has_exited, runtime_id
from ...config.settings_reader import fail, read_settings
from ...types import Unavailable
from .. import command_line_tools, container_settings, containers
from ..container_settings import Mount
from ..errors import EnvironmentStartError
from ..live_environment import LiveEnvironment
from ..transport import idle_watcher
from ..transport.link import Fatal, Link
from ..transport.session import Session, Transport

log = logging.getLogger(__name__)

DEFAULT_IMAGE = "python:3.13"

_HARMLESS = frozenset(
    """--add-host --annotation --blkio-weight --cpu-shares --cpuset-cpus --cpuset-mems --dns --dns-option --dns-search
    --domainname --env-file --expose --gpus --group-add --hostname --ip --ip6 --label --log-driver --log-opt --mac-address
    --memory-reservation --memory-swappiness --network-alias --platform --publish --read-only --runtime --shm-size
    --stop-timeout --storage-opt --tmpfs --ulimit --userns=keep-id""".split()
)
_CHECK_SECONDS = 4.0
_ASK_SECONDS = 30.0
_START_SECONDS = 120.0
_PULL_SECONDS = 1800.0
_LEAVE_SECONDS = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class DockerSettings:
    """How the container is made.

    `memory`, `cpus`, `pids` and `tmp_size` are limits; None means no limit. `network` is `default` (the engine's own), `none`,
    `bridge`, `host`, or a network's name. `cwd` is created if it is missing; None means the image's own. A `persistent` container
    is stopped when it is closed, and found again by the next environment of the same task; any other is removed.
    `run_arguments` are added to `run`; those that could break the isolation need `allow_unsafe`. A container in which nothing
    has run for `leave_after` seconds ends by itself, which is what happens if the runtime is killed.
    """

    image: str = DEFAULT_IMAGE
    engine: str = "docker"
    memory: str | None = "4g"
    cpus: float | None = None
    pids: int | None = 512
    tmp_size: str | None = "1g"
    network: str = "default"
    mounts: tuple[Mount, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    cwd: str | None = None
    user: str | None = None
    persistent: bool = False
    pull: bool = True
    python: str = "python3"
    run_arguments: tuple[str, ...] = ()
    allow_unsafe: bool = False
    leave_after: float = 60.0

    def __post_init__(self) -> None:
        container_settings.check_common(self)
        container_settings.check_size("tmp_size", self.tmp_size)

    @property
    def unsafe(self) -> tuple[str, ...]:
        """What could break the isolation, or is not known to be harmless."""
        return container_settings.unsafe("run_arguments", self.run_arguments, _HARMLESS, self.mounts)

    @property
    def isolated(self) -> bool:
        return not (self.unsafe or self.network == "host" or any(mount.changes_system for mount in self.mounts))

    @property
    def reaches_host(self) -> bool:
        return bool(self.unsafe) or any(mount.changes_host for mount in self.mounts)

    def arguments(self) -> list[str]:
        """For `run`, without what differs between containers."""
        words = [
            "--cap-drop=ALL",
            *(f"--cap-add={name}" for name in containers.CAPABILITIES),
            "--security-opt=no-new-privileges",
        ]
        words += [f"--stop-signal={idle_watcher.STOP_SIGNAL.name}", "--log-driver=none"]
        if self.memory is not None:  # swap would make the limit twice as large
            words += [f"--memory={self.memory}", f"--memory-swap={self.memory}"]
        if self.cpus is not None:
            words.append(f"--cpus={self.cpus:g}")
        if self.pids is not None:
            words.append(f"--pids-limit={self.pids}")
        if self.tmp_size is not None:
            words.append(f"--tmpfs=/tmp:rw,exec,nosuid,nodev,mode=1777,size={self.tmp_size}")
        if self.network != "default":
            words.append(f"--network={self.network}")
        words += self._user_arguments()
        words += [f"--mount={mount.argument}" for mount in self.mounts]
        return [*words, *self.run_arguments]

    def _user_arguments(self) -> list[str]:
        """Root in a container is root for the files of a mount, and could leave a setuid program there: with a writable mount
        it is the caller unless the settings name a user."""
        if self.user is not None:
            return [f"--user={self.user}"]
        if os.getuid() == 0 or not any(mount.changes_host for mount in self.mounts):
            return []
        words = [f"--user={os.getuid()}:{os.getgid()}"]
        if os.path.basename(self.engine) == "podman":  # as root there this user would be another one here
            words.append("--userns=keep-id")
        return words if "HOME" in self.env else [*words, "--env=HOME=/tmp"]


class DockerEnvironment(LiveEnvironment):
    """A bash in a container. `on_progress` gets the lines that the engine prints while it loads an image."""

    name = "docker"
    engine: ClassVar[str] = "docker"

    def __init__(
        self, settings: DockerSettings, *, task_id: str = "", on_progress: Callable[[str], None] | None = None
    ) -> None:
        super().__init__()
        if settings.persistent and not task_id:
            fail("persistent", "a container is found again by its task; give it a task_id")
        self.settings, self._task = settings, task_id
        self.on_progress = on_progress
        self.isolated, self.reaches_host = settings.isolated, settings.reaches_host
        self.persistent = settings.persistent
        self._container, self._maker = "", 0

    @classmethod
    def from_settings(
        cls, settings: Mapping[str, Any], *, task_id: str, cwd: str | None = None, env: Mapping[str, str] | None = None
    ) -> Self:
        made = read_settings(DockerSettings, {"engine": cls.engine, **settings}, key=cls.name)
        return cls(replace(made, cwd=cwd or made.cwd, env={**made.env, **(env or {})}), task_id=task_id)

    @classmethod
    def check(cls, settings: Mapping[str, Any] | None = None) -> Unavailable | None:
        engine = str((settings or {}).get("engine", cls.engine))
        program = shutil.which(engine)
        if program is None:
            return Unavailable(f"{engine} is not installed", "install it, or set engine to the one that is there")
        answer = command_line_tools.ask([program, "ps", "--quiet", "--filter=label=handrail"], seconds=_CHECK_SECONDS)
        return None if answer.ok else _out_of_reach(engine, answer)

    @classmethod
    def prune(cls, dry_run: bool = False) -> list[str]:
        """Remove the temporary containers of runtimes that have exited. Persistent ones hold files, and stay."""
        program = shutil.which(cls.engine)
        return [] if program is None else _prune(program, cls.name, dry_run=dry_run)

    def connect(self, state: bytes | None) -> Link:
        program = shutil.which(self.settings.engine)
        if program is None:
            raise EnvironmentStartError(
                f"{self.settings.engine} is not installed; install it, or choose another engine"
            )
        containers.clear_once((program, os.environ.get("DOCKER_HOST")), lambda: _prune(program, self.name))
        if self._maker != os.getpid():  # none yet, or the one of the process that this was forked from
            self._container = ""
        before = self._container
        is_new = self._have_container(program)
        if is_new and before:
            self.files_lost()
            state = None
        settings = self.settings
        begin = [f"--workdir={settings.cwd}"] if settings.cwd else []
        transport = Transport(
            argv=lambda words: [program, "exec", "--interactive", *begin, self._container, *words],
            where=f"the container {self._container}",
            python=settings.python,
        )
        jobs_root = containers.JOBS_ROOT if settings.persistent else ""
        try:
            self._make_folder(program)
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

    def _make_folder(self, program: str) -> None:
        if self.settings.cwd is None:
            return
        words = [program, "exec", self._container, "mkdir", "-p", "--", self.settings.cwd]
        answer = command_line_tools.ask(words, seconds=_ASK_SECONDS)
        if not answer.ok:
            raise EnvironmentStartError(f"the directory {self.settings.cwd} could not be created: {answer.message}")

    def _have_container(self, program: str) -> bool:
        """Whether a new one had to be made."""
        is_persistent = self.settings.persistent
        if is_persistent and not self._container:
            self._container = containers.persistent_name(self._task)
        found = self._state_of(program, self._container) if self._container else ""
        self._maker = os.getpid()
        if found == "running":
            return False
        if found and is_persistent:
            answer = _launch([program, "start", self._container])
            if not answer.ok:
                raise EnvironmentStartError(f"the container {self._container} could not be started: {answer.message}")
            return False
        if not is_persistent:
            # Another name: the previous one may still be about to end.
            self._container = containers.temporary_name(_readable(self._task))
        self._create(program, self._container)
        return True

    def _state_of(self, program: str, name: str) -> str:
        """Its state as the engine calls it, such as running or exited; empty if there is no such container."""
        # Not `inspect` alone: it fails in the same way if the engine cannot be reached.
        identity = self._ask(program, "ps", "--all", "--quiet", f"--filter=label=handrail.name={name}").strip()
        if not identity:
            return ""
        details = '--format={{.State.Status}} {{index .Config.Labels "handrail.settings"}}'
        state, _, fingerprint = self._ask(program, "inspect", details, identity).strip().partition(" ")
        if fingerprint != self._fingerprint():
            raise EnvironmentStartError(
                f"the container {name} of the task {self._task!r} was made with other settings; remove it with "
                f"`{self.settings.engine} rm --force {name}`, which removes its files, or give the task another name"
            )
        return state

    def _create(self, program: str, name: str) -> None:
        settings = self.settings
        words = [program, "run", "--detach", "--pull=never", *([] if settings.persistent else ["--rm"])]
        words += [f"--name={name}", *settings.arguments(), *(f"--label={label}" for label in self._labels(name))]
        python, *waiting = containers.idle_watcher_command(settings.python, "idle", f"{settings.leave_after:g}")
        words += [f"--entrypoint={python}", settings.image, *waiting]
        answer = _launch(words)
        if not answer.ok and settings.pull and self._pulled(program):
            answer = _launch(words)
        if answer.ok:
            return
        command_line_tools.ask([program, "rm", "--force", name], seconds=_ASK_SECONDS)
        if answer.code == 127:
            raise EnvironmentStartError(
                f"there is no {settings.python} in the image {settings.image}. {containers.NEEDS}"
            )
        raise EnvironmentStartError(f"{settings.engine} could not start a container: {answer.message}")

    def _pulled(self, program: str) -> bool:
        """Pull the image if it is missing: True if that was the problem."""
        self._ask(program, "ps", "--quiet", "--filter=label=handrail")  # raises if the engine cannot be reached
        image = self.settings.image
        if command_line_tools.ask([program, "image", "inspect", "--format={{.Id}}", image], seconds=_ASK_SECONDS).ok:
            return False
        listener = self.on_progress or (lambda line: log.info("%s", line))
        answer = command_line_tools.ask([program, "pull", image], seconds=_PULL_SECONDS, listener=listener)
        if answer.ok:
            return True
        lines = answer.message.splitlines()[-1:] or ["it printed nothing"]
        raise EnvironmentStartError(
            f"the image {image} is not here and could not be pulled: {lines[0]}; check its name, "
            f"or get it yourself with `{self.settings.engine} pull`, `load` or `build`"
        )

    def _labels(self, name: str) -> list[str]:
        lifetime = "persistent" if self.settings.persistent else "passing"
        return [
            "handrail=1",
            f"handrail.name={name}",
            f"handrail.owner={runtime_id()}",
            f"handrail.task={self._task}",
            f"handrail.lifetime={lifetime}",
            f"handrail.settings={self._fingerprint()}",
        ]

    def _fingerprint(self) -> str:
        return containers.fingerprint(self.settings.image, *self.settings.arguments())

    def _ask(self, program: str, *words: str) -> str:
        answer = command_line_tools.ask([program, *words], seconds=_ASK_SECONDS)
        if not answer.ok:
            raise EnvironmentStartError(str(_out_of_reach(self.settings.engine, answer)))
        return answer.out

    def disconnected(self) -> None:
        program = shutil.which(self.settings.engine)
        if program is None or not self._container or self._maker != os.getpid():
            return
        name, self._container = self._container, ""
        if self.settings.persistent:
            self._leave(program, name)
            return
        answer = command_line_tools.ask([program, "rm", "--force", name], seconds=_ASK_SECONDS)
        if not answer.ok:
            log.warning("the container %s could not be removed: %s", name, answer.message)

    def _leave(self, program: str, name: str) -> None:
        """Stop it, unless something that was started to survive runs in it, or something else uses it."""
        leave = containers.idle_watcher_command(self.settings.python, "leave", f"{_LEAVE_SECONDS:g}")
        words = [program, "exec", name, *leave]
        if command_line_tools.ask(words, seconds=_ASK_SECONDS).code != idle_watcher.IN_USE:
            command_line_tools.ask([program, "wait", name], seconds=_LEAVE_SECONDS)


BACKEND = DockerEnvironment


def _launch(words: list[str]) -> command_line_tools.Answer:
    """In an empty folder: Podman keeps a process per container, which writes a file there when memory runs out."""
    with tempfile.TemporaryDirectory() as nowhere:
        return command_line_tools.ask(words, seconds=_START_SECONDS, cwd=nowhere)


def _prune(program: str, backend: str, *, dry_run: bool = False) -> list[str]:
    listed = command_line_tools.ask(
        [program, "ps", "--all", "--quiet", "--filter=label=handrail=1"], seconds=_ASK_SECONDS
    )
    names = listed.out.split()
    if not names:
        if not listed.ok:
            log.warning("%s could not be asked for containers that were left behind: %s", backend, listed.message)
        return []
    # One may be gone by now; the others are listed all the same.
    details = json.loads(command_line_tools.ask([program, "inspect", *names], seconds=_ASK_SECONDS).out or "[]")
    found = [(one["Name"].lstrip("/"), _labels(one).get("handrail.task", "")) for one in details if _is_left(one)]
    if found and not dry_run:
        command_line_tools.ask([program, "rm", "--force", *(name for name, _ in found)], seconds=_ASK_SECONDS)
    return [f"{backend}: {name}" + (f", of the task {task}" if task else "") for name, task in found]


def _is_left(container: Mapping[str, Any]) -> bool:
    labels = _labels(container)
    if labels.get("handrail.lifetime") != "passing":
        return False
    # One that has ended should have been removed: its maker no longer needs it.
    return container["State"]["Status"] in ("exited", "dead") or has_exited(labels.get("handrail.owner", ""))


def _labels(container: Mapping[str, Any]) -> Mapping[str, str]:
    return container["Config"]["Labels"] or {}


def _out_of_reach(engine: str, answer: command_line_tools.Answer) -> Unavailable:
    message = (answer.message or "it printed nothing").splitlines()[0]
    if "permission denied" in message:
        return Unavailable(f"{engine} may not be used by this user: {message}", "add the user to the group docker")
    if os.path.basename(engine).startswith("docker") and "from daemon" not in message:
        return Unavailable(f"cannot reach the Docker daemon: {message}", "start it or set DOCKER_HOST")
    return Unavailable(f"{engine} failed: {message}", f"see what `{engine} info` says")


def _readable(task: str) -> str:
    return re.sub(r"[^A-Za-z0-9_.-]+", "-", task)[:30].strip("-.")
