"""The job supervisor: owns one background process, its log, its input and its end.

It is a subreaper, so that all of the process's descendants are below it and can be found. It is reached through a socket in the
process's folder, by anyone who may open that folder: so a later runtime finds a process that was started to survive.

    <folder>/status   see `jobs`
    <folder>/log.*    see `jobs`
    <folder>/control  the socket; one packet is the request, one the answer (see `jobs`)
"""

from __future__ import annotations

import contextlib
import errno
import os
import select
import signal
import socket
import struct
import termios
import time

from . import bash, jobs, proc, wire
from .bash import Child, prepare, resize
from .jobs import JobFiles, LogWriter
from .proc import Events
from .syscall_filter import Watch
from .wire import Packet

INPUT_BYTES = 1 << 20  # the most that is queued for a process that does not read
_READ_BYTES = 1 << 16
_COMMAND_SHOWN = 300
_ARM = os.uname().machine == "aarch64"
_READ = {63} if _ARM else {0}
_SELECT = {72} if _ARM else {23, 270}
_POLL = {73} if _ARM else {7, 271}
_EPOLL = {22, 441} if _ARM else {232, 281, 441}
_POLLFD = struct.Struct("ihh")
_MAX_FDS = 1024
_TERMINAL = "/dev/pts/"


def start_job_supervisor(
    job: Packet, state: bytes, *, answer: int, text: int, folder: JobFiles, watch: Watch | None = None
) -> tuple[int, int] | None:
    """Fork one, and return its pid and start time. It answers on `answer` itself, as this does on failure, with None."""
    with socket.socket(fileno=os.dup(answer)) as asker:
        child = None
        try:
            child = prepare(job, state, text, folder)
            pid = bash.fork()
        except OSError as error:
            _refuse(asker, error)
            return None
        else:
            if pid == 0:
                _become_job_supervisor(child, asker, watch)
        finally:
            if child is not None:
                child.close()
    stat = proc.stat_of(pid)
    return pid, stat.start if stat is not None else 0


def _become_job_supervisor(child: Child, asker: socket.socket, watch: Watch | None) -> None:
    try:
        proc.become_subreaper()
        try:
            supervisor = JobSupervisor(child, child.spawn(watch))
        except OSError as error:
            _refuse(asker, error)
            return
        wire.send(asker, supervisor.status)
        # After the answer: bash takes longer to start than the rest of this, and nobody has to wait for it.
        supervisor.run()
    finally:
        os._exit(0)


def _refuse(asker: socket.socket, error: OSError) -> None:
    with contextlib.suppress(OSError):  # the client that asked has gone
        wire.send(asker, {"error": error.errno or errno.EIO, "reason": error.strerror or str(error)})


