"""What an environment is: a place where a task's commands run in a shell that keeps its state.

A backend is one file with one class that fits `Environment`. Most are a `LiveEnvironment` that knows how to start a Python
somewhere; see transport/session.py. Decide by what an environment can do, not by its name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import Any, NamedTuple, Protocol

from ..protocols import Files
from ..types import CancelToken
from .output import Output, OutputSink

TIMEOUT_EXIT_CODE, CANCELLED_EXIT_CODE = 124, 130


class RestartReason(Enum):
    """Why the shell is another one than before."""

    ENDED = "ended"  # the command ended it: `exit`, `exec`, `set -e`, a signal
    TIMEOUT = "timeout"
    CANCELLED = "cancelled"
    SUPERVISOR = "supervisor"  # the process that looks after the shell was killed
    LOST = "lost"  # the connection, the container or the host went away


class ShellState(Enum):
    """What the new shell started with."""

    KEPT = "kept"  # everything but job table, open descriptors and limits
    SNAPSHOT = "snapshot"  # the same as of before the command
    OLDER = "older"  # the same as of some command before that
    CLEAN = "clean"  # nothing: variables, functions, aliases and the working directory are those of the start
    EMPTY = "empty"  # nothing, and the files are gone too: it is another container


class ShellRestart(NamedTuple):
    reason: RestartReason
    state: ShellState

    def __str__(self) -> str:
        """For the model, which has to know what it can still rely on."""
        return f"{_REASONS[self.reason]}; {_STATES[self.state]}"


class LeftRunning(NamedTuple):
    """A process that a command left running on purpose (`server &`). `pid` and `start` identify it uniquely."""

    pid: int
    start: int
    command_line: str
    started_at: float
    command_id: int


class Coverage(NamedTuple):
    """How what a call changes is written to the journal, so that it can be undone: "full", "file tools only" or "none".

    `reason` says why it is not full.
    """

    how: str
    reason: str = ""


class CommandResult(NamedTuple):
    """How a command ended. `command_id` counts the commands of a shell, and starts again if the environment was lost.

    `changed` says whether something was written to the journal for its call. `stderr` is that of a command whose stderr was kept
    apart; of more than 1 MB the end.
    """

    command_id: int
    exit_code: int
    output: Output
    cwd: str
    seconds: float
    timed_out: bool = False
    cancelled: bool = False
    restarted: ShellRestart | None = None
    left_running: tuple[LeftRunning, ...] = ()
    changed: bool = False
    stderr: bytes = b""


class ProcessState(Enum):
    RUNNING = "running"
    ENDED = "ended"
    LOST = "lost"  # how it ended is unknown: the machine rebooted, or its supervisor was killed


class ProcessStatus(NamedTuple):
    state: ProcessState
    exit_code: int | None = None
    ended_at: float | None = None


class LogPiece(NamedTuple):
    """Output from `offset` on. `offset` is later than requested if the log no longer has the rest; `end` is its end."""

    offset: int
    data: bytes
    end: int


class BackgroundProcess(Protocol):
    """A process that runs beside the shell's commands. `id` finds it again, also after a restart of the runtime."""

    @property
    def id(self) -> str: ...

    @property
    def pid(self) -> int: ...

    @property
    def command(self) -> str: ...

    @property
    def started_at(self) -> float: ...

    @property
    def has_pty(self) -> bool: ...

    @property
    def survives(self) -> bool:
        """Whether it keeps running when the environment is closed, or the runtime ends."""

    def poll(self) -> ProcessStatus: ...

    def read(self, offset: int = 0, *, max_bytes: int = 1 << 16, timeout: float = 0.0) -> LogPiece:
        """Its output from `offset` on. Waits up to `timeout` seconds for the first byte, or for the process's end."""

    def wait(self, timeout: float | None = None, *, cancel: CancelToken | None = None) -> ProcessStatus:
        """Wait until it has ended, `timeout` seconds have passed, or `cancel` is set. Returns its status then."""

    def kill(self, *, grace: float = 2.0) -> ProcessStatus:
        """End it with everything it started: SIGTERM, and after `grace` seconds SIGKILL."""

    def write(self, data: bytes) -> None:
        """Write to its input. Raises InputRefused if it takes none."""

    def close_stdin(self) -> None:
        """Close its input; on a terminal, send the end-of-input character."""

    def forget(self) -> None:
        """Remove its log and its status. Kills it first if it runs."""


