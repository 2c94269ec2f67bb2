"""One bash, from its start to its end, and the channels to it: that of a shell, and that of a background process.

What a bash reports about itself is the state that a new one starts with. A background process has a copy of the shell's, and is
on pipes or on a terminal. The shell supervisor prepares everything before it forks a job supervisor, which then only has to
spawn: a fresh fork is slow at first, because it has to copy the memory that it writes to.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import re
import shlex
import signal
import struct
import termios
import time
from typing import Any, Callable, NamedTuple, Sequence  # noqa: UP035  Python 3.8 knows no other place

from . import bash_template, proc, wire
from .jobs import JobFiles
from .syscall_filter import NOBODY, FilterRefused, Watch, install_and_send
from .wire import Packet

OLDEST = (4, 4)
ARGUMENTS = ("--norc", "--noprofile")
_PLACES = ("/bin", "/usr/bin", "/usr/local/bin", "/run/current-system/sw/bin")
_RESET = (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGINT, signal.SIGHUP, signal.SIGTERM, signal.SIGQUIT, signal.SIGCHLD)
_FORK_SECONDS = 2.0
# Options under which nothing would run in the restored shell.
_UNUSABLE = {b"set -o " + option for option in (b"noexec", b"onecmd", b"privileged", b"restricted")}
_OPPOSITES = {b"shopt -s": b"shopt -u", b"shopt -u": b"shopt -s", b"set -o": b"set +o", b"set +o": b"set -o"}
_ON = (b"shopt -s", b"set -o")
# Variables that bash sets itself; restoring them takes time or is refused.
OF_BASH = re.compile(
    rb"(?m)^declare -\S+ (?:BASH|BASHOPTS|BASH_ARGC|BASH_ARGV|BASH_ARGV0|BASH_COMMAND|BASH_LINENO|BASH_LOADABLES_PATH"
    rb"|BASH_MONOSECONDS|BASHPID|BASH_SOURCE|BASH_SUBSHELL|BASH_VERSINFO|BASH_VERSION|COMP_WORDBREAKS|EPOCHREALTIME"
    rb"|EPOCHSECONDS|EUID|FUNCNAME|GROUPS|HISTCMD|HOSTTYPE|LINENO|MACHTYPE|OSTYPE|PIPESTATUS|PPID|RANDOM|SECONDS|SHELLOPTS"
    rb"|SRANDOM|UID|_|__hr_kept)(?:=.*)?\n"
)
_ARGUMENTS = re.compile(rb"(?m)^set --.*\n")
_TRAP = re.compile(rb"(?m)^trap -- ")
_KINDS = (b"R", b"S", b"D", b"E")
_MIN_DESCRIPTOR = 16
_END = re.compile(rb"\n#end (-?\d+) ([0-9a-f]*)\n\Z")


class Files(NamedTuple):
    """Descriptors of the shell supervisor that each bash of a shell uses in turn."""

    text: int
    out: int
    restore: int
    farewell: int
    memo: int


class Bash:
    """A running bash. The supervisor holds both ends of most pipes, so that no reader sees an end too early."""

    def __init__(
        self, program: str, files: Files, *, cwd: str, env: dict[str, str], watch: Watch | None = None
    ) -> None:
        end, self.go = os.pipe()
        self.done_read, self.done = os.pipe()
        self.state, written = os.pipe()
        os.set_blocking(self.state, False)
        # bash begins with them under the same number, which must be out of the way of those that bash chooses itself.
        self.go_read = fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, _MIN_DESCRIPTOR)
        self._state_write = fcntl.fcntl(written, fcntl.F_DUPFD_CLOEXEC, _MIN_DESCRIPTOR)
        os.close(end)
        os.close(written)
        for end in (self.go, self.done):
            os.fchmod(end, wire.PIPE_MODE)
        self._reports = Reports()
        self.is_ready = False
        self.asked = 0  # states that were requested and have not arrived
        self.status: int | None = None  # as waitpid returns it, once it has ended
        numbers = {**files._asdict(), "go": self.go_read, "done": self.done, "state": self._state_write}
        channels = {name.upper(): path_of(fd) for name, fd in numbers.items()}
        channels.update(PAGE=path_of(watch.fds[0]) if watch is not None else "", NOBODY=str(NOBODY))
        os.ftruncate(files.farewell, 0)
        os.pwrite(files.farewell, bash_template.farewell(channels).encode(), 0)
        script = wire.memory_file("script", bash_template.loop(channels, self._state_write, self.go_read).encode())
        os.lseek(script, 0, os.SEEK_SET)
        actions = [
            (os.POSIX_SPAWN_DUP2, script, 0),
            (os.POSIX_SPAWN_DUP2, self.done, 1),
            (os.POSIX_SPAWN_OPEN, 2, "/dev/null", os.O_RDWR, 0),
            *((os.POSIX_SPAWN_DUP2, end, end) for end in (self._state_write, self.go_read)),
        ]
        self.pid = spawn(program, (), actions, cwd=cwd, env=env, watch=watch)
        os.close(script)
        stat = proc.stat_of(self.pid)
        self.start = stat.start if stat is not None else 0
        with contextlib.suppress(OSError):  # it has ended already
            proc.run_in_short_slices(self.pid)

    def ask(self, word: bytes) -> None:
        os.write(self.go, word)
        self.asked += word == bash_template.SNAPSHOT

    def reports(self) -> list[Report]:
        """The reports that have arrived since the last call."""
        found: list[Report] = []
        while True:
            try:
                data = os.read(self.state, 1 << 16)
            except BlockingIOError:
                return found
            found += self._reports.feed(data)

    def exit_code(self) -> int:
        """As a shell reports it: 128 plus the signal's number if a signal ended it."""
        status = self.status or 0
        return 128 + os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)

    def close(self) -> None:
        for fd in (self.go_read, self.go, self.done_read, self.done, self.state, self._state_write):
            os.close(fd)


