"""Processes: their descendants, how to end all of them, and how to wait for what happens."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import os
import re
import resource
import select
import signal
import struct
import time
from typing import Callable, Iterable, Iterator, NamedTuple  # noqa: UP035  Python 3.8 knows no other place

_DELETED = " (deleted)"
_MAX_SEARCHES, _RESOURCES = 3, 16
TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
_PR_SET_NAME, _PR_SET_CHILD_SUBREAPER = 15, 36
_OPENAT2, _NO_LINKS = 437, 0x04 | 0x02  # RESOLVE_NO_SYMLINKS, RESOLVE_NO_MAGICLINKS
_SCHED_SETATTR = {"x86_64": 314, "aarch64": 274}.get(os.uname().machine)
_IOPRIO_GET = {"x86_64": 252, "aarch64": 31}
_ATTRIBUTES = struct.Struct("IIQiIQQQ")  # struct sched_attr: size, policy, flags, nice, priority, slice and two more
_RESET_ON_FORK, _SHORT_SLICE = 1, 100_000
_libc = ctypes.CDLL(None, use_errno=True)
OnChild = Callable[[int, int], object]  # a child's pid, and its status as waitpid returns it


class Stat(NamedTuple):
    """What /proc says about a process. `start` is in ticks since boot: with the pid it identifies a process uniquely."""

    state: bytes
    parent: int
    group: int
    start: int


def become_subreaper() -> None:
    """Make orphaned descendants children of this process instead of init."""
    _libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def run_in_short_slices(pid: int = 0) -> None:
    """On a busy machine the process (0: this one) then runs as soon as it is woken, for a short time. Its share of the CPU stays
    what it was, and its children are not concerned. Kernels before 6.12 ignore it."""
    nice = os.getpriority(os.PRIO_PROCESS, pid)
    attributes = _ATTRIBUTES.pack(_ATTRIBUTES.size, os.SCHED_OTHER, _RESET_ON_FORK, nice, 0, _SHORT_SLICE, 0, 0)
    if _SCHED_SETATTR is not None and os.sched_getscheduler(pid) == os.SCHED_OTHER:
        _libc.syscall(_SCHED_SETATTR, pid, attributes, 0)


def limits() -> tuple[object, ...]:
    """What a child can change of this process, and all that it starts from then on inherits."""
    schedule, disk = ctypes.create_string_buffer(_ATTRIBUTES.size), 0
    if _SCHED_SETATTR is not None:
        _libc.syscall(_SCHED_SETATTR + 1, 0, schedule, _ATTRIBUTES.size, 0)
        disk = _libc.syscall(_IOPRIO_GET[os.uname().machine], 1, 0)
    with open("/proc/self/oom_score_adj") as file:
        score = file.read()
    resources = [resource.getrlimit(number) for number in range(_RESOURCES)]
    return resources, os.sched_getaffinity(0), schedule.raw, disk, score


def check(result: int, what: str) -> int:
    """`result` of a C function. Raises OSError with `what` if it failed."""
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
    return result


def set_title(title: str) -> None:
    """Set the name in `ps`. A `pkill python` or `pkill -f python` in a command must not hit what runs the command."""
    name = title.encode()
    _libc.prctl(_PR_SET_NAME, name[:15], 0, 0, 0)
    start, end = _command_line_place()
    if 0 < start < end:
        ctypes.memset(start, 0, end - start)
        ctypes.memmove(start, name[: end - start - 1], min(len(name), end - start - 1))


@functools.lru_cache(maxsize=1)  # the same in a fork
def _command_line_place() -> tuple[int, int]:
    fields = content("/proc/self/stat").rpartition(b")")[2].split()
    return (int(fields[45]), int(fields[46])) if len(fields) > 46 else (0, 0)


def content(path: str, size: int = -1) -> bytes:
    """What is in a file of /proc, all of it or as much; empty if it is gone, or may not be read."""
    try:
        with open(path, "rb") as file:
            return file.read(size)
    except OSError:
        return b""


def stat_of(pid: int, among: str = "/proc") -> Stat | None:
    try:
        with open(f"{among}/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
    except OSError:
        return None
    return Stat(fields[0], int(fields[1]), int(fields[2]), int(fields[19])) if len(fields) > 19 else None


def cpu_seconds(pid: int) -> float:
    """How long a process has run so far; 0 if the kernel does not say."""
    fields = content(f"/proc/{pid}/schedstat").split()
    return int(fields[0]) / 1e9 if fields else 0.0


def leader_of(thread: int) -> int:
    with open(f"/proc/{thread}/status", "rb") as file:
        return next(int(line.split()[1]) for line in file if line.startswith(b"Tgid:"))


def is_alive(pid: int, start: int) -> bool:
    stat = stat_of(pid)
    return stat is not None and stat.start == start and stat.state not in b"ZX"


def command_line(pid: int) -> str:
    """The process's command line, unquoted: for display."""
    words = content(f"/proc/{pid}/cmdline", 4096).rstrip(b"\0").replace(b"\0", b" ")
    if not words and (name := content(f"/proc/{pid}/comm").strip()):
        words = b"[%b]" % name
    return words.decode("utf-8", "replace")


