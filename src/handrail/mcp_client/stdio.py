"""Start a server and talk to it over its standard input and output.

The SDK's own transport joins long lines piece by piece, accepts lines of any length, and lets the server write to our
standard error. This one has a limit, and keeps the end of what the server wrote to its standard error.
"""

import asyncio
import contextlib
import os
import re
import shutil
import signal
import subprocess
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any, TypeVar

from ..base.own_process import MARKER
from ..errors import ToolUnavailable
from ..settings.services import McpServerConfig
from .sdk import anyio, mcp_types, messages, pydantic_core

T = TypeVar("T")
_INHERITED = ("HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER", "LANG", "LC_ALL", "TMPDIR", "TZ")
_PIECE_BYTES, _HEAD_BYTES, _STDERR_BYTES = 256 * 1024, 200, 8 * 1024
_MAX_PER_WRITE = 64
_ANSWER_ID = re.compile(rb'"id"\s*:\s*(\d{1,15})\b')
_UNREADABLE = -32603  # JSON-RPC's internal error
_EXIT_SECONDS, _TERM_SECONDS, _EXIT_CODE_SECONDS = 1.0, 1.0, 2.0
# Makes the words that start a program: from the program, its arguments, and the directory that it starts in.
Launch = Callable[[str, Sequence[str], "str | None"], list[str]]
# A parser accepts about twice as many levels; a tool with a schema half as deep is not offered.
_MAX_DEPTH = 96
_TOKENS = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|[\[\]{}]', re.DOTALL)


class Watchdog:
    """Ends the servers that we started if we are killed: a small shell, which is told the process groups that run, and ends them
    when its pipe closes. (A parent-death signal would come when the thread that started the server ends, and would reach only
    the first process of a server that starts others.)"""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()

    def watch(self, group: int) -> None:
        with self._lock:
            if self._process is None:
                words, unseen = ["/bin/sh", str(Path(__file__).with_name("watchdog.sh"))], subprocess.DEVNULL
                self._process = subprocess.Popen(
                    words, stdin=subprocess.PIPE, stdout=unseen, stderr=unseen, start_new_session=True, cwd="/"
                )
            self._tell(f"+ {group}\n")

    def forget(self, group: int) -> None:
        with self._lock:
            self._tell(f"- {group}\n")

    def close(self) -> None:
        """It ends what is left, if anything is."""
        with self._lock:
            process, self._process = self._process, None
        if process is not None:
            process.communicate()

    def _tell(self, line: str) -> None:
        if self._process is not None and self._process.stdin is not None:
            with contextlib.suppress(OSError):
                self._process.stdin.write(line.encode())
                self._process.stdin.flush()


