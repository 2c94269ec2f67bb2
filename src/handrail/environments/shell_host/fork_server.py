"""The fork server: forks shell supervisors, and cleans up when one of them is killed.

A new shell is a fork of this process, which has everything loaded: milliseconds and little memory instead of a new Python.
It is a subreaper: the orphans of a killed supervisor become its children, and it ends them. When the client is gone it ends
everything.

A packet from the client asks for a shell by id. With it come the supervisor's end of their socket, the shell's spec (a memory
file), the reading end of OUT, the call page, and optionally a state to start with. Without one, an id that was used before gets
its last state.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import signal
import socket
import time
from typing import Callable, NamedTuple  # noqa: UP035  Python 3.8 knows no other place

from . import proc, wire
from .bash import Snapshot, fork
from .jobs import remove_folder
from .proc import Events
from .shell_supervisor import ShellSupervisor
from .syscall_filter import Watch
from .wire import Packet

END_SECONDS = 1.0
SWEEP_SECONDS = 5.0


class Job(NamedTuple):
    """A job supervisor that a shell supervisor has reported."""

    supervisor: int
    start: int
    survives: bool
    is_watched: bool
    folder: str


class ForkServer:
    def __init__(
        self,
        client: socket.socket | None,
        owner: int | None = None,
        alive: int | None = None,
        watcher: socket.socket | None = None,
        confine: Callable[[Packet], bool] = lambda _: False,
    ) -> None:
        """Without a `client` it is this process itself, which calls `start`, and `attend` if one of `descriptors` is readable.
        `owner` is a process (its pidfd) to watch as well as the socket, because a fork of it may hold the socket open.
        `alive` is a descriptor that somebody waits for to be closed. `watcher` leads to the effect watcher: without it, what
        shells change would fail, so everything ends with it. `confine` is called in each new supervisor, with the
        `confinement` of its spec."""
        proc.become_subreaper()
        self._client = client
        self._owner, self._alive, self._watcher, self._confine = owner, alive, watcher, confine
        self._job_reports, self._for_supervisors = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._job_reports.setblocking(False)
        self._supervisors: dict[int, str] = {}  # shell by pid
        self._states: dict[str, int] = {}  # memory file by shell: it outlives a supervisor that was killed
        self._jobs: dict[int, Job] = {}
        self._is_wanted, self._has_lost_a_child = True, False
        # It ends with its client, and not before.
        ignored = (signal.SIGINT, signal.SIGHUP, signal.SIGPIPE)
        self._events = Events(self._on_child, on_term=None, ignored=ignored)
        self._events.watch(self._job_reports.fileno(), self._receive_jobs)

    def run(self) -> None:
        """Serve until the client is gone."""
        proc.set_title("handrail-fork")
        assert self._client is not None
        self._events.watch(self._client.fileno(), self._serve)
        if self._owner is not None:
            self._events.watch(self._owner, self._leave)
        if self._watcher is not None:
            self._events.watch(self._watcher.fileno(), self._lose_watcher)
        while self._is_wanted:
            self.attend(None)
        self._end(self._client)

    @property
    def descriptors(self) -> tuple[int, int]:
        return self._events.signals, self._job_reports.fileno()

    def attend(self, milliseconds: float | None = 0) -> None:
        """Wait that long for something to happen, and handle it."""
        self._events.wait(milliseconds)
        if self._has_lost_a_child:
            self._has_lost_a_child = False
            self._receive_jobs()
            self._tidy()

    def _serve(self) -> None:
        try:
            packet, fds = wire.receive(self._client) if self._client is not None else (None, [])
        except OSError:
            packet, fds = None, []
        if packet is None:
            self._leave()
        else:
            self.start(packet, fds)

    def start(self, packet: Packet, fds: list[int]) -> None:
        """Fork a supervisor, as a packet asks for it. Closes the descriptors here."""
        shell = packet["shell"]
        if len(fds) > 4 or shell not in self._states:
            self._forget_state(shell)
            self._states[shell] = fds.pop() if len(fds) > 4 else wire.memory_file("state")
        try:
            pid = fork()
        except OSError:
            self._forget_state(shell)  # the client finds its socket closed
        else:
            if pid == 0:
                self._become_supervisor(shell, fds, self._states[shell])
            self._supervisors[pid] = shell
        for fd in fds:
            os.close(fd)

    def _become_supervisor(self, shell: str, fds: list[int], state: int) -> None:
        client_left = False
        try:
            self._close_inherited((*fds, state))
            gc.disable()  # a collection would write to, and so copy, every page that is shared with the fork server
            proc.become_subreaper()
            proc.set_title("handrail-shell")
            spec = json.loads(wire.read_whole(fds[1]))
            os.close(fds[1])
            client = socket.socket(fileno=fds[0])
            try:
                spec["has_own_folders"] = self._confine(spec.pop("confinement", None))
            except OSError as error:
                reason = f"the commands of this shell cannot be held back: {error.strerror}"
                wire.send(client, {"op": "fatal", "reason": reason})
                return
            watch = None
            if self._watcher is not None:
                watch = Watch(self._watcher, {"op": "listener", "shell": shell}, (fds[3],))
            client_left = ShellSupervisor((client, self._for_supervisors), fds[2], Snapshot(state), spec, watch).run()
        finally:
            os._exit(0 if client_left else 1)

    def _close_inherited(self, kept: tuple[int, ...]) -> None:
        """In a new supervisor: close everything of the fork server, above all its end of the client's socket."""
        self._events.close()
        watcher = () if self._watcher is None else (self._watcher.fileno(),)
        wire.keep_only((0, 1, 2, self._for_supervisors.fileno(), *watcher, *kept))
        null = os.open("/dev/null", os.O_RDWR)
        os.dup2(null, 0)
        os.dup2(null, 1)
        os.close(null)

    def _receive_jobs(self) -> None:
        while True:
            try:
                packet, _ = wire.receive(self._job_reports)
            except BlockingIOError:
                return
            if packet is not None:
                pid = packet.pop("pid")
                self._jobs[pid] = Job(**packet)

    def _tidy(self) -> None:
        """After the end of a child: if it was a supervisor that was killed, clean up what it left."""
        proc.stop_and_kill(self._orphans, self._events.reap, seconds=SWEEP_SECONDS)
        for pid, job in list(self._jobs.items()):
            if proc.is_alive(pid, job.start):
                continue
            if job.survives:
                del self._jobs[pid]
            elif job.supervisor not in self._supervisors:
                remove_folder(job.folder)
                del self._jobs[pid]

    def _orphans(self) -> list[int]:
        found: list[int] = []
        for pid in proc.children(os.getpid()):
            job = self._jobs.get(pid)
            if pid not in self._supervisors and not (job is not None and job.survives):
                found += proc.tree(pid)
                stat = proc.stat_of(pid)
                found += [pid] if stat is not None and stat.state not in b"ZX" else []
        return found

    def _on_child(self, pid: int, status: int) -> None:
        self._has_lost_a_child = True
        shell = self._supervisors.pop(pid, None)
        if shell is not None and status == 0:  # its client has left for good
            self._forget_state(shell)

    def _leave(self) -> None:
        self._is_wanted = False

    def _lose_watcher(self) -> None:
        """Nothing that it watched can change a file any more: not even what was started to survive is of use."""
        self._is_wanted = False
        self._jobs = {
            pid: job._replace(survives=job.survives and not job.is_watched) for pid, job in self._jobs.items()
        }
        self._events.unwatch(self._watcher.fileno() if self._watcher is not None else -1)

    def _forget_state(self, shell: str) -> None:
        fd = self._states.pop(shell, None)
        if fd is not None:
            os.close(fd)
            if self._watcher is not None:
                with contextlib.suppress(OSError):  # it was killed: this process ends as well
                    wire.send(self._watcher, {"op": "forget", "shell": shell})

    def _end(self, client: socket.socket) -> None:
        proc.signal_each(self._supervisors, signal.SIGTERM)
        end = time.monotonic() + END_SECONDS
        for fd in (client.fileno(), self._owner):
            self._events.unwatch(-1 if fd is None else fd)
        while self._supervisors and time.monotonic() < end:
            self._events.wait(50)
        proc.signal_each(self._supervisors, signal.SIGKILL)  # for one that hangs, or was stopped by a command
        self._receive_jobs()
        self._supervisors.clear()
        self._tidy()
        client.close()
        if self._alive is not None:
            os.close(self._alive)
        if os.getpid() == 1:
            # All processes of a namespace end with its first one.
            while any(job.survives and proc.is_alive(pid, job.start) for pid, job in self._jobs.items()):
                self._events.wait()


def open_pidfd(pid: int | None) -> int | None:
    if pid is None or not hasattr(os, "pidfd_open"):
        return None
    try:
        return os.pidfd_open(pid)
    except OSError:
        return None
