"""The environment of a session in an editor: unsaved text is what the tools read, and commands may run in its terminals.

It wraps the environment that the configuration names. The editor's files and terminals are used where paths mean the same as on
this machine and there is no sandbox, which both would get around; everywhere else changes are only noted, for the diffs.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...environments.backend_table import Backends, is_host
from ...environments.base import CANCELLED_EXIT_CODE, TIMEOUT_EXIT_CODE, CommandResult
from ...environments.output import OutputSink
from ...errors import ToolError, ToolFailed
from ...files.local import LocalFiles
from ...files.roots import ResolvedPath
from .link import Change, EditorLink

if TYPE_CHECKING:
    from ...protocols import FileEntry, Files, FileStat
    from ...types import CancelToken

_MAX_DIFF_BYTES = 1 << 20
_MAX_OUTPUT_BYTES = 4 << 20
_KILL_SECONDS = 2.0
# The state that a shell would keep: exported variables and the directory. $2 is empty for a command with its own directory.
_SCRIPT = """
handrail_state=$1 handrail_keeps_cwd=$2 handrail_command=$3
[ -r "$handrail_state" ] && . "$handrail_state"
handrail_save() {
  [ -n "$handrail_state" ] && export -p > "$handrail_state"
  [ -n "$handrail_keeps_cwd" ] && pwd > "$handrail_keeps_cwd"
}
trap handrail_save EXIT
exec < "${4:-/dev/null}"
set --
eval "$handrail_command"
"""


class EditorBackends(Backends):
    """The backends of one session, each with the editor in front of it."""

    def __init__(self, link: EditorLink) -> None:
        super().__init__()
        self._link = link

    def get(self, name: str) -> Any:
        return EditorBackend(super().get(name), self._link)


class EditorBackend:
    """A backend whose environments know the editor. Everything else is the backend's own."""

    def __init__(self, backend: Any, link: EditorLink) -> None:
        self._backend, self._link = backend, link

    def __getattr__(self, name: str) -> Any:
        return getattr(self._backend, name)

    def from_settings(
        self, settings: Mapping[str, Any], *, task_id: str, cwd: str | None, env: Mapping[str, str]
    ) -> Any:
        inner = self._backend.from_settings(settings, task_id=task_id, cwd=cwd, env=env)
        return EditorEnvironment(inner, self._link, self._delegates(settings), env)

    def files_before_start(self, settings: Mapping[str, Any], cwd: str) -> Files | None:
        """The files of an environment that has not started. None: they need an environment."""
        make: Callable[..., Files | None] | None = getattr(self._backend, "files_before_start", None)
        files = make(settings, cwd) if make is not None else None
        return None if files is None else EditorFiles(files, self._link, self._delegates(settings), lambda: "")

    def _delegates(self, settings: Mapping[str, Any]) -> bool:
        return is_host(self._backend) and not settings.get("sandbox")