@functools.lru_cache(maxsize=1)
def boot_id() -> str:
    """Identifies the current boot of the machine: a pid means something only within it."""
    with open("/proc/sys/kernel/random/boot_id") as file:
        return file.read().strip()


@functools.lru_cache(maxsize=4)
def _namespace_of(_: int) -> int:
    try:
        return os.stat("/proc/self/ns/pid").st_ino
    except OSError:
        return 0


def namespace() -> int:
    """Identifies the process namespace of this process, in which its pids are valid."""
    return _namespace_of(os.getpid())


@functools.lru_cache(maxsize=4096)  # once it was not found it has ended
def pid_here(pid: int, start: int, of_namespace: int, parent: int = 0) -> int:
    """The pid in our namespace of a process that has `pid` in an inner one; 0 if there is no such process. It is found at once
    among the children of its `parent`, and else among all processes."""
    if of_namespace in (0, namespace()):
        return pid
    near = _with_pid(children(parent), pid, start, of_namespace) if parent else 0
    return near or _with_pid(newest_first(), pid, start, of_namespace)


def newest_first() -> list[int]:
    """All processes."""
    return sorted((int(name) for name in os.listdir("/proc") if name.isdigit()), reverse=True)


def _with_pid(numbers: Iterable[int], pid: int, start: int, of_namespace: int) -> int:
    found = _with_number(b"NSpid", pid, numbers, of_namespace)
    return next((number for number, stat in found if stat.start == start), 0)


def _with_number(field: bytes, value: int, among: Iterable[int], of_namespace: int) -> Iterator[tuple[int, Stat]]:
    """The processes of a namespace whose status has this value, in their own numbers."""
    for number in among:
        with contextlib.suppress(OSError), open(f"/proc/{number}/status", "rb") as file:
            inner = re.search(rb"^%b:.*\t(\d+)$" % field, file.read(), re.MULTILINE)
            stat = stat_of(number) if inner is not None and int(inner[1]) == value else None
            if stat is not None and os.stat(f"/proc/{number}/ns/pid").st_ino == of_namespace:
                yield number, stat


def in_session(leader: int, start: int, of_namespace: int) -> list[int]:
    """The living processes of a session whose leader may have ended, none of them older than the leader was. Its number is
    not given to another process as long as one of them lives."""
    found = _with_number(b"NSsid", leader, newest_first(), of_namespace or namespace())
    return [number for number, stat in found if stat.state not in b"ZX" and stat.start >= start]


def tree(root: int) -> dict[int, Stat]:
    """The living descendants of `root`. Complete if it is a subreaper and nothing in the tree is forking."""
    found: dict[int, Stat] = {}
    todo = [root]
    # This costs as much as the tree is large: scanning all of /proc made twenty simultaneous timeouts take half a second each.
    while todo:
        for pid in children(todo.pop()):
            todo.append(pid)
            stat = stat_of(pid)
            if stat is not None and stat.state not in b"ZX":
                found[pid] = stat
    return found


def below(roots: Iterable[int], among: dict[int, Stat]) -> set[int]:
    """Those of `among` that are one of the roots or descend from one."""
    inside = {pid for pid in roots if pid in among}
    while True:
        more = {pid for pid, stat in among.items() if stat.parent in inside} - inside
        if not more:
            return inside
        inside |= more


def signal_each(pids: Iterable[int], number: int) -> None:
    for pid in pids:
        with contextlib.suppress(OSError):  # it has already ended
            os.kill(pid, number)