class JobSupervisor:
    def __init__(self, child: Child, process: int) -> None:
        self._child, self._input, self._output = process, child.input, child.output
        self._is_pty = child.job["pty"] is not None
        self._control = socket.socket(fileno=child.folder.control)
        self._status_file, self._kept = child.folder.status, child.kept
        self._log = LogWriter(child.folder.log, child.job["segment_bytes"])
        self._pending = b""
        self._kill_at: float | None = None
        self._is_ending = False
        self.status = _status(child.job, process)
        self._has_ended = False
        jobs.write_start(self._status_file, self.status)

    def run(self) -> None:
        """Serve until the process and everything that it started have ended."""
        self._settle()
        while not self._is_ending and (not self._has_ended or self._output >= 0 or proc.tree(os.getpid())):
            left = None if self._kill_at is None else max(0.0, self._kill_at - time.monotonic())
            self._events.wait(None if left is None else left * 1000 + 0.5)
            if self._kill_at is not None and time.monotonic() >= self._kill_at:
                self._kill_at = None
                self._kill()
        if self._is_ending:
            self._kill()
        self._control.close()

    def _settle(self) -> None:
        """Become an independent process, which holds no descriptor of the shell supervisor."""
        os.setsid()
        proc.set_title("handrail-job")
        wire.keep_only(self._kept)
        null = os.open("/dev/null", os.O_RDWR)
        for fd in (0, 1, 2):
            os.dup2(null, fd)
        self._events = Events(self._on_child, on_term=self._end)
        self._events.watch(self._control.fileno(), self._on_caller)
        self._events.watch(self._output, self._on_output)
        self._events.reap()  # it may have ended already

    def _on_output(self) -> None:
        try:
            data = os.read(self._output, _READ_BYTES)
        except BlockingIOError:
            return
        except OSError:
            data = b""  # a terminal without users raises EIO
        if data:
            self._log.write(data)
            return
        self._events.unwatch(self._output)
        os.close(self._output)
        self._output = -1

    def _drain(self) -> None:
        before = -1
        while self._output >= 0 and self._log.total != before:
            before = self._log.total
            self._on_output()

    def _on_caller(self) -> None:
        try:
            caller, _ = self._control.accept()
        except OSError:
            return
        caller.setblocking(False)
        # Its request may take a while: the log continues meanwhile.
        self._events.watch(caller.fileno(), lambda: self._serve(caller))

    def _serve(self, caller: socket.socket) -> None:
        self._events.unwatch(caller.fileno())
        with caller:
            try:
                packet, fds = wire.receive(caller)
                for fd in fds:
                    os.close(fd)
                wire.send(caller, self._answer(packet or {"op": ""}))
            except (OSError, ValueError, KeyError, TypeError):
                pass  # it left or made no sense; the next one is served

    def _answer(self, packet: Packet) -> Packet:
        op = packet["op"]
        if op == "write":
            return {"room": self._write(packet["data"].encode("latin-1"))}
        if op == "close":
            self._close_input()
        elif op == "kill":
            proc.signal_each(proc.tree(os.getpid()), signal.SIGTERM)
            self._kill_at = time.monotonic() + packet["grace"]
        elif op == "resize" and self._is_pty:
            resize(self._input, packet["rows"], packet["columns"])
        elif op == "waits":
            waits = self._input >= 0 and not self._pending and waits_for_input(self._input, os.getpid())
            self._drain()  # a client that learns that it waits finds the question in the log
            return {"waits": waits}
        elif op == "reader" and self._is_pty and self._input >= 0:
            name, hides = reader(self._input, os.getpid())
            return {"name": name, "hides": hides}
        return {}

    def _write(self, data: bytes) -> bool:
        """Whether there was room for it, and a process to read it."""
        if self._input < 0 or len(self._pending) + len(data) > INPUT_BYTES:
            return False
        self._pending += data
        self._on_input_room()
        return self._input >= 0

    def _on_input_room(self) -> None:
        try:
            self._pending = self._pending[os.write(self._input, self._pending) :] if self._pending else b""
        except BlockingIOError:
            pass
        except OSError:
            self._pending = b""
            self._close_input()
            return
        if self._pending:
            self._events.watch(self._input, self._on_input_room, select.POLLOUT)
        else:
            self._events.unwatch(self._input)

    def _close_input(self) -> None:
        if self._is_pty:  # the only end of input of a terminal is a character
            with contextlib.suppress(OSError):  # it has no users left, or they do not read
                os.write(self._input, b"\x04")
        elif self._input >= 0:
            self._events.unwatch(self._input)
            os.close(self._input)
            self._input = -1

    def _kill(self) -> None:
        proc.stop_and_kill(lambda: proc.tree(os.getpid()), self._events.reap, seconds=5)
        self._events.reap()

    def _on_child(self, pid: int, status: int) -> None:
        if pid == self._child:
            self._drain()  # its output is in the log before anyone can see that it has ended
            self._has_ended = True
            code = 128 + os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)
            jobs.write_end(self._status_file, code)

    def _end(self) -> None:
        self._is_ending = True


