"""One bash, from its start to its end, and the channels to it."""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import time
from typing import Any, Callable, NamedTuple, Sequence  # noqa: UP035  Python 3.8 knows no other place

from . import bash_template, proc, wire
from .state import Report, Reports, nearest
from .syscall_filter import FilterRefused, Watch, install_and_send

OLDEST = (4, 4)
ARGUMENTS = ("--norc", "--noprofile")
_PLACES = ("/bin", "/usr/bin", "/usr/local/bin", "/run/current-system/sw/bin")
_RESET = (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGINT, signal.SIGHUP, signal.SIGTERM, signal.SIGQUIT, signal.SIGCHLD)
_FORK_SECONDS = 2.0


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
        self.go_read, self.go = os.pipe()
        self.done_read, self.done = os.pipe()
        self.state, self._state_write = os.pipe()
        os.set_blocking(self.state, False)
        for end in (self.go, self.done):
            os.fchmod(end, wire.PIPE_MODE)
        self._reports = Reports()
        self.is_ready = False
        self.asked = 0  # states that were requested and have not arrived
        self.status: int | None = None  # as waitpid returns it, once it has ended
        numbers = {**files._asdict(), "go": self.go_read, "done": self.done, "state": self._state_write}
        channels = {name.upper(): path_of(fd) for name, fd in numbers.items()}
        os.ftruncate(files.farewell, 0)
        os.pwrite(files.farewell, bash_template.farewell(channels).encode(), 0)
        script = wire.memory_file("script", bash_template.loop(channels).encode())
        os.lseek(script, 0, os.SEEK_SET)
        actions = [
            (os.POSIX_SPAWN_DUP2, script, 0),
            (os.POSIX_SPAWN_DUP2, self.done, 1),
            (os.POSIX_SPAWN_OPEN, 2, "/dev/null", os.O_RDWR, 0),
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