def find_bash(env: dict[str, str]) -> str | None:
    for folder in (*env.get("PATH", "").split(":"), *_PLACES):
        program = os.path.join(folder, "bash")
        if folder.startswith("/") and os.access(program, os.X_OK) and os.path.isfile(program):
            return program
    return None


def path_of(fd: int) -> str:
    """Where another process opens this process's descriptor."""
    return f"/proc/{os.getpid()}/fd/{fd}"


def spawn(
    program: str,
    arguments: Sequence[str],
    actions: list[Any],
    *,
    cwd: str,
    env: dict[str, str],
    watch: Watch | None = None,
) -> int:
    """Start a bash in its own session, with default signal handling. `actions` make its descriptors, as for posix_spawn."""
    cwd = nearest(cwd)
    # bash takes over a PWD that names its directory, and so keeps a path through links as the user typed it.
    words, variables = ["bash", *ARGUMENTS, *arguments], {**env, "PWD": cwd}
    if watch is not None:
        return _spawn_watched(program, words, variables, actions, cwd, watch)
    # posix_spawn does not copy this process first. It takes no directory, so this process changes to it.
    os.chdir(cwd)
    try:
        return _with_retries(
            lambda: os.posix_spawn(
                program, words, variables, file_actions=actions, setsid=True, setsigdef=_RESET, setsigmask=[]
            )
        )
    finally:
        os.chdir("/")


def _spawn_watched(
    program: str, words: list[str], variables: dict[str, str], actions: list[Any], cwd: str, watch: Watch
) -> int:
    failure, theirs = os.pipe()  # closed by exec
    try:
        pid = fork()
        if pid == 0:
            try:
                os.chdir(cwd)
                os.setsid()
                for number in _RESET:
                    signal.signal(number, signal.SIG_DFL)
                signal.pthread_sigmask(signal.SIG_SETMASK, [])
                _apply(actions)
                install_and_send(watch)
                os.execve(program, words, variables)
            except OSError as error:
                os.write(theirs, b"%d" % (error.errno or errno.EIO))
            except FilterRefused:
                os.write(theirs, b"%d" % errno.ENOSYS)
            finally:
                os._exit(127)
        os.close(theirs)
        theirs = -1
        code = os.read(failure, 16)
    finally:
        for fd in (failure, theirs):
            if fd >= 0:
                os.close(fd)
    if code:
        raise OSError(int(code), os.strerror(int(code)))
    return pid


