"""The environment of a session in an editor: unsaved text is what the tools read, and commands may run in its terminals.

It wraps the environment that the configuration names. The editor's files and terminals are used where paths mean the same as on
this machine and there is no sandbox, which both would get around; everywhere else they are not.
"""

import asyncio
import contextlib
import hashlib
import os
import shutil
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import acp
from acp.schema import EnvVariable

from ...base.temporary_folders import make_folder
from ...environments.backend_table import Backends, is_host
from ...environments.base import CANCELLED_EXIT_CODE, TIMEOUT_EXIT_CODE, CommandResult, Coverage
from ...environments.output import OutputSink
from ...errors import ToolError
from ...files.local import LocalFiles, ResolvedPath
from ...protocols import Files, FileStat
from ...types import CancelToken
from .link import EditorLink

_MAX_OUTPUT_BYTES = 4 << 20
_KILL_SECONDS = 2.0
_UNWATCHED = Coverage("none", "it ran in a terminal of the editor, where nothing is watched")
_SCRIPT = Path(__file__).with_name("terminal.sh").read_text("utf-8")


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

    def from_settings(self, settings: Mapping[str, Any], *, env: Mapping[str, str], **more: Any) -> Any:
        inner = self._backend.from_settings(settings, env=env, **more)
        return EditorEnvironment(inner, self._link, self._delegates(settings), env)

    def files_before_start(self, settings: Mapping[str, Any], cwd: str) -> Files | None:
        """The files of an environment that has not started. None: they need an environment."""
        make = getattr(self._backend, "files_before_start", None)
        files = make(settings, cwd) if make is not None else None
        return None if files is None else EditorFiles(files, self._link, self._delegates(settings))

    def _delegates(self, settings: Mapping[str, Any]) -> bool:
        return is_host(self._backend) and not settings.get("sandbox")


