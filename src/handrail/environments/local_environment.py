"""Commands on this machine: as they are, or in a sandbox."""

from __future__ import annotations

import os
import shutil
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from ..config.paths import state_dir
from ..files.local import DEFAULT_MAX_BYTES, LocalFiles
from .base import Coverage
from .command_input import clean_environment, login_environment
from .errors import EnvironmentStartError
from .live_environment import LiveEnvironment
from .profiles import Profile
from .protection import JOBS_FOLDER, Protection
from .shell_host.operations import JobOperations
from .shell_host.work_tree import work_trees
from .transport.link import DirectLink, Link

if TYPE_CHECKING:
    from ..protocols import Files
    from .base import Environment
    from .sandbox import SandboxPolicy
    from .shell_host.wire import Packet
    from .shell_pool import ShellPool

_DEFAULT_PROTECTION = Protection()
JOURNAL_FOLDER = "journal"


class LocalEnvironment(LiveEnvironment):
    """A bash on this machine, in a directory, without this process's secrets.

    `env` is added to this process's variables (None removes one); `allowed_secrets` are names of secret variables that commands
    may see; `login` starts with the variables of a login shell. `roots` are the folders that the file tools may not leave (only a
    sandbox restricts commands); `protection` is what the kernel protects from commands without a sandbox. `file_limits` are the
    largest files that the file tools read whole and write. `processes_dir` is where background processes keep their logs.
    """

    name: str = "local"
    reaches_host = persistent = True

    def __init__(  # noqa: PLR0913  one per setting of this backend
        self,
        cwd: str | None = None,
        *,
        env: Mapping[str, str | None] | None = None,
        allowed_secrets: Collection[str] = (),
        login: bool = False,
        sandbox: SandboxPolicy | None = None,
        protection: Protection | None = _DEFAULT_PROTECTION,
        roots: Sequence[str] = (),
        processes_dir: str | None = None,
        file_limits: tuple[int, int] = (DEFAULT_MAX_BYTES, DEFAULT_MAX_BYTES),
    ) -> None:
        super().__init__()
        self.pool: ShellPool | None = None  # of shells that are ready
        self._first_cwd = os.path.abspath(cwd or os.getcwd())
        self._env, self._allowed, self._login = dict(env or {}), tuple(allowed_secrets), login
        self._sandbox, self._roots, self._processes_dir = sandbox, tuple(roots), processes_dir
        self._protection = protection
        if sandbox is not None:
            self.isolated, self.persistent = sandbox.isolates, False
        self.held.is_sealed = protection is not None and protection.profile is Profile.SEALED
        self._file_limits = file_limits
        self._files: LocalFiles | None = None
        self._files_cwd = ""

    @property
    def cwd(self) -> str:
        return self._cwd or self._first_cwd

    @property
    def files(self) -> Files:
        self._check_open()
        cwd = self.cwd
        if self._sandbox is not None:
            return self._remote_files(self._file_limits[0], self._roots)
        if self._files is None or self._files_cwd != cwd:
            hidden = self._protection.hidden_files if self._protection is not None else ()
            self._files = LocalFiles(cwd, self._roots, *self._file_limits, hidden=hidden)
            self._files_cwd = cwd
        return self._files

    @property
    def coverage(self) -> Coverage:
        if self._sandbox is not None and self.effects is not None:
            return Coverage("none", "a sandbox keeps no journal: what is in it could read what others have changed")
        if self.effects is None and self._protection is None:
            return Coverage("file tools only", "the profile is open, in which commands are not watched")
        return super().coverage

    def connect(self, state: bytes | None) -> Link:
        if not os.path.isdir(self._first_cwd):
            raise EnvironmentStartError(
                f"the working directory {self._first_cwd} does not exist; create it, or set another"
            )
        variables = self._variables()
        if self._sandbox is not None:
            return self._sandbox.connect(cwd=self._first_cwd, env=variables, state=state)
        protection = self._protection
        confinement = protection.confinement(self._first_cwd) if protection is not None else None
        effects = self.effects
        if effects is not None:
            effects = {**effects, "journal": str(self._state_dir() / JOURNAL_FOLDER)}
        wanted = (variables, self._first_cwd, self._jobs_root(), confinement, effects)
        link = self.pool.take(*wanted) if self.pool is not None else DirectLink(*wanted)
        link.ask_when_held(self.held.answer)
        return link

    def _end(self, link: Link) -> None:
        if self.pool is not None and isinstance(link, DirectLink) and self._running.acquire(blocking=False):
            try:
                if self.pool.end(link):
                    return
            finally:
                self._running.release()
        super()._end(link)

    @property
    def work_trees(self) -> list[str]:
        return work_trees(self.cwd)

    def isolated_in(self, folder: str) -> LocalEnvironment:
        """A shell like this one whose changes to the work tree go to `folder`, seen by nobody else. It has no network."""
        assert self._protection is not None
        overlays = []
        for number, tree in enumerate(self.work_trees):
            overlays.append((tree, f"{folder}/{number}/changes", f"{folder}/{number}/kernel"))
            os.makedirs(overlays[-1][1])
            os.makedirs(overlays[-1][2])
            shutil.copystat(tree, overlays[-1][1])
            found = os.stat(tree)
            os.chown(overlays[-1][1], found.st_uid, found.st_gid)
        made = LocalEnvironment(
            self.cwd,
            env=self._env,
            allowed_secrets=self._allowed,
            login=self._login,
            protection=replace(self._protection, overlays=tuple(overlays)),
            processes_dir=self._processes_dir,
        )
        made.effects = None
        return made

    def end_call(self, call: int) -> None:
        """What a call had left running was ended, so that it is complete now and not before."""
        cast("DirectLink", self._connected()).end_call(call)

    def call_effects(self, operation: str, **arguments: object) -> dict[str, Any]:
        from .shell_host import call_effects  # undo and diffs are not needed to run a command

        journal = str(self._state_dir() / JOURNAL_FOLDER)
        return getattr(call_effects, operation)(journal, **arguments)  # type: ignore[no-any-return]

    def how_far(self, call: int) -> str:
        if call and self.effects is not None and self._sandbox is None:
            recovered = self.call_effects("recover", on_crash=self.effects.get("on_crash", "undo"))["recovered"]
            for found in recovered:
                if found["call"] == call:
                    return f"it was interrupted after {found['changes']} of its changes, which were {found['outcome']}"
        return super().how_far(call)

    def _call(self, op: str, data: bytes = b"", **details: object) -> tuple[Packet, bytes]:
        if self._sandbox is None and hasattr(JobOperations, f"op_{op}"):
            # A background process is known by its folder: reading it needs no shell, and works after this one.
            return JobOperations(self._jobs_root()).call(op, details, data)
        return super()._call(op, data, **details)

    def _variables(self) -> dict[str, str]:
        inherited = login_environment(self._allowed) if self._login else clean_environment(self._allowed)
        if self._protection is not None:
            inherited = self._protection.without_variables(inherited)
        changed = {**inherited, **self._env}
        return {name: value for name, value in changed.items() if value is not None}

    def _jobs_root(self) -> str:
        if self._processes_dir is not None:
            return self._processes_dir
        return str(self._state_dir() / JOBS_FOLDER)

    def _state_dir(self) -> Path:
        return state_dir(self._protection.home if self._protection is not None else "")


if TYPE_CHECKING:
    _fits: type[Environment] = LocalEnvironment