def stop_and_kill(find: Callable[[], Iterable[int]], reap: Callable[[], object], *, seconds: float) -> bool:
    """Kill everything that `find` returns until it returns nothing. `seconds` limits the search, and then the killing: False if
    some are still alive after that."""
    stopped: set[int] = set()
    groups: set[int] = set()
    left, end, rounds = set(find()), time.monotonic() + seconds, 0
    # A stopped process cannot fork between the search and the kill.
    while left - stopped and (rounds <= _MAX_SEARCHES or time.monotonic() < end):
        rounds += 1
        if rounds > _MAX_SEARCHES:  # they fork faster than they are found: only the kernel stops a group at once
            groups |= {stat.group for stat in map(stat_of, left - stopped) if stat is not None} - {os.getpgrp()}
            signal_each((-group for group in groups), signal.SIGSTOP)
        signal_each(left - stopped, signal.SIGSTOP)
        stopped |= left
        left = set(find())
    end = time.monotonic() + seconds
    while left:
        signal_each(left, signal.SIGKILL)
        if time.monotonic() >= end:
            break
        time.sleep(0.0005)
        reap()
        left = set(find())
    # What else is in such a group was not to be killed.
    signal_each((-group for group in groups), signal.SIGCONT)
    return not left


def children(pid: int) -> list[int]:
    """Its children, including zombies."""
    try:
        threads = os.listdir(f"/proc/{pid}/task")
    except OSError:
        return []
    found: list[int] = []
    for thread in threads:
        try:
            with open(f"/proc/{pid}/task/{thread}/children", "rb") as file:
                found += map(int, file.read().split())
        except FileNotFoundError:
            if not os.path.exists(f"/proc/self/task/{os.getpid()}/children"):  # a kernel without PROC_CHILDREN
                stats = ((other, stat_of(other)) for other in newest_first())
                return [child for child, stat in stats if stat is not None and stat.parent == pid]
        except OSError:
            pass  # the thread has ended
    return found


def without_mark(path: str) -> str:
    """The path without the kernel's mark for a directory that was removed: its name is still where new files go."""
    return path[: -len(_DELETED)] if path.endswith(_DELETED) and not os.path.isdir(path) else path


@contextlib.contextmanager
def opened_without_links(folder: str) -> Iterator[int]:
    """A folder whose path has no link anywhere. Raises FileNotFoundError if it has one, or is not there."""
    how = struct.pack("QQQ", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC, 0, _NO_LINKS)
    fd = _libc.syscall(_OPENAT2, -100, os.fsencode(folder), how, len(how))
    if fd < 0:
        raise FileNotFoundError(ctypes.get_errno(), "it is not there, or a link leads to it")
    with closing(fd):
        yield fd


@contextlib.contextmanager
def closing(fd: int) -> Iterator[int]:
    """Closes a descriptor at the end."""
    try:
        yield fd
    finally:
        os.close(fd)


def link(path: str) -> str:
    """What a link says; empty if there is none, or it may not be read."""
    try:
        return os.readlink(path)
    except OSError:
        return ""


class Events:
    """The event loop of a shell host process: one poll object, and a pipe that signals arrive on."""

    def __init__(self, on_child: OnChild, *, on_term: Callable[[], object] | None, ignored: Iterable[int] = ()) -> None:
        """Without `on_term`, SIGTERM is ignored like the signals in `ignored`."""
        self._on_child, self._poll = on_child, select.poll()
        self._handlers: dict[int, Callable[[], object]] = {}
        self.signals, self._write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGTERM, signal.SIG_IGN if on_term is None else lambda *_: on_term())
        for number in ignored:
            signal.signal(number, signal.SIG_IGN)
        signal.set_wakeup_fd(self._write, warn_on_full_buffer=False)
        self.watch(self.signals, self.reap)

    def watch(self, fd: int, handler: Callable[[], object], events: int = select.POLLIN) -> None:
        self._handlers[fd] = handler
        self._poll.register(fd, events)

    def unwatch(self, fd: int) -> None:
        if self._handlers.pop(fd, None) is not None:
            self._poll.unregister(fd)

    def wait(self, milliseconds: float | None = None) -> None:
        for fd, _ in self._poll.poll(milliseconds):
            handler = self._handlers.get(fd)
            if handler is not None:  # an earlier one may have closed it
                handler()

    def close(self) -> None:
        """For a fork, which makes its own."""
        signal.set_wakeup_fd(-1)
        os.close(self.signals)
        os.close(self._write)

    def reap(self) -> None:
        with contextlib.suppress(BlockingIOError):
            os.read(self.signals, 4096)
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            self._on_child(pid, status)
