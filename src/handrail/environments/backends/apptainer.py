"""Commands in an instance of Apptainer (or Singularity): a container that runs as the user, with no engine behind it.

Nothing of this machine is seen inside but what is mounted: not the home folder, not /tmp, not this process's variables. The
image is not changed: what commands write goes to memory, or to an overlay folder.
"""

import contextlib
import glob
import json
import logging
import os
import re
import shutil
import signal
import time
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from ...base.own_process import has_exited, runtime_id
from ...config.paths import state_dir
from ...config.settings_reader import fail
from ...types import Unavailable
from .. import containers
from ..command_line_tools import Answer, ask
from ..containers import ASK_SECONDS, ContainerEnvironment, ContainerSettings
from ..errors import EnvironmentStartError
from ..shell_host import proc
from ..transport.link import Fatal

log = logging.getLogger(__name__)
DEFAULT_IMAGE = "docker://python:3.13"
_PROGRAMS = ("apptainer", "singularity")
_START_SECONDS = 1800.0  # an image may have to be loaded and unpacked
_END_SECONDS = 10.0
_NO_LIMITS = "limits take root, or cgroups v2 with systemd; leave memory, cpus and pids out where neither is there"
_ENTER = 'cd -- "${0:-$HOME}" && exec "$@"'
_OWNED = re.compile(r"handrail-(?P<owner>[0-9a-f]+-[0-9a-f]+-\d+-\d+-\d+-\d+)-[0-9a-f]{6}")
_LIST = ("instance", "list", "--json")


@dataclass(frozen=True, slots=True, kw_only=True)
class ApptainerSettings(ContainerSettings):
    """How the instance is made. `image` is a file, a sandbox folder, or a URI such as `docker://python:3.13`. `overlay` is a
    folder that keeps what commands write; without one it is in memory, and a system's administrator says how much that may be.
    If the system cannot enforce a limit, nothing is started. `network` is `host` or `none`. Without `cwd` the shell starts in
    the home folder. A `persistent` instance keeps its files and what was started to survive. `start_arguments` are added to
    `instance start`."""

    image: str = DEFAULT_IMAGE
    program: str | None = None
    overlay: str | None = None
    network: str = "host"
    start_arguments: tuple[str, ...] = ()

    added: ClassVar[str] = "start_arguments"
    harmless: ClassVar[frozenset[str]] = frozenset(
        """--app --authfile --blkio-weight --cpu-shares --cpuset-cpus --cpuset-mems --disable-cache --dns --docker-host
        --fakeroot --hostname --ipc --memory-reservation --no-https --no-mount --no-umask --nv --pem-path --pid --rocm
        --scratch --userns --uts""".split()
    )

    def __post_init__(self) -> None:
        ContainerSettings.__post_init__(self)
        if self.network not in ("host", "none"):
            fail("network", f"must be host or none, not {self.network!r}")
        for mount in self.mounts:
            if mount.is_volume:
                fail("mounts", f"{mount.source!r} is not a path; there are no named volumes here")

    @property
    def isolated(self) -> bool:
        """Never for root: without a user namespace the files of /proc are those of the machine."""
        return super(ApptainerSettings, self).isolated and os.geteuid() != 0

    @property
    def reaches_host(self) -> bool:
        return super(ApptainerSettings, self).reaches_host or os.geteuid() == 0

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
        return [*words, *self.last_arguments]