def _apply(actions: list[Any]) -> None:
    for action, *rest in actions:
        if action == os.POSIX_SPAWN_DUP2:
            os.dup2(*rest)
            os.set_inheritable(rest[1], True)  # also where both are the same
        else:
            target, path, flags, mode = rest
            fd = os.open(path, flags, mode)
            os.dup2(fd, target)
            os.close(fd)


def fork() -> int:
    return _with_retries(os.fork)


def _with_retries(start: Callable[[], int]) -> int:
    """Retry for a while: a fork bomb that is being ended can fill the process table."""
    end = time.monotonic() + _FORK_SECONDS
    while True:
        try:
            return start()
        except BlockingIOError:
            if time.monotonic() > end:
                raise
            time.sleep(0.01)


def version_of(report: Report) -> tuple[int, ...]:
    """`5.2.15(1)-release` as numbers to compare."""
    numbers: list[Any] = report.head.split(b"(")[0].split(b".")
    return tuple(int(number) for number in numbers if number.isdigit())


class Child(NamedTuple):
    """Everything that a job supervisor needs. `input` and `output` are our ends, which do not block."""

    job: Packet
    folder: JobFiles
    input: int
    output: int
    theirs: tuple[int, ...]
    files: tuple[int, ...]  # where the process reads its state and its command
    words: str
    actions: list[Any]

    def spawn(self, watch: Watch | None) -> int:
        job = self.job
        words = ("-c", self.words, "bash")
        pid = spawn(job["program"], words, self.actions, cwd=job["cwd"], env=job["env"], watch=watch)
        for fd in self.theirs:
            os.close(fd)
        return pid

    @property
    def kept(self) -> tuple[int, ...]:
        """The descriptors that the job supervisor keeps."""
        folder = self.folder
        return (folder.control, folder.status, *folder.log, self.input, self.output, *self.files)

    def close(self) -> None:
        """Close what `prepare` opened."""
        for fd in (self.input, self.output, *self.theirs, *self.files):
            os.close(fd)


def prepare(job: Packet, state: bytes, text: int, folder: JobFiles) -> Child:
    """`text` is a memory file with the command. Raises OSError; nothing is left open in that case."""
    job["cwd"] = _directory(job["cwd"], job["shell_cwd"])
    with contextlib.ExitStack() as undo:

        def kept(fd: int) -> int:
            undo.callback(os.close, fd)
            return fd

        extra = "".join(f"\ncommand declare -x {name}={shlex.quote(value)}" for name, value in job["extra_env"].items())
        restore = state + os.fsencode(extra) + b"\n"
        files = (kept(wire.memory_file("restore", restore)), kept(os.dup(text)))
        actions: list[Any]
        theirs: tuple[int, ...]
        if job["pty"] is not None:
            ours_in, terminal = map(kept, os.openpty())
            ours_out = kept(os.dup(ours_in))
            resize(ours_in, *job["pty"])
            # The first terminal that a session leader opens becomes its controlling terminal.
            actions = [(os.POSIX_SPAWN_OPEN, fd, os.ttyname(terminal), os.O_RDWR, 0) for fd in (0, 1, 2)]
            theirs = (terminal,)
        else:
            read, ours_in = map(kept, os.pipe())
            ours_out, write = map(kept, os.pipe())
            actions = [(os.POSIX_SPAWN_DUP2, end, fd) for end, fd in ((read, 0), (write, 1), (write, 2))]
            theirs = (read, write)
        os.set_blocking(ours_in, False)
        os.set_blocking(ours_out, False)
        # The parent of the new bash is the job supervisor, which has them under the same numbers.
        words = bash_template.job(*(f"/proc/$PPID/fd/{fd}" for fd in files))
        undo.pop_all()
    return Child(job, folder, ours_in, ours_out, theirs, files, words, actions)