def _status(job: Packet, child: int) -> Packet:
    shell_supervisor = os.getppid()
    mine, its, parents = proc.stat_of(os.getpid()), proc.stat_of(child), proc.stat_of(shell_supervisor)
    # The keys of a stored file: "minder" is this job supervisor, "keeper" its shell supervisor.
    return {
        "id": job["id"],
        "command": job["command"][:_COMMAND_SHOWN],
        "cwd": job["cwd"][:_COMMAND_SHOWN],
        "pty": job["pty"] is not None,
        "survives": job["survives"],
        "call": job.get("call", 0),
        "started_at": time.time(),
        "pid": child,
        "start": its.start if its is not None else 0,
        "minder": os.getpid(),
        "minder_start": mine.start if mine is not None else 0,
        "keeper": shell_supervisor,
        "keeper_start": parents.start if parents is not None else 0,
        "pid_namespace": proc.namespace(),
        "boot": proc.boot_id(),
        "code": None,
        "ended_at": None,
    }


def waits_for_input(ours: int, root: int) -> bool:
    """`ours` is our end of the terminal or pipe; descendants of `root` are at the other end."""
    try:
        name = os.readlink(f"/proc/self/fd/{ours}")
        if name.startswith("pipe:"):
            return any(_process_waits(pid, name) for pid in proc.tree(root))
        group = os.tcgetpgrp(ours)
    except OSError:
        return False
    return any(stat.group == group and _process_waits(pid, _TERMINAL) for pid, stat in proc.tree(root).items())


def reader(ours: int, root: int) -> tuple[str, bool]:
    """The program that reads a terminal, and whether it hides what is typed, as one does that asks for a password. It is the
    foreground process that waits for input or, if that is unclear, the first of the foreground group. A line editor, such as a
    shell's, switches the echo off too, but it also reads single keys."""
    try:
        flags, group = termios.tcgetattr(ours)[3], os.tcgetpgrp(ours)
        ahead = [pid for pid, stat in proc.tree(root).items() if stat.group == group]
        waiting = [pid for pid in ahead if _process_waits(pid, _TERMINAL)]
        with open(f"/proc/{waiting[0] if len(waiting) == 1 else group}/comm") as file:
            name = file.read().strip()
    except (OSError, termios.error):
        return "", False
    return name, bool(flags & termios.ICANON) and not flags & termios.ECHO


def _process_waits(pid: int, source: str) -> bool:
    try:
        threads = os.listdir(f"/proc/{pid}/task")
        return any(_thread_waits(pid, f"/proc/{pid}/task/{thread}/syscall", source) for thread in threads)
    except OSError:
        return False  # it has ended, or may not be inspected by us


def _thread_waits(pid: int, path: str, source: str) -> bool:
    with open(path) as file:
        words = file.read().split()
    if len(words) < 7:
        return False  # it runs
    number, first, second = int(words[0]), int(words[1], 16), int(words[2], 16)
    fds = [first] if number in _READ else []
    if number in _POLL:
        data = _memory(pid, first, min(second, _MAX_FDS) * _POLLFD.size)
        data = data[: len(data) - len(data) % _POLLFD.size]
        fds = [fd for fd, events, _ in _POLLFD.iter_unpack(data) if events & 1]
    elif number in _SELECT:
        data = _memory(pid, second, (min(first, _MAX_FDS) + 7) // 8) if second else b""
        fds = [fd for fd in range(len(data) * 8) if data[fd // 8] >> fd % 8 & 1]
    elif number in _EPOLL:
        with open(f"/proc/{pid}/fdinfo/{first}") as file:
            fds = [int(line.split()[1]) for line in file if line.startswith("tfd:")]
    targets = [proc.link(f"/proc/{pid}/fd/{fd}") for fd in fds]
    # A dev server also listens to the keyboard: a process that waits for the network too is not waiting for input.
    if number in _EPOLL and any(target.startswith("socket:") for target in targets):
        return False
    return any(target.startswith(source) or (source == _TERMINAL and target == "/dev/tty") for target in targets)


def _memory(pid: int, address: int, count: int) -> bytes:
    with open(f"/proc/{pid}/mem", "rb", buffering=0) as file:
        file.seek(address)
        return file.read(count) or b""
