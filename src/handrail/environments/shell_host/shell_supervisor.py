"""The shell supervisor: owns one bash after the other, restores it when it ends, and ends what runs in it.

It is not on the path of a command. The client writes the command and reads the output through its own descriptors; for a command
that takes long the supervisor gets a note, so that the timeout holds even if the client has stopped reading.

Packets from the client, each with an `op`:

    dirty   commands run: save the state when idle     left    which processes did the command leave behind?
    note    this command takes long: mind its deadline late    what did it print after its end?
    over    the command has ended                      end     kill a process that was left behind
    kill    abandon the command, for this reason       job     start a background process, in a job supervisor
    stdin   what the next command reads                save    save the state now
    place   where a bash without a state starts        renew   start over, for another client's commands

Packets to the client: `started` with its ends of GO and DONE and how the previous bash ended, `ready`, `saved` when the state was
saved, `plain` when it has no functions, aliases and traps, and `fatal` when no shell can be started. A packet that wants an
answer carries the socket for it.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import time
from typing import Callable, NamedTuple  # noqa: UP035  Python 3.8 knows no other place

from . import bash_template, proc, wire
from .bash import OLDEST, Bash, Files, Report, Snapshot, find_bash, nearest, version_of
from .job_supervisor import start_job_supervisor
from .jobs import JobFiles, remove_folder
from .leftovers import LatePipes, Leftovers
from .proc import Events
from .syscall_filter import Watch
from .wire import Packet

TERM_SECONDS = 0.03
ANSWER_SECONDS = 0.03
STARVED_SECONDS = 1.0  # for an answer of a shell that could not run, on a busy machine
IDLE_SECONDS = 0.2
READY_SECONDS = 10.0
CLIENT_FIRST_SECONDS = 0.005
FRESH_STATE_SECONDS = 5.0
STDERR_SECONDS, MAX_STDERR_BYTES = 0.2, 32 << 20
_OF_ANOTHER_SHELL = ("OLDPWD", "PWD", "SHLVL", "_")


class Running(NamedTuple):
    """The command of the client's last note."""

    number: int
    began: float
    deadline: float | None