class PtyProcess(BackgroundProcess, Protocol):
    """One that runs on its own terminal. Its output contains the terminal's control sequences."""

    def resize(self, rows: int, columns: int) -> None: ...

    def waits_for_input(self) -> bool:
        """Whether the program in the foreground reads the terminal and has nothing to read."""

    def reader(self) -> tuple[str, bool]:
        """The name of the program in the foreground, and whether it hides what is typed, as for a password."""


class Environment(Protocol):
    """Synchronous and thread-safe: commands of one environment run one after the other, everything else at the same time.

    Everything raised is a ToolError: see errors.py.
    """

    @property
    def name(self) -> str:
        """The backend's name, for display."""

    @property
    def isolated(self) -> bool:
        """What a command breaks stays inside: it reaches no process and no system file of this machine."""

    @property
    def reaches_host(self) -> bool:
        """Commands can change files of this machine: all of them, or a mounted work tree."""

    @property
    def persistent(self) -> bool:
        """Files, and background processes that were started to survive, outlast `close`."""

    @property
    def has_pty(self) -> bool: ...

    @property
    def coverage(self) -> Coverage:
        """How what a call changes is written to the journal. Starts the shell, which decides it."""

    @property
    def cwd(self) -> str:
        """Where the shell is."""

    @property
    def files(self) -> Files:
        """The environment's file system; relative paths start where the shell is."""

    def start(self) -> None:
        """Start the shell, unless it is started. `execute` does so by itself."""

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
        """Run a command in the shell and wait for it.

        `call` is the number of the call in whose name it runs: what it changes is written to the journal, unless it is 0.
        `cwd` and `env` are for this command only. `stdin` is what it reads: nothing if None. Output is stdout and stderr as they
        arrive. `on_output` gets each piece of it, in this thread; if it raises, the command is abandoned. `output` decides how
        much of it is kept in memory. `separate`: stderr is no part of it, and comes as `CommandResult.stderr`.
        """

    def background(
        self,
        command: str,
        *,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        survives: bool = False,
        call: int = 0,
    ) -> BackgroundProcess:
        """Start a process with a copy of the shell's state, and return. Its output goes to a log of bounded size."""

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
    ) -> PtyProcess:
        """The same on a terminal."""

    def processes(self) -> Sequence[BackgroundProcess]:
        """All background processes that are known there, including those of earlier runtimes."""

    def left_running(self) -> Sequence[LeftRunning]:
        """What earlier commands left running and is still running."""

    def adopt(self, left: LeftRunning) -> BackgroundProcess:
        """As a background process: it can be polled, read and killed, but has no input."""

    def call_effects(self, operation: str, **arguments: object) -> dict[str, Any]:
        """Perform an operation of shell_host/call_effects.py where the journal lies."""

    def upload(self, host_path: str, path: str) -> None:
        """Copy a file of this machine into the environment, with its mode."""

    def download(self, path: str, host_path: str) -> None:
        """Copy a file of the environment to this machine."""

    def close(self) -> None:
        """End the shell and everything in it, except what was started to survive. Closing twice is allowed."""


_REASONS = {
    RestartReason.ENDED: "the command ended the shell, and a new one was started",
    RestartReason.TIMEOUT: "the command timed out, and a new shell was started",
    RestartReason.CANCELLED: "the command was cancelled, and a new shell was started",
    RestartReason.SUPERVISOR: "the process that looks after the shell was killed, and a new shell was started",
    RestartReason.LOST: "the environment was lost, and a new shell was started",
}
_STATES = {
    ShellState.KEPT: "variables, functions, aliases and the working directory were kept; the list of jobs was not",
    ShellState.SNAPSHOT: "variables, functions, aliases and the working directory are as before the command",
    ShellState.OLDER: "variables, functions, aliases and the working directory are as last saved; "
    "changes by the last commands may be lost, so check before you rely on them",
    ShellState.CLEAN: "variables, functions, aliases and the working directory are those of the start",
    ShellState.EMPTY: "everything is as at the start, and files are gone unless they are on a mount",
}