class EditorEnvironment:
    """An environment, with the editor's files, and its terminals for commands if the session uses them."""

    def __init__(self, inner: Any, link: EditorLink, delegates: bool, env: Mapping[str, str]) -> None:
        self._inner, self._link, self._delegates, self._env = inner, link, delegates, dict(env)
        self._folder = self._cwd = ""  # for what is kept between two commands in terminals
        self._count = 0
        self._is_unwatched = False  # the last command ran in a terminal of the editor

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    @property
    def _in_editor(self) -> bool:
        return self._delegates and self._link.uses_terminals

    @property
    def effects(self) -> Any:
        """What watches commands; nothing does in the editor's terminals, so that none can be tried there."""
        return None if self._in_editor else getattr(self._inner, "effects", None)

    @effects.setter
    def effects(self, settings: Any) -> None:
        self._inner.effects = settings

    @property
    def coverage(self) -> Coverage:
        return _UNWATCHED if self._is_unwatched else self._inner.coverage

    @property
    def cwd(self) -> str:
        return self._cwd or str(self._inner.cwd)

    @property
    def files(self) -> Files:
        return EditorFiles(self._inner.files, self._link, self._delegates, self._cwd)

    def execute(
        self, command: str, *, timeout: float | None = None, cancel: CancelToken | None = None, **more: Any
    ) -> CommandResult:
        self._is_unwatched = self._in_editor
        if not self._in_editor:
            result: CommandResult = self._inner.execute(command, timeout=timeout, cancel=cancel, **more)
            return result
        began, sink, env, cwd = time.monotonic(), more.get("output") or OutputSink(), more.get("env"), more.get("cwd")
        self._count += 1
        self._folder = self._folder or make_folder("acp")
        state, place, given = (Path(self._folder, name) for name in ("state", "cwd", "input"))
        given.write_bytes(more.get("stdin") or b"")
        words = ["-c", _SCRIPT, "handrail", "" if env else str(state), "" if cwd else str(place), command, str(given)]
        where = os.path.join(self.cwd, os.path.expanduser(cwd or ""))
        work = self._in_terminal(words, where, {**self._env, **(env or {})}, timeout, cancel or CancelToken())
        output, code, how = self._link.wait(work, seconds=1e6 if timeout is None else timeout + 60)
        sink.feed(output.encode("utf-8", "surrogatepass"))
        with contextlib.suppress(OSError):
            self._cwd = place.read_text().removesuffix("\n")
        seconds = time.monotonic() - began
        return CommandResult(self._count, code, sink.output(), self.cwd, seconds, **how)

    def background(self, command: str, *, cwd: str | None = None, **more: Any) -> Any:
        """Background processes are Handrail's own: an editor keeps none for later."""
        self._is_unwatched = False
        return self._inner.background(command, cwd=cwd or self._cwd or None, **more)

    def open_pty(self, command: str, *, cwd: str | None = None, **more: Any) -> Any:
        self._is_unwatched = False
        return self._inner.open_pty(command, cwd=cwd or self._cwd or None, **more)

    def close(self) -> None:
        try:
            self._inner.close()
        finally:
            if self._folder:
                shutil.rmtree(self._folder, ignore_errors=True)

    async def _in_terminal(
        self, words: list[str], cwd: str, env: Mapping[str, str], seconds: float | None, cancel: CancelToken
    ) -> tuple[str, int, dict[str, Any]]:
        client, session = self._link.client, self._link.session_id
        variables = [EnvVariable(name=name, value=value) for name, value in env.items()]
        more: Any = {"args": words, "cwd": cwd, "env": variables, "output_byte_limit": _MAX_OUTPUT_BYTES}
        made = await client.create_terminal(session_id=session, command="bash", **more)
        names = {"session_id": session, "terminal_id": made.terminal_id}
        for call_id, started in self._link.open_calls.items():
            if started.tool == "terminal":  # only one command of a session runs at a time
                content: Any = [acp.tool_terminal_ref(made.terminal_id)]
                self._link.send(acp.update_tool_call(call_id, content=content))
        stop = asyncio.Event()
        exited = asyncio.ensure_future(client.wait_for_terminal_exit(**names))
        stopped = asyncio.ensure_future(stop.wait())
        forget = cancel.on_cancel(lambda: self._link.loop.call_soon_threadsafe(stop.set))
        try:
            done, _ = await asyncio.wait({exited, stopped}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
            if exited not in done:
                await client.kill_terminal(**names)
                await asyncio.wait({exited}, timeout=_KILL_SECONDS)
            text = (await client.terminal_output(**names)).output
            code = exited.result().exit_code if exited.done() else None
        finally:
            forget()
            exited.cancel()
            stopped.cancel()
            with contextlib.suppress(Exception):
                await client.release_terminal(**names)
        if exited in done:
            return text, 1 if code is None else code, {}
        how = {"timed_out": not done, "cancelled": bool(done)}
        return text, CANCELLED_EXIT_CODE if done else TIMEOUT_EXIT_CODE, how


class EditorFiles:
    """Files as the editor has them. What it cannot say (binary files, folders, what is too large) comes from the environment."""

    def __init__(self, inner: Files, link: EditorLink, delegates: bool, cwd: str = "") -> None:
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
        return self._inner.entries(self._absolute(path))

    def stat(self, path: str) -> FileStat | None:
        path = self._absolute(path)
        found, data = self._inner.stat(path), self._unsaved(path)
        if found is None or data is None:
            return found
        return found._replace(size=len(data), version=f"editor-{hashlib.sha256(data).hexdigest()[:32]}")

    def read(self, path: str, *, max_bytes: int, offset: int = 0) -> bytes:
        path = self._absolute(path)
        if (data := self._unsaved(path)) is None:
            return self._inner.read(path, max_bytes=max_bytes, offset=offset)
        return data[offset : offset + min(max_bytes, self.max_read_bytes)]

    def write(self, path: str, data: bytes, *, mode: int | None = None, call: int = 0) -> FileStat:
        path, link = self._absolute(path), self._link
        if self._local is not None and link.writes_files and (text := _as_text(data)) is not None:
            self._local.check_write(path, data)
            place = self.resolve(path)
            link.wait(link.client.write_text_file(session_id=link.session_id, path=place, content=text))
        # An editor may save with other line ends, format, or not save at all: the file gets exactly what was asked for.
        if self._disk(path) != data:
            self._inner.write(path, data, mode=mode, call=call)
        written = self.stat(path)
        assert written is not None
        return written

    def remove(self, path: str, *, call: int = 0) -> None:
        self._inner.remove(self._absolute(path), call=call)

    def _absolute(self, path: str) -> str:
        """Relative to where the last command in a terminal was, if there was one."""
        is_given = isinstance(path, ResolvedPath) or not path or path.startswith(("/", "~"))
        return path if is_given or not self._cwd else os.path.join(self._cwd, path)

    def _unsaved(self, path: str) -> bytes | None:
        """What the editor has of a file, if that is something else than what is on the disk."""
        disk = self._disk(path) if self._local is not None and self._link.reads_files else None
        if disk is None or (text := _as_text(disk)) is None:
            return None
        link, resolved = self._link, self.resolve(path)
        try:
            shown = link.wait(link.client.read_text_file(session_id=link.session_id, path=resolved)).content
        except ToolError:
            return None  # it cannot open it
        # An editor may leave out the mark at the start, and has its own line ends.
        plain, on_disk = (each.replace("\r\n", "\n").lstrip("\ufeff") for each in (shown, text))
        return None if plain == on_disk else shown.encode("utf-8", "surrogatepass")

    def _disk(self, path: str) -> bytes | None:
        limit = self._inner.max_read_bytes
        try:
            found = self._inner.stat(path)
            is_file = found is not None and not found.is_dir and found.size <= limit
            return self._inner.read(path, max_bytes=limit) if is_file else None
        except ToolError:
            return None


def _as_text(data: bytes) -> str | None:
    try:
        return None if b"\0" in data else data.decode()
    except UnicodeDecodeError:
        return None