class ShellSupervisor:
    """See the module. `spec` has the initial environment variables and working directory."""

    def __init__(
        self,
        sockets: tuple[socket.socket, socket.socket],
        out: int,
        snapshot: Snapshot,
        spec: Packet,
        watch: Watch | None = None,
    ) -> None:
        self._client, self._fork_server = sockets
        self._watch = watch
        self._snapshot, self._spec = snapshot, spec
        for name in _OF_ANOTHER_SHELL:
            spec["env"].pop(name, None)
        text, farewell, memo = (wire.memory_file(name) for name in ("text", "farewell", "memo"))
        self._files = Files(text, out, snapshot.fd, farewell, memo)
        self._stdin = os.open("/dev/null", os.O_RDONLY)
        self._stderr = wire.memory_file("stderr")  # of a command that wants it apart from its output
        self._program = find_bash(spec["env"])
        self._shell: Bash | None = None
        self._is_restored = self._has_exit_state = False
        self._ready_by: float | None = None
        self._running: Running | None = None
        self._abandoned = 0
        self._save_at: float | None = None
        self._bound_stderr_at: float | None = None
        self._late = LatePipes()
        self._leftovers = Leftovers()
        self._job_folders: list[str] = []
        self._is_ending = self._is_left = False
        mine = proc.stat_of(os.getpid())
        self._began, self._limits = mine.start if mine is not None else 0, proc.limits()
        ignored = (signal.SIGINT, signal.SIGHUP, signal.SIGPIPE)
        self._events = Events(self._on_child, on_term=self._end, ignored=ignored)
        self._client.setblocking(False)
        self._events.watch(self._client.fileno(), self._on_packets)

    def run(self) -> bool:
        """Serve until the client leaves (True) or something else ends it. Only processes started to survive keep running."""
        try:
            self._start("snapshot" if self._snapshot.known else "clean")
            while not self._is_ending:
                self._events.wait(self._milliseconds_to_wait())
                if self._shell is not None and self._shell.status is not None:
                    self._died("ended")
                self._check_deadlines()
            self._on_reports()  # a supervisor that replaces this one continues from the last report
        finally:
            proc.stop_and_kill(self._everything, self._events.reap, seconds=5)
            for folder in self._job_folders:
                remove_folder(folder)
        return self._is_left

    # The life of a bash

    def _start(self, state: str, ended: Packet | None = None) -> None:
        """Start a bash with `state`: kept, snapshot or clean. `ended` says how the previous one ended."""
        if self._program is None:
            self._give_up("bash was not found; install bash 4.4 or newer there")
            return
        old = self._shell
        is_restored = state != "clean"
        cwd = nearest(self._snapshot.cwd if is_restored else self._spec["cwd"])
        # A state has all variables: one that was unset must not come back from the initial environment.
        env = {} if is_restored else self._spec["env"]
        try:
            shell = self._shell = Bash(self._program, self._files, cwd=cwd, env=env, watch=self._watch)
        except OSError as error:
            self._give_up(f"{self._program} could not be started: {error.strerror}")
            return
        self._is_restored, self._has_exit_state = is_restored, False
        self._ready_by, self._running = time.monotonic() + READY_SECONDS, None
        self._events.watch(shell.state, self._on_reports)
        self._notify(
            {
                "op": "started",
                "supervisor": os.getpid(),
                "supervisor_start": self._began,
                "pid_namespace": proc.namespace(),
                "bash": shell.pid,
                "bash_start": shell.start,
                "text": self._files.text,
                "stdin": self._stdin,
                "stderr": self._stderr,
                "cwd": cwd,
                "state": state,
                "saved": self._snapshot.command,
                "ended": ended,
            },
            [shell.go, shell.done_read],
        )
        if old is not None:  # only now: a client that finds the old channels closed can read why
            self._events.unwatch(old.state)
            old.close()

    def _on_reports(self) -> None:
        shell = self._shell
        if shell is None:
            return
        for report in shell.reports():
            if report.kind == b"R":
                self._ready(report)
                continue
            self._snapshot.take(report)
            if report.kind == b"E":
                self._has_exit_state = True
            if report.kind == bash_template.SNAPSHOT:
                shell.asked = max(0, shell.asked - 1)  # the client asks too
                if report.is_plain:
                    self._notify({"op": "plain", "number": self._snapshot.command})
                if self._spec["is_remote"]:
                    self._notify({"op": "saved"}, [self._snapshot.fd])

    def _ready(self, report: Report) -> None:
        self._ready_by = None
        self._snapshot.begin(report)
        if version_of(report) < OLDEST:
            self._give_up(f"bash there is {report.head.decode('ascii', 'replace')}; 4.4 or newer is needed")
        else:
            self._notify({"op": "ready"})

    def _died(self, why: str) -> None:
        """Replace a bash that has ended: with the state that its EXIT trap wrote, else with the last known one."""
        shell = self._shell
        assert shell is not None
        self._on_reports()
        if self._ready_by is not None and why == "ended":  # it never got ready, and nobody killed it
            if not self._is_restored:
                self._give_up(f"bash ended immediately, with code {shell.exit_code()}")
                return
            self._snapshot.forget()
        state = "kept" if self._has_exit_state else "snapshot" if self._snapshot.known else "clean"
        self._start(state, {"code": shell.exit_code(), "why": why, "number": self._abandoned})

    def _renew(self, out: int, page: int) -> None:
        """Be as for the first command. Where that cannot be had this ends, and the client starts another."""
        shell, is_used = self._shell, self._job_folders or self._late.is_used or self._spec["has_own_folders"]
        is_gone = proc.stop_and_kill(self._everything, self._events.reap, seconds=1)
        self._wait(READY_SECONDS, until=lambda: shell is None or shell.status is not None)
        if shell is None or is_used or not is_gone or proc.limits() != self._limits:
            self._give_up("something of what ran in this shell could be left")
            return
        os.dup2(out, self._files.out, inheritable=False)
        if self._watch is not None:
            os.dup2(page, self._watch.fds[0], inheritable=False)
        with open(os.devnull, "rb") as null:
            os.dup2(null.fileno(), self._stdin, inheritable=False)
        for fd in {*self._files, self._stderr} - {self._files.out}:
            os.ftruncate(fd, 0)
            os.fchmod(fd, wire.MEMORY_MODE)
        self._snapshot, self._leftovers, self._abandoned = Snapshot(self._files.restore), Leftovers(), 0
        self._save_at = self._bound_stderr_at = None
        self._start("clean")

    def _abandon(self, why: str, began: float) -> None:
        """End the command with all its processes. What earlier commands left running keeps running."""
        shell = self._shell
        if shell is None:
            return
        tick = int((time.clock_gettime(time.CLOCK_BOOTTIME) - (time.monotonic() - began)) * proc.TICKS_PER_SECOND)

        def victims() -> list[int]:
            return self._leftovers.strangers(proc.tree(os.getpid()), shell.pid, before=tick)

        # Pending before the command's child dies, so that the next command of a list never starts.
        proc.signal_each([shell.pid], signal.SIGRTMAX)
        proc.signal_each(victims(), signal.SIGTERM)
        self._wait(TERM_SECONDS, until=lambda: not victims())
        proc.stop_and_kill(victims, self._events.reap, seconds=1)
        asked, used = time.monotonic(), proc.cpu_seconds(shell.pid)

        def had_its_chance() -> bool:
            if shell.status is not None or time.monotonic() - asked < ANSWER_SECONDS:
                return shell.status is not None
            stat = proc.stat_of(shell.pid)
            return stat is None or stat.state != b"R" or proc.cpu_seconds(shell.pid) - used > ANSWER_SECONDS

        self._wait(STARVED_SECONDS, until=had_its_chance)
        # No answer: it is in a long builtin, it is stopped, or our trap was removed.
        proc.signal_each([shell.pid] if shell.status is None else [], signal.SIGKILL)
        self._wait(READY_SECONDS, until=lambda: shell.status is not None)
        proc.stop_and_kill(victims, self._events.reap, seconds=1)
        self._died(why)

    # Packets

    def _on_packets(self) -> None:
        while not self._is_ending:
            try:
                packet, fds = wire.receive(self._client)
            except BlockingIOError:
                return
            except OSError:
                packet, fds = None, []
            if packet is None:
                self._is_ending = self._is_left = True
                return
            self._on_packet(packet, fds)
            for fd in fds:
                os.close(fd)

    def _on_packet(self, packet: Packet, fds: list[int]) -> None:
        op = packet["op"]
        if op == "note":
            self._running = Running(packet["number"], packet["began"], packet["deadline"])
        elif op in ("dirty", "over"):
            self._running = None
            self._save_at = time.monotonic() + IDLE_SECONDS
        elif op == "kill":
            if packet["number"] > self._abandoned:
                self._abandoned = packet["number"]
                self._abandon(packet["why"], packet["began"])
        elif op == "separate":
            self._bound_stderr_at = time.monotonic() + STDERR_SECONDS
        elif op == "place":
            self._spec["cwd"] = packet["cwd"]
        elif op == "job":
            self._start_job(packet, fds)
        elif op == "renew":
            self._renew(*fds)
        else:
            # Suppressed: the client that asked has gone.
            with socket.socket(fileno=os.dup(fds[0])) as asker, contextlib.suppress(OSError):
                wire.send(asker, self._answer(op, packet, fds[1:]))

    def _answer(self, op: str, packet: Packet, fds: list[int]) -> Packet:
        if op == "stdin":
            os.dup2(fds[0], self._stdin, inheritable=False)
            return {}
        if op == "save":
            self._save_now()
            return {}
        if op == "late":
            total, data = self._late.since(packet["number"], packet["offset"])
            return {"total": total, "data": data.decode("latin-1")}
        if op == "end":
            return {"ended": self._leftovers.end(packet["pid"], packet["start"], os.getpid(), self._events.reap)}
        if fds:
            self._rotate(packet["number"], fds[0])
        if self._watch is not None and packet.get("call"):
            self._watch.tell_left(packet["call"])
        shell = self._shell.pid if self._shell is not None else 0
        return {"left": self._leftovers.find(proc.tree(os.getpid()), shell, packet["number"])}

    def _rotate(self, command: int, new: int) -> None:
        """A process still holds the command's pipe: keep reading it separately, and give the next command a new one."""
        old = os.dup(self._files.out)
        late = self._late.add(command, old)
        os.dup2(new, self._files.out, inheritable=False)

        def read() -> None:
            if not late.read():
                self._events.unwatch(old)

        self._events.watch(old, read)

    def _start_job(self, packet: Packet, fds: list[int]) -> None:
        if not packet["busy"] and self._snapshot.command != packet["number"]:
            self._save_now()
        state = wire.read_whole(self._snapshot.fd)
        env = {} if self._snapshot.known else self._spec["env"]
        job = {**packet, "env": env, "shell_cwd": self._snapshot.cwd or self._spec["cwd"], "program": self._program}
        folder = JobFiles(fds[2], fds[3], (fds[4], fds[5]))
        watch = None
        if self._watch is not None and packet.get("call"):
            about = {
                "op": "listener",
                "job": packet["id"],
                "call": packet["call"],
                "owner": self._watch.packet["shell"],
            }
            watch = Watch(self._watch.socket, about)
        started = start_job_supervisor(job, state, answer=fds[0], text=fds[1], folder=folder, watch=watch)
        if started is None:
            return
        pid, start = started
        self._leftovers.keep(pid, start, survives=packet["survives"])
        if not packet["survives"]:
            self._job_folders.append(packet["folder"])
        notice = {"pid": pid, "start": start, "survives": packet["survives"], "folder": packet["folder"]}
        notice["is_watched"] = watch is not None
        with contextlib.suppress(OSError):  # it was killed; then nothing cleans up after this process
            wire.send(self._fork_server, {**notice, "supervisor": os.getpid()})

    def _save_now(self) -> None:
        shell = self._shell
        if shell is not None:
            shell.ask(bash_template.SNAPSHOT)
            self._wait(FRESH_STATE_SECONDS, until=lambda: shell.asked == 0 or shell.status is not None)

    # The event loop

    def _check_deadlines(self) -> None:
        now = time.monotonic()
        if self._ready_by is not None and now >= self._ready_by and self._shell is not None:
            # With the restored state the shell does not work.
            proc.signal_each([self._shell.pid], signal.SIGKILL)
            self._ready_by = now + READY_SECONDS
        running = self._running
        if running is not None and running.deadline is not None and now >= running.deadline + CLIENT_FIRST_SECONDS:
            self._running = None
            if running.number > self._abandoned:
                self._abandoned = running.number
                self._abandon("timeout", running.began)
        if self._bound_stderr_at is not None and now >= self._bound_stderr_at:
            # It is in memory, and what a command has left running can write there for ever.
            self._bound_stderr_at = now + STDERR_SECONDS
            if os.fstat(self._stderr).st_size > MAX_STDERR_BYTES:
                os.ftruncate(self._stderr, 0)
        if self._save_at is not None and now >= self._save_at:
            self._save_at = None
            if running is None and self._shell is not None:  # a command that runs now is followed by another save
                self._shell.ask(bash_template.SNAPSHOT)

    def _milliseconds_to_wait(self) -> float | None:
        wanted = (self._ready_by, self._save_at, self._bound_stderr_at)
        times = [time for time in wanted if time is not None]
        if self._running is not None and self._running.deadline is not None:
            times.append(self._running.deadline + CLIENT_FIRST_SECONDS)
        return max(0.0, min(times) - time.monotonic()) * 1000 + 0.5 if times else None

    def _wait(self, seconds: float, *, until: Callable[[], bool]) -> None:
        """Wait without serving the client, but read the reports of bash: a state may be larger than a pipe."""
        end = time.monotonic() + seconds
        poll = select.poll()
        poll.register(self._events.signals, select.POLLIN)
        if self._shell is not None:
            poll.register(self._shell.state, select.POLLIN)
        while not until() and time.monotonic() < end:
            poll.poll(2)
            self._on_reports()
            self._events.reap()

    def _on_child(self, pid: int, status: int) -> None:
        if self._shell is not None and pid == self._shell.pid:
            self._shell.status = status
        self._leftovers.forget(pid)

    def _everything(self) -> list[int]:
        return self._leftovers.not_surviving(proc.tree(os.getpid()))

    def _notify(self, packet: Packet, fds: list[int] | None = None) -> None:
        try:
            wire.send(self._client, packet, fds or ())
        except BlockingIOError:
            pass  # the client has not read for long: it finds out when it does
        except OSError:
            self._is_ending = True

    def _give_up(self, reason: str) -> None:
        self._notify({"op": "fatal", "reason": reason})
        self._is_ending = True

    def _end(self) -> None:
        self._is_ending = True
