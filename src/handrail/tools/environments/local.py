"""Commands on this machine: as they are, or in a sandbox."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from ..files.local import LocalFiles
from .clean_env import clean_environment, login_environment
from .errors import EnvironmentStartError
from .link import DirectLink, Link
from .live import LiveEnvironment

if TYPE_CHECKING:
    from ...protocols import Files
    from .sandbox import SandboxPolicy


class LocalEnvironment(LiveEnvironment):
    """A bash on this machine, in a directory, without this process's secrets.

    `env` is added to this process's variables (a value of None takes one away); `allowed_secrets` are names of secret
    variables that commands may see; `login` begins with what a login shell would have. `roots` are the folders that the file
    tools may not leave: commands are held by a sandbox only. `processes_dir` is where background processes keep their logs.
    """

    name = "local"
    reaches_host = persistent = True

    def __init__(
        self,
        cwd: str | None = None,
        *,
        env: Mapping[str, str | None] | None = None,
        allowed_secrets: Collection[str] = (),
        login: bool = False,
        sandbox: SandboxPolicy | None = None,
        roots: Sequence[str] = (),
        processes_dir: str | None = None,
    ) -> None:
        super().__init__()
        self._first_cwd = os.path.abspath(cwd or os.getcwd())
        self._env, self._allowed, self._login = dict(env or {}), tuple(allowed_secrets), login
        self._sandbox, self._roots, self._processes_dir = sandbox, tuple(roots), processes_dir
        if sandbox is not None:
            self.isolated, self.persistent = sandbox.isolates, False
        self._files, self._files_cwd = LocalFiles(self._first_cwd, self._roots), self._first_cwd

    @property
    def files(self) -> Files:
        if self._sandbox is not None:
            return super().files
        cwd = self.cwd
        if self._files_cwd != cwd:
            self._files, self._files_cwd = LocalFiles(cwd, self._roots), cwd
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

    def _variables(self) -> dict[str, str]:
        begin = login_environment if self._login else clean_environment
        changed = {**begin(self._allowed), **self._env}
        return {name: value for name, value in changed.items() if value is not None}

    def _jobs_root(self) -> str:
        if self._processes_dir is not None:
            return self._processes_dir
        from ...config.paths import state_dir

        return str(state_dir() / "processes")
