"""Commands in a container of Docker or Podman, through the engine's command line.

The container's first process is the idle watcher (idle_watcher.py); the shell is started beside it by `exec`. So a command that
kills every process it can see costs the shell but not the container, and a container that nothing uses any longer ends by itself.
"""

import json
import logging
import os
import re
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from ...base.own_process import has_exited, runtime_id
from ...types import Unavailable
from .. import containers
from ..command_line_tools import Answer, ask
from ..containers import ASK_SECONDS, ContainerEnvironment, ContainerSettings
from ..errors import EnvironmentStartError
from ..transport import idle_watcher

log = logging.getLogger(__name__)
DEFAULT_IMAGE = "python:3.13"
_START_SECONDS, _PULL_SECONDS = 120.0, 1800.0


@dataclass(frozen=True, slots=True, kw_only=True)
class DockerSettings(ContainerSettings):
    """How the container is made. `tmp_size` is a limit like the others. `network` is `default` (the engine's own), `none`,
    `bridge`, `host`, or a network's name. Without `cwd` the shell starts in the image's own folder. A `persistent` container is
    stopped when it is closed; any other is removed. `run_arguments` are added to `run`."""

    image: str = DEFAULT_IMAGE
    engine: str = "docker"
    memory: str | None = "4g"
    pids: int | None = 512
    tmp_size: str | None = "1g"
    user: str | None = None
    pull: bool = True
    run_arguments: tuple[str, ...] = ()

    added: ClassVar[str] = "run_arguments"
    harmless: ClassVar[frozenset[str]] = frozenset(
        """--add-host --annotation --blkio-weight --cpu-shares --cpuset-cpus --cpuset-mems --dns --dns-option --dns-search
        --domainname --env-file --expose --gpus --group-add --hostname --ip --ip6 --label --log-driver --log-opt --mac-address
        --memory-reservation --memory-swappiness --network-alias --platform --publish --read-only --runtime --shm-size
        --stop-timeout --storage-opt --tmpfs --ulimit --userns=keep-id""".split()
    )

    def __post_init__(self) -> None:
        ContainerSettings.__post_init__(self)
        containers.check_size("tmp_size", self.tmp_size)

    def arguments(self) -> list[str]:
        """For `run`, without what differs between containers."""
        words = ["--cap-drop=ALL", *(f"--cap-add={name}" for name in containers.CAPABILITIES)]
        words += ["--security-opt=no-new-privileges", f"--stop-signal={idle_watcher.STOP_SIGNAL.name}"]
        words += ["--log-driver=none", *self.limits]
        if self.tmp_size is not None:
            words.append(f"--tmpfs=/tmp:rw,exec,nosuid,nodev,mode=1777,size={self.tmp_size}")
        if self.network != "default":
            words.append(f"--network={self.network}")
        return [*words, *self._user_arguments(), *self.last_arguments]

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


