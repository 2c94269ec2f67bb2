"""Commands on this machine: as they are, or in a sandbox."""

from __future__ import annotations

import os
import shutil
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ...errors import InvalidArguments
from ...suggest import did_you_mean
from ...types import Unavailable
from ..files.local import DEFAULT_MAX_BYTES, LocalFiles
from .clean_env import clean_environment, login_environment
from .errors import EnvironmentStartError
from .far.ops import JobOps
from .link import DirectLink, Link
from .live import LiveEnvironment
from .remote_files import RemoteFiles

if TYPE_CHECKING:
    from ...protocols import Files
    from .far.wire import Packet
    from .sandbox import BubblewrapPolicy


class LocalEnvironment(LiveEnvironment):
    """A bash on this machine, in a directory, without this process's secrets.

    `env` is added to this process's variables (a value of None takes one away); `allowed_secrets` are names of secret
    variables that commands may see; `login` begins with what a login shell would have. `roots` are the folders that the file
    tools may not leave: commands are held by a sandbox only. `processes_dir` is where background processes keep their logs.
    """

    name = "local"
    reaches_host = persistent = host_paths = True
    max_read_bytes = max_write_bytes = DEFAULT_MAX_BYTES  # of the file tools

    def __init__(
        self,
        cwd: str | None = None,
        *,
        env: Mapping[str, str | None] | None = None,
        allowed_secrets: Collection[str] = (),
        login: bool = False,
        sandbox: BubblewrapPolicy | None = None,
        roots: Sequence[str] = (),
        processes_dir: str | None = None,
    ) -> None:
        super().__init__()
        self._first_cwd = os.path.abspath(cwd or os.getcwd())
        self._env, self._allowed, self._login = dict(env or {}), tuple(allowed_secrets), login
        self._sandbox, self._roots, self._processes_dir = sandbox, tuple(roots), processes_dir
        if sandbox is not None:
            self.isolated, self.persistent = True, False
        self._files: LocalFiles | None = None
        self._files_cwd = ""

    @classmethod
    def from_settings(
        cls, settings: Mapping[str, Any], *, task_id: str, cwd: str | None, env: Mapping[str, str]
    ) -> LocalEnvironment:
        del task_id  # nothing of it is kept on this machine
        _check(settings)
        sandbox = _policy(settings) if settings.get("sandbox") else None
        login, roots = bool(settings.get("login")), settings.get("roots", ())
        environment = cls(cwd, env=env, login=login, sandbox=sandbox, roots=roots)
        environment.max_read_bytes = settings.get("max_read_bytes", DEFAULT_MAX_BYTES)
        environment.max_write_bytes = settings.get("max_write_bytes", DEFAULT_MAX_BYTES)
        return environment

    @staticmethod
    def check(settings: Mapping[str, Any]) -> Unavailable | None:
        if shutil.which("bash") is None:
            return Unavailable(
                "bash is not installed", "install it, or choose another environment with terminal.backend"
            )
        if settings.get("sandbox") and shutil.which("bwrap") is None:
            return Unavailable("bubblewrap (bwrap) is not installed", "install it, or turn the sandbox off")
        return None

    @staticmethod
    def prune(dry_run: bool) -> list[str]:
        """A guard outside of the runtime's own processes has taken it away already."""
        del dry_run
        return []

    @property
    def cwd(self) -> str:
        return self._cwd or self._first_cwd

    @property
    def files(self) -> Files:
        cwd = self.cwd
        if self._sandbox is not None:
            return RemoteFiles(self._call, lambda: self.cwd, self.max_read_bytes, self._roots)
        if self._files is None or self._files_cwd != cwd:
            self._files = LocalFiles(cwd, self._roots, self.max_read_bytes, self.max_write_bytes)
            self._files_cwd = cwd
        return self._files

    def _connect(self, state: bytes | None) -> Link:
        if not os.path.isdir(self._first_cwd):
            raise EnvironmentStartError(
                f"the working directory {self._first_cwd} does not exist; make it, or give another"
            )
        variables = self._variables()
        if self._sandbox is not None:
            return self._sandbox.connect(cwd=self._first_cwd, env=variables, state=state)
        return DirectLink(env=variables, cwd=self._first_cwd, jobs_root=self._jobs_root())

    def _call(self, op: str, data: bytes = b"", **details: object) -> tuple[Packet, bytes]:
        if self._sandbox is None and hasattr(JobOps, f"op_{op}"):
            # All that is known of a background process is in its folder: that takes no shell, and outlasts this one.
            return JobOps(self._jobs_root()).call(op, details, data)
        return super()._call(op, data, **details)

    def _variables(self) -> dict[str, str]:
        begin = login_environment if self._login else clean_environment
        changed = {**begin(self._allowed), **self._env}
        return {name: value for name, value in changed.items() if value is not None}

    def _jobs_root(self) -> str:
        if self._processes_dir is not None:
            return self._processes_dir
        from ...config.paths import state_dir

        return str(state_dir() / "processes")


_SETTINGS: dict[str, type | tuple[type, ...]] = {
    "sandbox": bool,
    "network": bool,
    "writable": (list, tuple),
    "login": bool,
    "roots": (list, tuple),
    "max_read_bytes": int,
    "max_write_bytes": int,
}


def _check(settings: Mapping[str, Any]) -> None:
    for name, value in settings.items():
        if name not in _SETTINGS:
            raise InvalidArguments(f"local environment: unknown setting {name!r}; {did_you_mean(name, _SETTINGS)}")
        if not isinstance(value, _SETTINGS[name]):
            raise InvalidArguments(f"local environment: {name} cannot be {value!r}")


def _policy(settings: Mapping[str, Any]) -> BubblewrapPolicy:
    from .sandbox import BubblewrapPolicy

    writable = settings.get("writable")
    return BubblewrapPolicy(
        writable=None if writable is None else tuple(map(os.path.expanduser, writable)),
        network=bool(settings.get("network")),
    )