class ApptainerEnvironment(ContainerEnvironment):
    """A bash in an instance."""

    name = "apptainer"
    settings_type = ApptainerSettings
    program_setting = "program"
    listing = _LIST

    @classmethod
    def find(cls, named: str | None = None) -> str | None:
        return next(filter(None, map(shutil.which, (named,) if named else _PROGRAMS)), None)

    @classmethod
    def unavailable(cls, named: str, answer: Answer) -> Unavailable:
        return Unavailable(f"{named} does not work here: {_reason(answer)}")

    def inside(self, program: str, *, is_shell: bool = False) -> list[str]:
        """This process's directory means nothing there."""
        enter = ["sh", "-c", _ENTER, self.settings.cwd or ""] if is_shell else []
        place = f"instance://{self._container}"
        return [program, "--quiet", "exec", "--cleanenv", "--pwd=/", *_privileges(), place, *enter]

    @property
    def keeps_files(self) -> bool:
        return self._folder is not None

    @property
    def _folder(self) -> str | None:
        overlay: str | None = self.settings.overlay
        if overlay is not None:
            return os.path.abspath(os.path.expanduser(overlay))
        return None if not self.persistent else str(state_dir() / "apptainer" / containers.persistent_name(self._task))

    def have_container(self, program: str) -> bool:
        running = _instances(program)
        if self._container in running:
            return False
        if self._container:
            _remove_logs(self._container)
        name = containers.temporary_name(runtime_id())
        if self.settings.persistent:
            task = containers.persistent_name(self._task)
            name = f"{task}-{containers.fingerprint(self.settings.image, *self.settings.arguments(self._folder))}"
            others = [other for other in running if other.startswith(task) and other != name]
            if others:
                raise EnvironmentStartError(
                    f"the instance {others[0]} of the task {self._task!r} runs with other settings; "
                    f"end it with `apptainer instance stop {others[0]}`, or give the task another name"
                )
        self._container = name
        if name in running:
            return False
        self._start(program)
        return True

    def _start(self, program: str) -> None:
        settings, folder = self.settings, self._folder
        for part in ("overlay", "scratch") if folder is not None else ():
            os.makedirs(f"{folder}/{part}", mode=0o700, exist_ok=True)
        words = [program, "instance", "start", *settings.arguments(folder), settings.image, self._container]
        listener = self.on_progress or (lambda line: log.info("%s", line))
        answer = ask(words, seconds=_START_SECONDS, listener=listener)
        if not answer.ok:
            _remove_logs(self._container)
            reason = _reason(answer)
            fix = f"; {_NO_LIMITS}" if settings.limits and "cgroup" in reason else ""
            raise EnvironmentStartError(f"the image {settings.image} could not be started: {reason}{fix}")
        if settings.limits:
            own, its = (Path(f"/proc/{pid}/cgroup") for pid in ("self", _instances(program).get(self._container)))
            if not its.exists() or its.read_text() == own.read_text():
                _end(program, self._container)
                raise EnvironmentStartError(f"apptainer did not apply the limits; {_NO_LIMITS}")

    def prepare(self, program: str) -> None:
        words = self.idle_watcher("idle", f"{self.settings.leave_after:g}", "beside")
        answer = ask([*self.inside(program), *words], seconds=ASK_SECONDS)
        if not answer.ok:
            raise Fatal(_reason(answer))

    def end(self, program: str, name: str) -> None:
        try:
            _end(program, name)
        except EnvironmentStartError as error:
            log.warning("the instance %s could not be ended: %s", name, error)

    @classmethod
    def prune_by(cls, program: str, *, dry_run: bool = False) -> list[str]:
        try:
            running = _instances(program)
        except EnvironmentStartError as error:
            log.warning("cannot list what was left behind: %s", error)
            return []
        logged = [os.path.basename(path).rpartition(".")[0] for path in _logs("handrail-*")]
        owners = {name: match["owner"] for name in (*running, *logged) if (match := _OWNED.fullmatch(name))}
        found = [name for name, owner in sorted(owners.items()) if has_exited(owner)]
        for name in [] if dry_run else found:
            _end(program, name)
        return [f"apptainer: {name}" for name in found]


BACKEND = ApptainerEnvironment


def _privileges() -> list[str]:
    """Root keeps few capabilities. An ordinary user has none."""
    if os.geteuid() != 0:
        return []
    return ["--no-privs", "--add-caps=" + ",".join(f"CAP_{name}" for name in containers.CAPABILITIES)]


def _instances(program: str) -> dict[str, int]:
    """Those that run, by name, each with the pid of its first process on this machine."""
    answer = ask([program, *_LIST], seconds=ASK_SECONDS)
    if not answer.ok:
        raise EnvironmentStartError(f"apptainer does not work here: {_reason(answer)}")
    return {one["instance"]: one["pid"] for one in json.loads(answer.out)["instances"]}


def _end(program: str, name: str) -> None:
    """End it immediately. `instance stop` would take seconds."""
    pid = _instances(program).get(name)
    if pid is not None and (stat := proc.stat_of(pid)) is not None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        # Its parent process cleans up, and ends.
        end, parent = time.monotonic() + _END_SECONDS, proc.stat_of(stat.parent)
        while parent is not None and proc.is_alive(stat.parent, parent.start) and time.monotonic() < end:
            time.sleep(0.005)
    _remove_logs(name)


def _remove_logs(name: str) -> None:
    for path in _logs(name):
        with contextlib.suppress(OSError):  # another process removes it as well
            os.unlink(path)


def _logs(name: str) -> list[str]:
    """Of instances of both programs."""
    places = [os.environ.get(f"{one.upper()}_CONFIGDIR") or os.path.expanduser(f"~/.{one}") for one in _PROGRAMS]
    return [path for place in places for path in glob.glob(f"{glob.escape(place)}/instances/logs/*/*/{name}.*")]


def _reason(answer: Answer) -> str:
    """The line with the reason; the lines before it are progress."""
    lines = [re.sub(r"^FATAL:\s*", "", line) for line in answer.message.splitlines() if line.startswith("FATAL")]
    return (lines or answer.message.splitlines()[-1:] or ["it printed nothing"])[0]