class DockerEnvironment(ContainerEnvironment):
    """A bash in a container of Docker."""

    name = "docker"
    engine: ClassVar[str] = "docker"
    settings_type = DockerSettings
    program_setting = "engine"
    listing = ("ps", "--quiet", "--filter=label=handrail")

    @classmethod
    def from_settings(
        cls, settings: Mapping[str, Any], *, task_id: str, cwd: str | None = None, env: Mapping[str, str] | None = None
    ) -> Self:
        return super().from_settings({"engine": cls.engine, **settings}, task_id=task_id, cwd=cwd, env=env)

    @classmethod
    def find(cls, named: str | None = None) -> str | None:
        return shutil.which(named or cls.engine)

    def inside(self, program: str, *, is_shell: bool = False) -> list[str]:
        folder = [f"--workdir={self.settings.cwd}"] if self.settings.cwd else []
        return [program, "exec", *(["--interactive", *folder] if is_shell else []), self._container]

    def have_container(self, program: str) -> bool:
        if self.persistent and not self._container:
            self._container = containers.persistent_name(self._task)
        found = self._state_of(program, self._container) if self._container else ""
        if found == "running":
            return False
        if found and self.persistent:
            answer = _launch([program, "start", self._container])
            if not answer.ok:
                raise EnvironmentStartError(f"the container {self._container} could not be started: {answer.message}")
            return False
        if not self.persistent:
            # Another name: the previous one may still be about to end.
            readable = re.sub(r"[^A-Za-z0-9_.-]+", "-", self._task)[:30].strip("-.")
            self._container = containers.temporary_name(readable)
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
        python, *waiting = self.idle_watcher("idle", f"{settings.leave_after:g}")
        words += [f"--entrypoint={python}", settings.image, *waiting]
        answer = _launch(words)
        if not answer.ok and settings.pull and self._pulled(program):
            answer = _launch(words)
        if answer.ok:
            return
        ask([program, "rm", "--force", name], seconds=ASK_SECONDS)
        if answer.code == 127:
            why = f"there is no {settings.python} in the image {settings.image}. {containers.NEEDS}"
            raise EnvironmentStartError(why)
        raise EnvironmentStartError(f"{settings.engine} could not start a container: {answer.message}")

    def _pulled(self, program: str) -> bool:
        """Pull the image if it is missing: True if that was the problem."""
        self._ask(program, "ps", "--quiet", "--filter=label=handrail")  # raises if the engine cannot be reached
        image = self.settings.image
        if ask([program, "image", "inspect", "--format={{.Id}}", image], seconds=ASK_SECONDS).ok:
            return False
        listener = self.on_progress or (lambda line: log.info("%s", line))
        answer = ask([program, "pull", image], seconds=_PULL_SECONDS, listener=listener)
        if answer.ok:
            return True
        lines = answer.message.splitlines()[-1:] or ["it printed nothing"]
        raise EnvironmentStartError(
            f"the image {image} is not here and could not be pulled: {lines[0]}; check its name, "
            f"or get it yourself with `{self.settings.engine} pull`, `load` or `build`"
        )

    def _labels(self, name: str) -> list[str]:
        lifetime = "persistent" if self.settings.persistent else "passing"
        values = {"name": name, "owner": runtime_id(), "task": self._task, "lifetime": lifetime}
        values["settings"] = self._fingerprint()
        return ["handrail=1", *(f"handrail.{key}={value}" for key, value in values.items())]

    def _fingerprint(self) -> str:
        return containers.fingerprint(self.settings.image, *self.settings.arguments())

    def _ask(self, program: str, *words: str) -> str:
        answer = ask([program, *words], seconds=ASK_SECONDS)
        if not answer.ok:
            raise EnvironmentStartError(str(self.unavailable(self.settings.engine, answer)))
        return answer.out

    def end(self, program: str, name: str) -> None:
        if self.persistent:  # it ends by itself now
            ask([program, "wait", name], seconds=containers.LEAVE_SECONDS)
            return
        answer = ask([program, "rm", "--force", name], seconds=ASK_SECONDS)
        if not answer.ok:
            log.warning("the container %s could not be removed: %s", name, answer.message)

    @classmethod
    def unavailable(cls, named: str, answer: Answer) -> Unavailable:
        message = (answer.message or "it printed nothing").splitlines()[0]
        if "permission denied" in message:
            return Unavailable(f"{named} may not be used by this user: {message}", "add the user to the group docker")
        if os.path.basename(named).startswith("docker") and "from daemon" not in message:
            return Unavailable(f"cannot reach the Docker daemon: {message}", "start it or set DOCKER_HOST")
        return Unavailable(f"{named} failed: {message}", f"see what `{named} info` says")

    @classmethod
    def prune_by(cls, program: str, *, dry_run: bool = False) -> list[str]:
        listed = ask([program, "ps", "--all", "--quiet", "--filter=label=handrail=1"], seconds=ASK_SECONDS)
        names = listed.out.split()
        if not names:
            if not listed.ok:
                log.warning("%s could not be asked for containers that were left behind: %s", cls.name, listed.message)
            return []
        # One may be gone by now; the others are listed all the same.
        details = json.loads(ask([program, "inspect", *names], seconds=ASK_SECONDS).out or "[]")
        left = [(one["Name"].lstrip("/"), one["Config"]["Labels"] or {}) for one in details if _is_left(one)]
        found = [(name, labels.get("handrail.task", "")) for name, labels in left]
        if found and not dry_run:
            ask([program, "rm", "--force", *(name for name, _ in found)], seconds=ASK_SECONDS)
        return [f"{cls.name}: {name}" + (f", of the task {task}" if task else "") for name, task in found]


BACKEND = DockerEnvironment


def _launch(words: list[str]) -> Answer:
    """In an empty folder: Podman keeps a process per container, which writes a file there when memory runs out."""
    with tempfile.TemporaryDirectory() as nowhere:
        return ask(words, seconds=_START_SECONDS, cwd=nowhere)


def _is_left(container: Mapping[str, Any]) -> bool:
    labels = container["Config"]["Labels"] or {}
    if labels.get("handrail.lifetime") != "passing":
        return False
    # One that has ended should have been removed: its maker no longer needs it.
    return container["State"]["Status"] in ("exited", "dead") or has_exited(labels.get("handrail.owner", ""))
