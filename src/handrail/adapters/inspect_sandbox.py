"""Sandboxes for Inspect in any environment of Handrail: `Task(..., sandbox="handrail")`, by an entry point.

`sandbox=("handrail", "docker:python:3.12")` names the backend, and `SandboxEnvironmentSpec("handrail", Settings(backend="ssh",
host="build"))` its settings too. Without a backend it is the configured one; one on this machine has a sandbox unless the
settings say `sandbox=False`. Each sample has an environment of its own. Nothing is asked about what a sandbox's commands do.
"""

import contextlib
import secrets
import shlex
import shutil
import tempfile
from pathlib import Path
from typing import Any, Self

import anyio
import anyio.to_thread
from inspect_ai import util
from pydantic import BaseModel, ConfigDict

from ..app import Handrail
from ..base.temporary_folders import make_folder
from ..environments.base import CommandResult, Environment
from ..environments.errors import NoSuchDirectory
from ..environments.output import OutputSink
from ..errors import HandrailError
from ..model_tools import default
from ..protocols import FileStat
from ..types import CancelToken

_NOT_EXECUTABLE = 126
# By their paths: a command may not put others in their place. It needs no PAM, which small images do not have.
_SETPRIV = "/usr/bin/setpriv --reuid={user} --regid=$(/usr/bin/id -g -- {user}) --init-groups --"
_ANY_WRITE, _ANY_READ = 0o222, 0o444


class Settings(BaseModel):
    """Settings of a task's environment, as for `handrail.session`: `backend`, `image`, `sandbox`, `env`, ..."""

    model_config = ConfigDict(extra="allow")
    backend: str = ""