class Process:
    """A server's process. `stderr` is the end of what it wrote there; `why` is what ended the connection."""

    def __init__(self, child: asyncio.subprocess.Process) -> None:
        assert child.stdin is not None and child.stdout is not None and child.stderr is not None  # noqa: PT018  all are pipes
        self.child, self.input, self.output, self.errors = child, child.stdin, child.stdout, child.stderr
        self.stderr = b""
        self.noise = ""  # the first line on its standard output that is not a message
        self.why = ""
        self.stopping = False  # we are stopping it
        self.is_lost = False

    def has_died(self) -> bool:
        """Asks the system: asyncio learns of it later, and what is sent until then is lost."""
        if self.child.returncode is not None:
            return True
        try:
            return os.waitid(os.P_PID, self.child.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
        except ChildProcessError:  # it was reaped in the meantime
            return True

    def tail(self) -> str:
        """The last lines of its standard error, which often say what is wrong."""
        lines = self.stderr.decode("utf-8", "replace").strip().splitlines()
        return "\n".join(lines[-5:])


def environment(settings: McpServerConfig) -> dict[str, str]:
    """Few of our variables, as a server is a foreign program. The marker says that it cannot answer for the user."""
    ours = {name: value for name in _INHERITED if (value := os.environ.get(name)) is not None}
    return {**ours, **settings.env, MARKER: "1"}


@contextlib.asynccontextmanager
async def stdio_transport(
    settings: McpServerConfig,
    *,
    watchdog: Watchdog,
    started: Callable[[Process], None],
    ended: Callable[[], None],
    launch: Launch | None = None,
) -> AsyncIterator[Any]:
    """The pair of streams that the SDK's client works on. `ended` is called when the server's output closes."""
    # A child that is not quite started cannot be cancelled: asyncio would wait for its pipes without end.
    with anyio.CancelScope(shield=True):
        process = await _to_its_end(_start(settings, launch), undo=stop)
    watchdog.watch(process.child.pid)
    started(process)
    incoming, read_stream = anyio.create_memory_object_stream[Any](64)
    write_stream, outgoing = anyio.create_memory_object_stream[Any](64)
    reading = _read(process, incoming, settings.max_message_bytes, ended)
    tasks = list(map(asyncio.ensure_future, (reading, _write(process, outgoing), _keep_stderr(process))))

    async def clean_up() -> None:
        write_stream.close()
        await asyncio.wait(tasks[1:2], timeout=0.5)
        await stop(process)
        watchdog.forget(process.child.pid)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for stream in (incoming, read_stream, write_stream, outgoing):
            stream.close()

    try:
        yield read_stream, write_stream
    finally:
        process.stopping = True
        with anyio.CancelScope(shield=True):
            await _to_its_end(clean_up())


async def _to_its_end(work: Coroutine[Any, Any, T], undo: Callable[[T], Awaitable[object]] | None = None) -> T:
    """Finish even if cancelled, then undo it and raise: a half-started or half-stopped server must not be left behind."""
    task, cancelled = asyncio.ensure_future(work), False
    while not task.done():
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError:
            cancelled = True
    result = task.result()
    if cancelled:
        if undo is not None:
            await undo(result)
        raise asyncio.CancelledError
    return result


async def _start(settings: McpServerConfig, launch: Launch | None) -> Process:
    env = environment(settings)
    words = [settings.command, *settings.args]
    if launch is not None and _is_there(settings, env):  # otherwise the error is that of the program itself
        words = launch(settings.command, settings.args, settings.cwd)
    how: Any = dict.fromkeys(("stdin", "stdout", "stderr"), asyncio.subprocess.PIPE)
    how |= {"env": env, "cwd": settings.cwd, "limit": _PIECE_BYTES}
    try:
        child = await asyncio.create_subprocess_exec(*words, start_new_session=True, **how)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or str(error)
        if settings.cwd and not os.path.isdir(settings.cwd):  # noqa: ASYNC240  one look, on the way to an error
            why = f"there is no folder {settings.cwd}, which its cwd names"
        raise ToolUnavailable(f"{settings.command} cannot be started: {why}") from None
    return Process(child)


def _is_there(settings: McpServerConfig, env: dict[str, str]) -> bool:
    program = settings.command
    if "/" in program:
        program = os.path.join(settings.cwd or "", program)
    return shutil.which(program, path=env.get("PATH")) is not None and os.path.isdir(settings.cwd or ".")


async def _read(process: Process, incoming: Any, max_bytes: int, ended: Callable[[], None]) -> None:
    """Every line is a message. One that is too long ends the connection, as it is unknown which call it answers."""
    pieces: list[bytes] = []
    size = 0
    try:
        while data := await process.output.read(_PIECE_BYTES):
            *lines, rest = data.split(b"\n")
            for line in lines:
                whole, pieces, size = b"".join([*pieces, line]), [], 0
                if not whole.strip():
                    continue
                message = _parsed(whole)
                if isinstance(message, Exception):
                    process.noise = process.noise or whole[:_HEAD_BYTES].decode("utf-8", "replace").strip()
                try:
                    incoming.send_nowait(message)
                except anyio.WouldBlock:
                    await incoming.send(message)
            size += len(rest)
            if rest:
                pieces.append(rest)
            if size > max_bytes:
                process.why = f"it sent a message of more than {max_bytes:,} bytes"
                return
        # A server's output closes a moment before its last error output and its exit code are known.
        child, errors = process.child, process.errors
        await _until(lambda: process.stopping or (child.returncode is not None and errors.at_eof()), _EXIT_CODE_SECONDS)
    except anyio.BrokenResourceError:  # nobody listens any more: we are about to stop it
        process.stopping = True
    except Exception as error:  # noqa: BLE001  the stream may close in several ways, and each is the end
        process.why = process.why or f"{type(error).__name__}: {error}"
    finally:
        process.is_lost = not process.stopping
        incoming.close()
        ended()


def _for_session(message: Any) -> Any:
    return messages.SessionMessage(mcp_types.jsonrpc_message_adapter.validate_python(message, by_name=False))


def _parsed(line: bytes) -> Any:
    """A message for the session, or the error of a line that is not one."""
    try:
        return _for_session(pydantic_core.from_json(line))
    except ValueError as error:
        if (cut := without_depths(line)) is not None:
            return _parsed(cut)
        # Servers print to standard output by mistake, which is ignored; but a broken answer ends its call.
        answer_id = _ANSWER_ID.search(line[:_HEAD_BYTES])
        if answer_id is None:
            return error
        why = {"code": _UNREADABLE, "message": "the server's answer cannot be read as JSON-RPC"}
        return _for_session({"jsonrpc": "2.0", "id": int(answer_id[1]), "error": why})


async def _write(process: Process, outgoing: Any) -> None:
    """Messages that wait are written together: a write costs more than a message."""
    with contextlib.suppress(OSError):
        async for message in outgoing:
            lines = [_line(message)]
            with contextlib.suppress(anyio.WouldBlock):
                while len(lines) < _MAX_PER_WRITE:
                    lines.append(_line(outgoing.receive_nowait()))
            process.input.write(b"".join(lines))
            await process.input.drain()


def _line(message: Any) -> bytes:
    text: str = message.message.model_dump_json(by_alias=True, exclude_unset=True)
    return text.encode() + b"\n"


async def _keep_stderr(process: Process) -> None:
    with contextlib.suppress(OSError):
        while data := await process.errors.read(_PIECE_BYTES):
            process.stderr = (process.stderr + data)[-_STDERR_BYTES:]


async def stop(process: Process) -> None:
    """As the protocol says: close its input, wait, SIGTERM, SIGKILL; including everything that it has started."""
    child = process.child
    process.input.close()
    for wait_seconds, sign in ((_EXIT_SECONDS, signal.SIGTERM), (_TERM_SECONDS, signal.SIGKILL)):
        if await _until(lambda: child.returncode is not None, wait_seconds):  # `wait` waits for the pipes too
            break
        _signal_group(child.pid, sign)
    # Its children may live on in its group, whose number stays reserved while one of them lives.
    _signal_group(child.pid, signal.SIGKILL)
    await _until(lambda: child.returncode is not None, _TERM_SECONDS)
    transport = getattr(child, "_transport", None)
    if transport is not None:  # a grandchild may hold the pipes open
        transport.close()


async def _until(is_over: Callable[[], bool], seconds: float) -> bool:
    end = asyncio.get_running_loop().time() + seconds
    while not is_over():
        if asyncio.get_running_loop().time() > end:
            return False
        await asyncio.sleep(0.005)
    return True


def _signal_group(group: int, sign: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, sign)


def without_depths(message: bytes) -> bytes | None:
    """The JSON text with `null` in place of everything below a certain depth; None if nothing is that deep."""
    kept: list[bytes] = []
    depth = begin = 0
    for token in _TOKENS.finditer(message):
        sign = token[0]
        if sign in (b"{", b"["):
            depth += 1
            if depth == _MAX_DEPTH + 1:
                kept += [message[begin : token.start()], b"null"]
        elif sign in (b"}", b"]"):
            if depth == _MAX_DEPTH + 1:
                begin = token.end()
            depth -= 1
    return b"".join([*kept, message[begin:]]) if kept and depth <= _MAX_DEPTH else None
