"""An environment whose commands run in a live bash: what all backends with a shell have in common.

A backend implements `connect`: it returns a `DirectLink` on this machine, or a `Session` over whatever starts a Python
elsewhere. The last state of a shell that was lost is passed to the next one.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import socket
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar

from ..config.paths import state_dir
from ..errors import HandrailError
from .base import (
    CANCELLED_EXIT_CODE,
    CommandResult,
    Coverage,
    LeftRunning,
    RestartReason,
    ShellRestart,
    ShellState,
)
from .command_input import check_variables, encoded, with_variables
from .errors import (
    EnvironmentBusy,
    EnvironmentClosed,
    EnvironmentLost,
    EnvironmentStartError,
    NoSuchDirectory,
)
from .handles import JobProcess, LeftProcess, RemoteFiles
from .held_calls import HeldCalls
from .output import OutputSink
from .transport.link import BegunCommand, Command, DirectLink, Ended, Fatal, Link, Lost

if TYPE_CHECKING:
    from ..protocols import Files
    from ..types import CancelToken
    from .shell_host.wire import Packet
    from .transport.channel import Transport
    from .transport.tunnel import Tunnel

T = TypeVar("T")
_LOCK_POLL_SECONDS, _CLOSE_SECONDS = 0.05, 15.0


class LiveEnvironment(ABC):
    """See `base.Environment` for what the methods promise. A backend implements `connect`, and may override `disconnected`.

    `effects` are settings of the journal of what commands change (`max_copy`, `durable`, `on_crash`); None for no journal.
    """

    name: str = "live"
    isolated = reaches_host = persistent = False
    has_pty = True
    can_tunnel = False  # whether its commands can be given a way to a proxy of this machine

    def __init__(self) -> None:
        self.effects: Mapping[str, Any] | None = {}
        self.held = HeldCalls()
        self.way_out: Callable[[Transport], Tunnel] | None = None  # for `connect`
        self._running = threading.Lock()
        self._connecting = threading.Lock()
        self._link: Link | None = None
        self._state: bytes | None = None
        self._begun: BegunCommand | None = None
        self._was_lost = self._has_lost_files = False
        self._is_closed = False
        self._cwd = ""
        self._process = os.getpid()

    # For backends

    @abstractmethod
    def connect(self, state: bytes | None) -> Link:
        """Open a link to a new shell, with the state of the previous one if there was one. Raises Fatal, Lost or a ToolError.
        If the files are gone with the previous shell, call `files_lost` and ignore the state."""

    def files_lost(self) -> None:
        """For `connect`: report that the files of the previous shell are gone, and drop its state."""
        self._has_lost_files, self._state = True, None

    def effects_elsewhere(self) -> Packet | None:
        """For `connect`: settings of a journal that lies beside the shell, by the name of this machine's state folder."""
        if self.effects is None:
            return None
        identity = f"{socket.gethostname()} {state_dir()}"
        return {**self.effects, "name": hashlib.sha256(identity.encode()).hexdigest()[:12]}

    def how_far(self, call: int) -> str:  # noqa: ARG002  one with a journal here knows
        """What became of the changes of a call in which the environment was lost."""
        return "how far it got is unknown"

    def disconnected(self) -> None:  # noqa: B027  overriding it is optional
        """Called once, after closing: remove what the backend has made."""

    def forked(self) -> None:  # noqa: B027  overriding it is optional
        """In a forked child: forget what the backend has made, which is the parent's."""

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def start(self) -> None:
        self._connected()

    @property
    def is_connected(self) -> bool:
        """Whether its shell has started: then its files can be read at once."""
        return self._link is not None

    @property
    def is_at_hand(self) -> bool:
        """Whether its shell is on this machine, has started, and waits for a command."""
        return isinstance(self._link, DirectLink) and not self._running.locked()

    @property
    def cwd(self) -> str:
        self._connected()
        return self._cwd

    @property
    def coverage(self) -> Coverage:
        link = self._link
        uncovered = (link if link is not None and self._process == os.getpid() else self._connected()).uncovered
        return Coverage("none", uncovered) if uncovered else Coverage("full")

    def call_effects(self, operation: str, **arguments: object) -> dict[str, Any]:
        return self._call("call_effects", operation=operation, arguments=arguments)[0]

    @property
    def files(self) -> Files:
        return self._remote_files()

    def _remote_files(self, *limits: Any) -> RemoteFiles:
        return RemoteFiles(self._call, lambda: self.cwd, *limits)

    def execute(  # noqa: PLR0913  one per option of a command
        self,
        command: str,
        *,
        cwd: str | None = None,
        timeout: float | None = None,
        cancel: CancelToken | None = None,
        on_output: Callable[[bytes], None] | None = None,
        stdin: bytes | None = None,
        env: Mapping[str, str] | None = None,
        output: OutputSink | None = None,
        call: int = 0,
        separate: bool = False,
    ) -> CommandResult:
        sink = OutputSink() if output is None else output
        if on_output is not None:
            sink.listener = on_output
        text = with_variables(encoded(command), env)
        self._check_process()
        self._wait_for_turn(timeout, cancel)
        began = time.perf_counter()
        try:
            if cancel is not None and cancel.cancelled:
                return CommandResult(0, CANCELLED_EXIT_CODE, sink.output(), self._cwd, 0.0, cancelled=True)
            link = self._connected()
            given = Command(text, self._place(cwd), stdin, timeout, call, separate, self.held.is_tried(call))
            ended = self._waited(link, call, sink, lambda: link.run(given, sink, cancel))
        finally:
            self._running.release()
        return self._result(ended, sink, time.perf_counter() - began, cwd)

    def begin(
        self, command: str, *, cwd: str | None, cancel: CancelToken, output: OutputSink, call: int = 0, **more: Any
    ) -> BegunCommand | None:
        """What `execute` does until the command runs, without waiting. None if that is not possible now."""
        link = self._link
        if not isinstance(link, DirectLink) or self._process != os.getpid() or cancel.cancelled or output.listener:
            return None
        given = Command(encoded(command), self._place(cwd), call=call, is_tried=self.held.is_tried(call), **more)
        if not self._running.acquire(blocking=False):
            return None
        run = None
        try:
            run = link.shell.begin(given, output.read_from)
        finally:
            if run is None:
                self._running.release()
        self._begun = None if run is None else BegunCommand(link, run, output, cwd, threading.get_ident())
        return self._begun

    def end_begun(self, begun: BegunCommand, *, waits: bool) -> CommandResult | None:
        """The result of a command that was begun so. None if it is not to be waited for, and would have to be."""
        link, run, sink, cwd, _ = begun
        if self._begun is not begun:
            raise EnvironmentClosed(f"this {self.name} environment was closed while the command ran")
        is_over = True
        try:
            work = link.shell.finish if waits else link.shell.end
            ended = self._waited(link, run.command.call, sink, lambda: work(run))
            is_over = ended is not None
        finally:
            if is_over:
                self._begun = None
                self._running.release()
        return None if ended is None else self._result(ended, sink, time.monotonic() - run.began, cwd)

    def _place(self, cwd: str | None) -> bytes:
        return b"" if cwd is None else encoded(cwd if cwd.startswith("~") else os.path.join(self._cwd, cwd))

    def background(
        self,
        command: str,
        *,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        survives: bool = False,
        call: int = 0,
    ) -> JobProcess:
        return self._start_job(command, cwd, env, survives, None, call)

    def open_pty(
        self,
        command: str,
        *,
        rows: int = 24,
        columns: int = 80,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        survives: bool = False,
        call: int = 0,
    ) -> JobProcess:
        variables = {"TERM": "xterm-256color", **(env or {})}
        return self._start_job(command, cwd, variables, survives, [rows, columns], call)

    def processes(self) -> list[JobProcess]:
        found = []
        for identity in self._call("jobs")[0]["ids"]:
            try:
                found.append(JobProcess(self._call, self._call("job_poll", id=identity)[0]))
            except FileNotFoundError:
                continue  # it has just been removed
        return found

    def left_running(self) -> tuple[LeftRunning, ...]:
        is_idle = self._running.acquire(blocking=False)
        try:
            return tuple(map(_left, self._call("left", is_idle=is_idle)[0]["left"]))
        finally:
            if is_idle:
                self._running.release()

    def adopt(self, left: LeftRunning) -> LeftProcess:
        return LeftProcess(self._call, left)

    def upload(self, host_path: str, path: str) -> None:
        self._remote_files().upload(host_path, path)

    def download(self, path: str, host_path: str) -> None:
        self._remote_files().download(path, host_path)

    def close(self) -> None:
        self._check_process()
        with self._connecting:
            was_closed, self._is_closed = self._is_closed, True
            link, self._link = self._link, None
        if link is not None:
            self._end(link)
        if not was_closed:
            self.disconnected()

    def _end(self, link: Link) -> None:
        link.interrupt()
        begun = self._begun
        if begun is not None and begun.thread == threading.get_ident():  # the loop that waits for its end waits for us
            with contextlib.suppress(HandrailError):
                self.end_begun(begun, waits=True)
        is_ours = self._running.acquire(timeout=_CLOSE_SECONDS)
        try:
            link.close()
        finally:
            if is_ours:
                self._running.release()

    def _wait_for_turn(self, timeout: float | None, cancel: CancelToken | None) -> None:
        if self._running.acquire(blocking=False):
            return
        end = None if timeout is None else time.monotonic() + timeout
        while not self._running.acquire(timeout=_LOCK_POLL_SECONDS):
            if cancel is not None:
                cancel.raise_if_cancelled()
            if end is not None and time.monotonic() >= end:
                raise EnvironmentBusy(
                    f"another command of this environment is still running after {timeout:g} s; "
                    "wait for it, cancel it, or run long commands in the background"
                )

    def _connected(self) -> Link:
        self._check_process()
        if self._link is not None:
            return self._link
        with self._connecting:
            self._check_open()
            if self._link is None:
                try:
                    self._link = self.connect(self._state)
                except (Fatal, Lost) as error:
                    raise EnvironmentStartError(
                        f"no shell could be started in the {self.name} environment: {error}"
                    ) from None
                self._cwd = self._link.cwd
            return self._link

    def _check_open(self) -> None:
        if self._is_closed:
            raise EnvironmentClosed(f"this {self.name} environment was closed; open a new one")

    def _check_process(self) -> None:
        """After a fork the shell is the parent's: this process gets its own."""
        if self._process == os.getpid():
            return
        self._running, self._connecting, self._process = threading.Lock(), threading.Lock(), os.getpid()
        link, self._link = self._link, None
        if link is not None:
            link.close_inherited()
        self.forked()

    def _waited(self, link: Link, call: int, sink: OutputSink, wait: Callable[[], T]) -> T:
        try:
            return wait()
        except (Fatal, Lost) as error:
            self._lose(link)
            raise EnvironmentLost(
                f"the {self.name} environment was lost while the command ran: {error}; {self.how_far(call)}. "
                "The next command starts it again",
                output=sink.output().head.decode("utf-8", "replace"),
            ) from None

    def _call(self, op: str, data: bytes = b"", **details: object) -> tuple[Packet, bytes]:
        link = self._connected()
        try:
            return link.call(op, data, **details)
        except (Fatal, Lost) as error:
            self._lose(link)
            raise EnvironmentLost(f"the {self.name} environment was lost: {error}; try again to restart it") from None

    def _lose(self, link: Link) -> None:
        with self._connecting:
            if self._link is not link:
                return
            self._link, self._state, self._was_lost = None, link.state, True
        link.close()

    def _result(self, ended: Ended, sink: OutputSink, seconds: float, cwd: str | None) -> CommandResult:
        if ended.code is None:
            # The last part of `bash: line 1: cd: /x: No such file or directory`.
            why = sink.output().head.decode("utf-8", "replace").strip().rpartition(": ")[2] or "it is not a directory"
            raise NoSuchDirectory(f"cannot enter the working directory {cwd}: {why}; the command did not run")
        self._cwd = ended.cwd
        restarted = None
        if ended.restarted:
            restarted = ShellRestart(RestartReason(ended.restarted), ShellState(ended.state))
        elif self._was_lost:
            state = ShellState.OLDER if self._state else ShellState.CLEAN
            restarted = ShellRestart(RestartReason.LOST, ShellState.EMPTY if self._has_lost_files else state)
        self._was_lost = self._has_lost_files = False
        return CommandResult(
            ended.number,
            ended.code or 0,
            sink.output(),
            ended.cwd,
            seconds,
            ended.why == "timeout",
            ended.why == "cancelled",
            restarted,
            tuple(map(_left, ended.left)) if ended.left else (),
            ended.is_changed,
            ended.stderr,
        )

    def _start_job(
        self,
        command: str,
        cwd: str | None,
        env: Mapping[str, str] | None,
        survives: bool,
        pty: list[int] | None,
        call: int,
    ) -> JobProcess:
        if survives and not self.persistent:
            raise EnvironmentStartError(
                f"a process cannot outlive the {self.name} environment that it runs in; start it without survives"
            )
        check_variables(env or {})
        variables = dict(env or {})
        details = {"command": command, "cwd": cwd or "", "extra_env": variables, "survives": survives, "pty": pty}
        try:
            known, _ = self._call("job_start", encoded(command), id=os.urandom(6).hex(), call=call, **details)
        except OSError as error:
            if isinstance(error, EnvironmentLost):
                raise
            if isinstance(error, FileNotFoundError | NotADirectoryError) and cwd:
                raise NoSuchDirectory(f"cannot enter the working directory {cwd}; nothing was started") from None
            raise EnvironmentStartError(
                f"the background process could not be started: {error.strerror or error}"
            ) from None
        return JobProcess(self._call, known)


def _left(found: Packet) -> LeftRunning:
    return LeftRunning(found["pid"], found["start"], found["command"], found["started_at"], found["number"])
