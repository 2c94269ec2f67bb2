"""What an environment is: a place where a task's commands run, with the state of a shell that a person would keep open.

A backend is one file with one class that fits `Environment`. Most are a `LiveEnvironment` (live.py) that knows how to start a
Python somewhere; see session.py. Nobody asks an environment for its name to decide something, but for what it can do.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from ..protocols import Files
    from ..types import CancelToken
    from .output import Output, OutputSink

TIMEOUT_EXIT_CODE = 124
CANCELLED_EXIT_CODE = 130


class RestartReason(Enum):
    """Why the shell is another one than before."""

    ENDED = "ended"  # the command ended it: `exit`, `exec`, `set -e`, a signal
    TIMEOUT = "timeout"
    CANCELLED = "cancelled"
    SUPERVISOR = "supervisor"  # the process that looks after the shell was killed
    LOST = "lost"  # the connection, the container or the host went away


class ShellState(Enum):
    """What the new shell began with."""

    KEPT = "kept"  # everything but job table, open descriptors and limits
    SNAPSHOT = "snapshot"  # the same as of before the command
    OLDER = "older"  # the same as of some command before that
    CLEAN = "clean"  # nothing: variables, functions, aliases and the working directory are those of the start
    EMPTY = "empty"  # nothing, and the files are gone too: it is another container


class ShellRestart(NamedTuple):
    reason: RestartReason
    state: ShellState

    def __str__(self) -> str:
        """For the model, that has to know what it can still rely on."""
        return f"{_REASONS[self.reason]}; {_STATES[self.state]}"


class LeftRunning(NamedTuple):
    """A process that a command left behind on purpose (`server &`). `pid` and `start` name it for good."""

    pid: int
    start: int
    command_line: str
    started_at: float
    command_id: int


class CommandResult(NamedTuple):
    """How a command ended. `command_id` counts the commands of a shell, and begins again when the environment was lost."""

    command_id: int
    exit_code: int
    output: Output
    cwd: str
    seconds: float
    timed_out: bool = False
    cancelled: bool = False
    restarted: ShellRestart | None = None
    left_running: tuple[LeftRunning, ...] = ()


class ProcessState(Enum):
    RUNNING = "running"
    ENDED = "ended"
    LOST = "lost"  # nobody knows how it ended: the machine restarted, or the process that minded it was killed


class ProcessStatus(NamedTuple):
    state: ProcessState
    exit_code: int | None = None
    ended_at: float | None = None


class LogPiece(NamedTuple):
    """Output from `offset` on. `offset` is later than was asked for when the log no longer has the rest; `end` is its end."""

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
        """Whether it goes on when the environment is closed, or the runtime ends."""

    def poll(self) -> ProcessStatus: ...

    def read(self, offset: int = 0, *, max_bytes: int = 1 << 16, timeout: float = 0.0) -> LogPiece:
        """What it printed, from `offset` on. Waits up to `timeout` seconds for the first byte, or for the process's end."""

    def wait(self, timeout: float | None = None, *, cancel: CancelToken | None = None) -> ProcessStatus:
        """Until it has ended, `timeout` seconds have passed, or `cancel` says so: its status then."""

    def kill(self, *, grace: float = 2.0) -> ProcessStatus:
        """End it with all that it started: SIGTERM, and after `grace` seconds SIGKILL."""

    def write(self, data: bytes) -> None:
        """Give it input. Raises InputRefused when it takes none."""

    def close_stdin(self) -> None:
        """Let it read an end of input; on a terminal, the character for it."""

    def forget(self) -> None:
        """Remove its log and all that is known of it. Kills it first if it runs."""


class PtyProcess(BackgroundProcess, Protocol):
    """One that runs on a terminal of its own. What it prints has the terminal's control sequences in it."""

    def resize(self, rows: int, columns: int) -> None: ...

    def waits_for_input(self) -> bool:
        """Whether the program in the foreground reads the terminal and has nothing to read."""

    def reader(self) -> tuple[str, bool]:
        """The name of the program in the foreground, and whether it hides what is typed: it asks for a password."""


class Environment(Protocol):
    """Sync, and safe to use from several threads: commands of one environment run one after the other, all else beside them.

    Everything raised is a ToolError: see errors.py.
    """

    @property
    def name(self) -> str:
        """Of the backend, for people."""

    @property
    def isolated(self) -> bool:
        """What a command breaks stays inside: it reaches no process and no system file of this machine."""

    @property
    def reaches_host(self) -> bool:
        """Commands can change files of this machine: all of them, or a mounted work tree."""

    @property
    def persistent(self) -> bool:
        """Files, and background processes that were started to live on, outlast `close`."""

    @property
    def has_pty(self) -> bool: ...

    @property
    def cwd(self) -> str:
        """Where the shell is."""

    @property
    def files(self) -> Files:
        """The environment's file system; relative paths begin where the shell is."""

    def start(self) -> None:
        """Have the shell ready. Starting what is started does nothing; `execute` starts what is not."""

    def execute(
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
    ) -> CommandResult:
        """Run a command in the shell and wait for it.

        `cwd` and `env` are for this command alone; the shell goes back afterwards. `stdin` is what it reads: nothing if None.
        Output is stdout and stderr as they come. `on_output` gets each piece of it as it comes, in this thread; when it
        raises, the command is abandoned. `output` says how much of it is kept in memory.
        """

    def background(
        self, command: str, *, cwd: str | None = None, env: Mapping[str, str] | None = None, survives: bool = False
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
    ) -> PtyProcess:
        """The same on a terminal."""

    def processes(self) -> Sequence[BackgroundProcess]:
        """All background processes that are known here, those of an earlier runtime too."""

    def left_running(self) -> Sequence[LeftRunning]:
        """What earlier commands left running and still runs."""

    def adopt(self, left: LeftRunning) -> BackgroundProcess:
        """The same as a background process: it can be polled, read and killed, but has no input."""

    def upload(self, host_path: str, path: str) -> None:
        """Copy a file of this machine into the environment, with its mode."""

    def download(self, path: str, host_path: str) -> None:
        """Copy a file of the environment to this machine."""

    def close(self) -> None:
        """End the shell and all that runs in it, except what was started to live on. Closing twice is the same as once."""


_REASONS = {
    RestartReason.ENDED: "the command ended the shell, and a new one was started",
    RestartReason.TIMEOUT: "the time limit ended the command, and a new shell was started",
    RestartReason.CANCELLED: "the command was cancelled, and a new shell was started",
    RestartReason.SUPERVISOR: "the process that looks after the shell was killed, and a new shell was started",
    RestartReason.LOST: "the environment was lost, and a new shell was started",
}
_STATES = {
    ShellState.KEPT: "variables, functions, aliases and the working directory were kept; the list of jobs was not",
    ShellState.SNAPSHOT: "variables, functions, aliases and the working directory are as before the command",
    ShellState.OLDER: "variables, functions, aliases and the working directory are as last saved; "
    "what the commands just before changed in them may be lost, so look before you count on it",
    ShellState.CLEAN: "variables, functions, aliases and the working directory are those of the beginning",
    ShellState.EMPTY: "everything is as in the beginning, and files are gone unless they are on a mount",
}