class EditorEnvironment:
    """An environment, with the editor's files, and its terminals for commands if the session uses them."""

    def __init__(self, inner: Any, link: EditorLink, delegates: bool, env: Mapping[str, str]) -> None:
        self._inner, self._link, self._delegates, self._env = inner, link, delegates, dict(env)
        self._folder = ""  # for the state between two commands in terminals
        self._cwd = ""
        self._count = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    @property
    def cwd(self) -> str:
        return self._cwd or str(self._inner.cwd)

    @property
    def files(self) -> Files:
        return EditorFiles(self._inner.files, self._link, self._delegates, lambda: self._cwd)

    def execute(
        self,
        command: str,
        *,
        cwd: str | None = None,
        timeout: float | None = None,
        cancel: CancelToken | None = None,
        stdin: bytes | None = None,
        env: Mapping[str, str] | None = None,
        output: OutputSink | None = None,
        **more: Any,
    ) -> CommandResult:
        if not (self._delegates and self._link.uses_terminals):
            more |= {"stdin": stdin, "env": env, "output": output}
            result: CommandResult = self._inner.execute(command, cwd=cwd, timeout=timeout, cancel=cancel, **more)
            return result
        began, sink = time.monotonic(), output or OutputSink()
        self._count += 1
        folder = self._folder = self._folder or tempfile.mkdtemp(prefix="handrail-acp-")
        given, place = Path(folder, "input"), Path(folder, "cwd")
        given.write_bytes(stdin or b"")
        state = "" if env else str(Path(folder, "state"))
        words = ["-c", _SCRIPT, "handrail", state, "" if cwd else str(place), command, str(given)]
        where = os.path.join(self.cwd, os.path.expanduser(cwd or ""))
        ended = self._run(words, cwd=where, env={**self._env, **(env or {})}, timeout=timeout, cancel=cancel)
        sink.feed(ended["output"].encode("utf-8", "surrogatepass"))
        with contextlib.suppress(OSError):
            self._cwd = place.read_text().removesuffix("\n")
        code = TIMEOUT_EXIT_CODE if ended["timed_out"] else CANCELLED_EXIT_CODE if ended["cancelled"] else ended["code"]
        return CommandResult(
            self._count, code, sink.output(), self.cwd, time.monotonic() - began, ended["timed_out"], ended["cancelled"]
        )

    def background(self, command: str, *, cwd: str | None = None, **more: Any) -> Any:
        """Background processes are Handrail's own: an editor keeps none for later."""
        return self._inner.background(command, cwd=cwd or self._cwd or None, **more)

    def open_pty(self, command: str, *, cwd: str | None = None, **more: Any) -> Any:
        return self._inner.open_pty(command, cwd=cwd or self._cwd or None, **more)

    def close(self) -> None:
        try:
            self._inner.close()
        finally:
            if self._folder:
                shutil.rmtree(self._folder, ignore_errors=True)

    def _run(
        self, words: list[str], *, cwd: str, env: Mapping[str, str], timeout: float | None, cancel: CancelToken | None
    ) -> dict[str, Any]:
        stop = asyncio.Event()
        forget = cancel.on_cancel(lambda: self._link.loop.call_soon_threadsafe(stop.set)) if cancel else None
        limit = 1e6 if timeout is None else timeout + 60
        try:
            return self._link.wait(self._in_terminal(words, cwd, env, timeout, stop), seconds=limit)
        finally:
            if forget is not None:
                forget()

    async def _in_terminal(
        self, words: list[str], cwd: str, env: Mapping[str, str], seconds: float | None, stop: asyncio.Event
    ) -> dict[str, Any]:
        from acp.schema import EnvVariable  # a heavy optional dependency

        client, session = self._link.client, self._link.session_id
        made = await client.create_terminal(
            session_id=session,
            command="bash",
            args=words,
            env=[EnvVariable(name=name, value=value) for name, value in env.items()],
            cwd=cwd,
            output_byte_limit=_MAX_OUTPUT_BYTES,
        )
        names = {"session_id": session, "terminal_id": made.terminal_id}
        self._show(made.terminal_id)
        exited = asyncio.ensure_future(client.wait_for_terminal_exit(**names))
        stopped = asyncio.ensure_future(stop.wait())
        try:
            done, _ = await asyncio.wait({exited, stopped}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
            if exited not in done:
                await client.kill_terminal(**names)
                await asyncio.wait({exited}, timeout=_KILL_SECONDS)
            text = (await client.terminal_output(**names)).output
            status = exited.result() if exited.done() else None
        finally:
            exited.cancel()
            stopped.cancel()
            with contextlib.suppress(Exception):
                await client.release_terminal(**names)
        code = 1 if status is None or status.exit_code is None else status.exit_code
        return {"output": text, "code": code, "timed_out": not done, "cancelled": stopped in done}

    def _show(self, terminal_id: str) -> None:
        """Put the terminal on the card of the command: only one command of a session runs at a time."""
        from acp import tool_terminal_ref, update_tool_call  # a heavy optional dependency

        for call_id, started in self._link.open_calls.items():
            if started.tool == "terminal":
                self._link.send(update_tool_call(call_id, content=[tool_terminal_ref(terminal_id)]))


class EditorFiles:
    """Files as the editor has them. What it cannot say (binary files, folders, what is too large) comes from the environment."""

    def __init__(self, inner: Files, link: EditorLink, delegates: bool, cwd: Callable[[], str]) -> None:
        self._inner, self._link, self._cwd = inner, link, cwd
        self._local = inner if delegates and isinstance(inner, LocalFiles) else None

    @property
    def max_read_bytes(self) -> int:
        return self._inner.max_read_bytes

    def resolve(self, path: str) -> str:
        return self._inner.resolve(self._absolute(path))

    def host_path(self, path: str) -> str | None:
        return self._inner.host_path(self._absolute(path))

    def entries(self, path: str) -> Any:
        found: list[FileEntry] = list(self._inner.entries(self._absolute(path)))
        return found

    def stat(self, path: str) -> FileStat | None:
        path = self._absolute(path)
        found = self._inner.stat(path)
        data = self._unsaved(path, found)
        if found is None or data is None:
            return found
        return found._replace(size=len(data), version=f"editor-{hashlib.sha256(data).hexdigest()[:32]}")

    def read(self, path: str, *, max_bytes: int, offset: int = 0) -> bytes:
        path = self._absolute(path)
        data = self._unsaved(path, self._inner.stat(path))
        if data is None:
            return self._inner.read(path, max_bytes=max_bytes, offset=offset)
        return data[offset : offset + min(max_bytes, self.max_read_bytes)]

    def write(self, path: str, data: bytes, *, mode: int | None = None) -> FileStat:
        path = self._absolute(path)
        resolved, before = self.resolve(path), self._text(path)
        if self._local is not None and self._link.writes_files and (text := _as_text(data)) is not None:
            self._local.check_write(path, data)
            self._link.wait(
                self._link.client.write_text_file(session_id=self._link.session_id, path=resolved, content=text)
            )
        # An editor may save with other line ends, format, or not save at all: the file gets exactly what was asked for.
        if self._disk(path) != data:
            self._inner.write(path, data, mode=mode)
        self._note(Change(resolved, before, _as_text(data[:_MAX_DIFF_BYTES])))
        written = self.stat(path)
        if written is None:
            raise ToolFailed(f"{path} was removed while it was written")
        return written

    def remove(self, path: str) -> None:
        path = self._absolute(path)
        resolved, before = self.resolve(path), self._text(path)
        self._inner.remove(path)
        self._note(Change(resolved, before, None))

    def _note(self, change: Change) -> None:
        earlier = self._link.changes.get(change.path)
        self._link.changes[change.path] = change if earlier is None else change._replace(before=earlier.before)

    def _absolute(self, path: str) -> str:
        """Relative to where the last command in a terminal was, if there was one."""
        if isinstance(path, ResolvedPath) or not self._cwd() or path.startswith(("/", "~")) or not path:
            return path
        return os.path.join(self._cwd(), path)

    def _unsaved(self, path: str, found: FileStat | None) -> bytes | None:
        """What the editor has of a file, if that is something else than what is on the disk."""
        if self._local is None or not self._link.reads_files or found is None or found.is_dir:
            return None
        disk = self._disk(path)
        if disk is None or (text := _as_text(disk)) is None:
            return None
        session, resolved = self._link.session_id, self.resolve(path)
        try:
            answer = self._link.wait(self._link.client.read_text_file(session_id=session, path=resolved))
        except ToolError:
            return None  # it cannot open it
        return None if _same(answer.content, text) else answer.content.encode("utf-8", "surrogatepass")

    def _disk(self, path: str) -> bytes | None:
        limit = self._inner.max_read_bytes
        try:
            found = self._inner.stat(path)
            if found is None or found.is_dir or found.size > limit:
                return None
            return self._inner.read(path, max_bytes=limit)
        except ToolError:
            return None

    def _text(self, path: str) -> str | None:
        found = self._inner.stat(path)
        if found is None or found.is_dir or found.size > _MAX_DIFF_BYTES:
            return None
        return _as_text(self.read(path, max_bytes=_MAX_DIFF_BYTES))


def _as_text(data: bytes) -> str | None:
    try:
        return None if b"\0" in data else data.decode()
    except UnicodeDecodeError:
        return None


def _same(shown: str, disk: str) -> bool:
    """Whether an editor shows the file as it is: it may leave out the mark at the start, and has its own line ends."""
    return shown.replace("\r\n", "\n").lstrip("\ufeff") == disk.replace("\r\n", "\n").lstrip("\ufeff")