def resize(terminal: int, rows: int, columns: int) -> None:
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


def _directory(requested: str, shells: str) -> str:
    """The directory to start in: the requested one, or the shell's."""
    if not requested:
        return shells
    directory = os.path.join(shells, os.path.expanduser(requested))
    os.stat(os.path.join(directory, "."))  # raises if it cannot be entered
    return directory


class Report(NamedTuple):
    """One report of bash on its STATE channel: see `bash_template`."""

    kind: bytes
    head: bytes
    variables: bytes
    options: bytes
    functions: bytes

    @property
    def is_plain(self) -> bool:
        """Whether there are no functions, aliases and traps, as of the state on request."""
        return not self.functions.strip() and not _TRAP.search(self.variables)


class Reports:
    """Splits the stream of the STATE channel into reports. What is incomplete when bash dies does not count."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> list[Report]:
        self._rest += data
        found = []
        while self._rest.count(b"\0") >= 4:
            head, variables, options, functions, self._rest = self._rest.split(b"\0", 4)
            if head[:1] in _KINDS:  # else a command wrote into the channel; the report that it spoiled is lost
                found.append(Report(head[:1], head[1:].rstrip(b"\n"), variables, options, functions))
        return found


class Snapshot:
    """The last known state, in memory that outlives the shell supervisor: the fork server holds it too."""

    def __init__(self, fd: int) -> None:
        self.fd = fd
        found = _END.search(wire.read_whole(fd))
        self.known = found is not None
        self.cwd = bytes.fromhex(found.group(2).decode()).decode("utf-8", "surrogateescape") if found else ""
        self._arguments = b""
        self.command = int(found.group(1)) if found else -1  # the last one that it includes
        self._other_ways: dict[bytes, tuple[bool, bytes]] = {}

    def begin(self, report: Report) -> None:
        """Remember which options a fresh bash has by itself: those need not be restored."""
        self._other_ways = dict(map(_other_way, report.options.splitlines()))

    def take(self, report: Report) -> None:
        variables = OF_BASH.sub(b"", report.variables)
        arguments = _ARGUMENTS.findall(variables)
        if arguments:
            self._arguments = arguments[-1]
        else:  # written inside a function, whose arguments are not the shell's
            variables += self._arguments
        names = set(report.options.split(b":"))
        options = [line for name, (is_on, line) in self._other_ways.items() if (name in names) is not is_on]
        body = variables + b"\n".join(options) + b"\n" + report.functions
        number, _, cwd = report.head.partition(b" ")
        self.command = int(number) if number.isdigit() else 0
        content = body + b"\n#end %d %s\n" % (self.command, cwd.hex().encode())
        os.ftruncate(self.fd, 0)
        os.pwrite(self.fd, content, 0)
        self.known = True
        self.cwd = cwd.decode("utf-8", "surrogateescape")

    def forget(self) -> None:
        os.ftruncate(self.fd, 0)
        self.known = False


def _other_way(line: bytes) -> tuple[bytes, tuple[bool, bytes]]:
    """The name of an option that a fresh bash has set by this command, whether that is on, and the opposite command."""
    command, _, name = line.rpartition(b" ")
    opposite = _OPPOSITES.get(command, command) + b" " + name
    return name, (command in _ON, line if opposite in _UNUSABLE else opposite)


def of_another(state: bytes) -> bytes:
    """The state for another shell, whose commands have other numbers."""
    return _END.sub(rb"\n#end -1 \2\n", state)


def nearest(directory: str) -> str:
    """The directory, or the nearest one above it that can still be entered."""
    while not (os.path.isdir(directory) and os.access(directory, os.X_OK)) and directory != os.path.dirname(directory):
        directory = os.path.dirname(directory)
    return directory or "/"