@util.sandboxenv(name="handrail")
class HandrailSandbox(util.SandboxEnvironment):  # type: ignore[misc]  # not installed where types are checked
    """One sample's environment. Its commands run one after the other, each in a process of its own."""

    def __init__(self, app: Handrail, settings: dict[str, Any]) -> None:
        super().__init__()
        self._app, self._task = app, f"inspect-{secrets.token_hex(8)}"
        self._turn = anyio.Lock()
        self._made = ""  # a folder of this machine that goes with the sandbox
        app.environments.override(self._task, settings)
        if app.environments.has_host_paths(self._task):
            self._made = make_folder("inspect")
            app.environments.override(self._task, {"sandbox": True, "profile": "open", **settings, "cwd": self._made})
        self._folder, self._user = "", ""

    @classmethod
    async def sample_init(cls, task_name: str, config: Any, metadata: dict[str, str]) -> dict[str, Self]:  # noqa: ARG003  Inspect's
        given = {"backend": config} if isinstance(config, str) else config.model_dump() if config is not None else {}
        made = cls(await anyio.to_thread.run_sync(default), {key: value for key, value in given.items() if value != ""})
        try:
            await anyio.to_thread.run_sync(made.start)
        except BaseException:
            await anyio.to_thread.run_sync(made.close)
            raise
        return {"default": made}

    @classmethod
    async def sample_cleanup(cls, task_name: str, config: Any, environments: dict[str, Any], interrupted: bool) -> None:  # noqa: ARG003  Inspect's
        with anyio.CancelScope(shield=True):
            for each in environments.values():
                await anyio.to_thread.run_sync(each.close)

    @classmethod
    def config_deserialize(cls, config: dict[str, Any]) -> Settings:
        return Settings(**config)

    def start(self) -> None:
        """Start its shell, in a folder of its own where others could see the environment's files."""
        environment = self._environment
        make = "pwd" if self._made or environment.isolated else "mktemp -d"
        found = environment.execute(f"{make}; id -un", timeout=60).output.head.decode("utf-8", "surrogateescape")
        self._folder, self._user = found.splitlines()

    def close(self) -> None:
        """Closing twice is the same as once."""
        with contextlib.suppress(HandrailError):
            if self._folder and not self._made and not self._environment.isolated:
                self._environment.execute(f"cd / && rm -rf -- {shlex.quote(self._folder)}", timeout=60)
        self._folder = ""
        self._app.environments.close(self._task)
        self._app.environments.clear_overrides(self._task)
        shutil.rmtree(self._made or "/nonexistent", ignore_errors=True)

    async def exec(
        self,
        cmd: list[str],
        input: str | bytes | None = None,  # noqa: A002  the same
        cwd: str | None = None,
        env: dict[str, str] | None = None,
        user: str | None = None,
        timeout: int | None = None,  # noqa: ASYNC109  the same
        timeout_retry: bool = True,  # noqa: ARG002  what may have changed something is not run twice
        concurrency: bool = True,  # noqa: ARG002  nothing runs in a process of Inspect's
    ) -> util.ExecResult[str]:
        limit = util.SandboxEnvironmentLimits.MAX_EXEC_OUTPUT_SIZE
        sink, cancel = OutputSink(head_bytes=limit, tail_bytes=0), CancelToken()
        text, given = self._as_user(cmd, user), input.encode() if isinstance(input, str) else input

        def run() -> CommandResult:
            with self._app.environments.use(self._task) as environment:
                more: dict[str, Any] = {"cwd": self._path(cwd or "."), "env": env, "stdin": given, "timeout": timeout}
                return environment.execute(text, cancel=cancel, output=sink, separate=True, **more)

        async with self._turn:
            try:
                ended = await anyio.to_thread.run_sync(run, abandon_on_cancel=True)
            except NoSuchDirectory as error:
                return util.ExecResult(False, 1, "", f"{error}\n")
            finally:
                cancel.cancel("the sample was cancelled")
        stdout, stderr = ended.output.head.decode("utf-8", "replace"), ended.stderr.decode("utf-8", "replace")
        if ended.timed_out:
            raise TimeoutError(f"the command timed out after {timeout} s")
        if ended.output.total_bytes > limit:
            raise util.OutputLimitExceededError(util.SandboxEnvironmentLimits.MAX_EXEC_OUTPUT_SIZE_STR, stdout)
        if ended.exit_code == _NOT_EXECUTABLE and "ermission denied" in stderr:
            raise PermissionError(stderr)
        return util.ExecResult(ended.exit_code == 0, ended.exit_code, stdout, stderr)

    async def write_file(self, file: str, contents: str | bytes) -> None:
        data = contents.encode() if isinstance(contents, str) else contents

        def write() -> None:
            path = self._path(file)
            found = self._found(file, _ANY_WRITE)
            folder = path.rpartition("/")[0]
            if found is None and self._environment.files.stat(folder or "/") is None:
                made = self._environment.execute(f"mkdir -p -- {shlex.quote(folder)}", timeout=60)
                if made.exit_code:
                    raise PermissionError(f"{file}: {made.output.head.decode('utf-8', 'replace')}")
            with tempfile.NamedTemporaryFile() as kept:
                kept.write(data)
                kept.flush()
                self._environment.upload(kept.name, path)

        async with self._turn:
            await anyio.to_thread.run_sync(write)

    async def read_file(self, file: str, text: bool = True) -> str | bytes:
        limits = util.SandboxEnvironmentLimits

        def read() -> bytes:
            if (found := self._found(file, _ANY_READ)) is None:
                raise FileNotFoundError(f"there is no file {file}")
            if found.size > limits.MAX_READ_FILE_SIZE:
                raise util.OutputLimitExceededError(limits.MAX_READ_FILE_SIZE_STR, None)
            with tempfile.TemporaryDirectory() as folder:
                self._environment.download(self._path(file), f"{folder}/kept")
                return Path(folder, "kept").read_bytes()

        async with self._turn:
            data = await anyio.to_thread.run_sync(read)
        return data.decode() if text else data

    @property
    def _environment(self) -> Environment:
        return self._app.environments.of(self._task)

    def _found(self, file: str, needed: int) -> FileStat | None:
        found = self._environment.files.stat(self._path(file))
        if found is not None and found.is_dir:
            raise IsADirectoryError(f"{file} is a directory")
        if found is not None and not found.mode & needed:  # which would not stop root
            raise PermissionError(f"{file} may not be used so: its mode is {found.mode & 0o777:o}")
        return found

    def _path(self, path: str) -> str:
        return path if path.startswith("/") else f"{self._folder}/{path}"

    def _as_user(self, cmd: list[str], user: str | None) -> str:
        words = " ".join(map(shlex.quote, cmd))
        if user in (None, self._user):
            return f"( exec -- {words} )"
        if self._user != "root":
            raise util.SandboxUserUnsupportedError(f"commands run as {self._user} here, and cannot run as {user}")
        return f"( {_SETPRIV.format(user=shlex.quote(str(user)))} {words} )"
