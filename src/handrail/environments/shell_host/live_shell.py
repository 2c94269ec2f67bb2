"""Runs commands in a supervisor's bash, one at a time.

The client owns the output pipe and talks to bash directly: a command costs two wake-ups, bash's and the client's. Its notices to
the supervisor are one-way and rare.
"""

from __future__ import annotations

import contextlib
import os
import select
import threading
import time
from fcntl import fcntl
from typing import Callable, Optional  # noqa: UP035  Python 3.8 knows no other place

from . import proc, wire
from .bash_template import CLOSE_OUT, SNAPSHOT
from .command_run import CODE_KILLED, NOTE_AFTER_SECONDS, Command, CommandRun, Ended, Reader
from .connection import Connection, Fatal, Lost
from .wire import ClientPage, Packet

DIRTY_EVERY_SECONDS = 0.1
BUSY_SECONDS = 0.25  # longer than a supervisor waits before it saves the state
HELD_SECONDS, _HELD_POLLS = 0.02, 20
_SUBSTITUTION_POLLS = 500  # of a process in `> >(tee)`, which ends with the command, on a busy machine not at once
SHORT_MILLISECONDS, KILL_SECONDS = 1, 3.0
_USUAL_PIPE, _BIG_PIPE, _F_SETPIPE_SZ = 1 << 16, 1 << 20, 1031
_MAX_TRIES, _BETWEEN_TRIES_SECONDS, _SHOWN_BYTES = 8, 0.02, 300

Connect = Callable[[Optional[bytes], int], Connection]  # noqa: UP045  the same


class LiveShell:
    """`connect` opens a connection to a new supervisor. The first one gets `state`, the state of a previous shell.

    Each gets the descriptor of the call page.
    """

    def __init__(self, connect: Connect, state: bytes | None = None) -> None:
        self._open_connection = connect
        self._page = ClientPage()
        self.on_saved: Callable[[bytes], None] = lambda _: None
        self.others: dict[int, Callable[[], None]] = {}  # other descriptors to serve while a command runs
        self._lock = threading.Lock()
        self._number = self._running = 0
        self._run: CommandRun | None = None
        self._began = self._dirty_at = 0.0
        self._busy_until = time.monotonic() + BUSY_SECONDS
        self._killed_at: float | None = None
        self._killed_why = ""
        self._last_codes: tuple[int, ...] = (0,)
        self._restart = ("", "")
        self._known = 0  # the command whose state, or saved state, the current bash started with
        self._changed = (0, 0)  # the last command that may have changed the shell: before the current one, and with it
        self._connect(state)

    def run(
        self, command: Command, read: Reader, *, may_block: bool = False, on_begin: Callable[[int], None] | None = None
    ) -> Ended:
        """Run to the end. `may_block`: `read` may take long. `on_begin` gets the number that `kill` takes."""
        if self.connection.plain_at < self._changed[1]:
            self.receive_while_idle()
        run = self._new_run(command, read)
        run.may_block = may_block
        return self.finish(run, on_begin)

    def begin(self, command: Command, read: Reader) -> CommandRun | None:
        """Give bash a command from a thread that must not wait, which then calls `end` or has another call `finish`. None if
        something has to be waited for first."""
        is_known = self.connection.plain_at >= self._changed[1]
        if not command.is_simple or not (is_known or self.receive_while_idle(reconnects=False)):
            return None
        run = self._new_run(command, read)
        self._begin(run)
        return run

    def end(self, run: CommandRun) -> Ended | None:
        """How a command ended that `begin` began. None if it has not, or something has to be waited for: `finish` it then."""
        if run.is_given:
            self._on_done(run)
        connection = self.connection
        must_end = self._page.has_changed(run.command.call) and not self._page.has_ended(run.command.call)
        if not run.is_over or run.last_background != b"0" or must_end:
            return None
        while count := self._pull(run):
            pass
        if (count is None and not connection.is_bash_alone()) or connection.has_new_children(run.last_background):
            return None
        with self._lock:
            self._running, self._run = 0, None
        return self._report(run)

    def finish(self, run: CommandRun, on_begin: Callable[[int], None] | None = None) -> Ended:
        """Wait until it has ended."""
        try:
            self._try(run, on_begin)
        except (Lost, Fatal):
            raise
        except BaseException:
            self._abort(run)
            raise
        finally:
            with self._lock:
                self._running, self._run = 0, None
        return self._report(run)

    def _new_run(self, command: Command, read: Reader) -> CommandRun:
        self._number += 1
        run = CommandRun(self._number, command, read, self._last_codes)
        # Whether it has functions, aliases and traps is known from a state that nothing has changed since.
        run.keeps = self.connection.plain_at >= self._changed[1] and run.keeps_state
        self._changed = (self._changed[1], self._changed[1] if run.keeps else run.number)
        self._killed_at = None
        self._running, self._began, self._run = run.number, run.began, run
        self._page.begin(command.call, is_tried=command.is_tried)
        return run

    def kill(self, number: int, why: str) -> None:
        """Abandon the command if it still runs. Safe from any thread."""
        with self._lock:
            if number and number == self._running and self._killed_at is None:
                self._killed_at, self._killed_why = time.monotonic(), why
                self.connection.notify({"op": "kill", "number": number, "why": why, "began": self._began})

    def hold(self, call: int) -> Callable[[], None]:
        """The time of a call's command stands still until the returned function is called. Safe from any thread."""
        run = self._run
        if run is None or run.command.call != call:
            return lambda: None
        self._count_hold(run, 1)
        return lambda: self._count_hold(run, -1)

    def _count_hold(self, run: CommandRun, more: int) -> None:
        with self._lock:
            run.count_hold(more)
            if run.is_noted and run is self._run:
                self._note(run)

    def stop(self, call: int) -> None:
        """Abandon the command of a call, if it still runs."""
        run = self._run
        if run is not None and run.command.call == call:
            self.kill(run.number, "cancelled")

    def interrupt(self) -> None:
        """Abandon whatever runs."""
        self.kill(self._running, "cancelled")

    def receive_while_idle(self, *, reconnects: bool = True) -> bool:
        """False if the supervisor is gone, and stays so."""
        try:
            self.connection.receive()
        except Lost:
            if not reconnects:
                return False
            self.reconnect()
        for restart in self.connection.restarts:
            self._restarted(restart.why, restart.state, restart.saved, last=self._number)
            self._last_codes = (0,)
        self.connection.restarts.clear()
        return True

    @property
    def is_running(self) -> bool:
        return self._running != 0

    @property
    def last_number(self) -> int:
        """The number of the command that runs, or ran last."""
        return self._number

    def close(self) -> None:
        self.connection.close()

    # One command

    def _try(self, run: CommandRun, on_begin: Callable[[int], None] | None) -> None:
        for tried in range(_MAX_TRIES):
            # A death is sometimes noticed a moment later, and on a busy machine a long moment.
            if tried > 1:
                time.sleep(_BETWEEN_TRIES_SECONDS * tried)
            try:
                if not run.is_given and not self._begin(run):
                    self.receive_while_idle()
                    continue
                if on_begin is not None:
                    on_begin(run.number)
                    on_begin = None
                self._attend(run)
                self._drain(run)
                return
            except Lost:
                was_read = run.is_given and not self.connection.is_word_unread()
                self._drain(run)
                self.reconnect()
                run.is_given = False
                if was_read:
                    run.end(CODE_KILLED, self._killed_why if self._killed_at is not None else "")
                    return
        raise Lost("it was lost repeatedly before the command could start")

    def _begin(self, run: CommandRun) -> bool:
        """Give bash the command. False if the bash or its supervisor had been replaced: try again."""
        connection = self.connection
        if run.command.stdin is not None:
            content = wire.memory_file("stdin", run.command.stdin)
            try:
                connection.ask("stdin", [content])
            finally:
                os.close(content)
        if run.must_save:
            connection.ask("save")
        if run.command.separate:
            connection.take_stderr()  # what earlier commands have left running may have written there
            connection.notify({"op": "separate"})
        try:
            connection.write_text(run.text_fields(connection.stdin_path, connection.stderr_path))
            # After a pause bash saves its state right after a call's command; otherwise the supervisor finds the time for it.
            has_time = run.command.call != 0 and run.began > self._busy_until
            is_changed = self._changed[1] == run.number
            connection.send_words(run.words + SNAPSHOT if has_time and is_changed else run.words)
        except (FileNotFoundError, BrokenPipeError):
            return False
        run.is_given = True
        self._busy_until = run.began + BUSY_SECONDS
        if is_changed and not has_time and run.began - self._dirty_at > DIRTY_EVERY_SECONDS:
            self._dirty_at = run.began
            connection.notify({"op": "dirty"})
        return True

    def _attend(self, run: CommandRun) -> None:
        connection = self.connection
        # A short command wakes us once, when it is done: its output is in the pipe by then.
        for fd, _ in connection.control_poll.poll(SHORT_MILLISECONDS):
            if fd == connection.done:
                self._on_done(run)
        if run.is_over:
            return
        # From here on the pipe is watched, and must not look ended before bash has opened it.
        if run.writer < 0:
            run.writer = os.open(f"/proc/self/fd/{connection.out}", os.O_WRONLY | os.O_CLOEXEC)
        for fd in self.others:
            connection.poll.register(fd, select.POLLIN)
        try:
            while not run.is_over:
                for fd, _ in connection.poll.poll(100 if self._killed_at is not None else run.milliseconds_to_wait):
                    self._on_ready(fd, run)
                if connection.restarts:
                    self._on_restarts(run)
                if run.deadline is not None or self._killed_at is not None:
                    self._check_deadlines(run)
        finally:
            for fd in self.others:
                connection.poll.unregister(fd)

    def _on_ready(self, fd: int, run: CommandRun) -> None:
        if fd == self.connection.out:
            self._pull(run)
        elif fd == self.connection.done:
            self._on_done(run)
        elif fd == self.connection.fileno():
            self.connection.receive()
        elif fd in self.others:
            self.others[fd]()

    def _pull(self, run: CommandRun) -> int | None:
        """Read from the pipe: how many bytes, 0 at its end, None if it is empty."""
        if run.may_block and run.deadline is not None and not (run.is_noted or run.is_over):
            self._note(run)
        try:
            count = run.read(self.connection.out)
        except BlockingIOError:
            return None
        if count >= _USUAL_PIPE and not run.has_big_pipe:
            run.has_big_pipe = True
            with contextlib.suppress(OSError):  # this user has too many big pipes already; a small one is enough
                fcntl(self.connection.out, _F_SETPIPE_SZ, _BIG_PIPE)
        return count

    def _on_done(self, run: CommandRun) -> None:
        try:
            reply = os.read(self.connection.done, 1 << 16)
        except BlockingIOError:
            return
        with self._lock:
            # After a kill the shell is replaced in any case: wait for that instead.
            if self._killed_at is not None or not run.take_reply(reply):
                return
            if not run.was_ended_late:
                self._running = 0
                return
            run.is_over = False
        self.kill(run.number, "timeout")

    def _on_restarts(self, run: CommandRun) -> None:
        restarts, self.connection.restarts = self.connection.restarts, []
        must_send = False
        for restart in restarts:
            self._restarted(restart.why, restart.state, restart.saved, last=run.number - 1)
            was_killed = restart.why != "ended" and restart.number == run.number
            if run.is_over or must_send:
                continue
            if restart.is_unread and not was_killed:
                must_send = True  # the shell died before it read the command: the new one runs it
            else:
                run.end(restart.code, restart.why if was_killed else "")
        if must_send:
            with contextlib.suppress(BrokenPipeError):  # that one is gone as well: another restart will be reported
                self.connection.send_words(run.words)

    def _check_deadlines(self, run: CommandRun) -> None:
        now = time.monotonic()
        if self._killed_at is not None:
            if now > self._killed_at + KILL_SECONDS:
                self.connection.kill_supervisor()
        elif run.deadline is not None and now >= run.deadline and not run.holds:
            self.kill(run.number, "timeout")
        elif not run.is_noted and now >= run.began + NOTE_AFTER_SECONDS:
            self._note(run)

    def _note(self, run: CommandRun) -> None:
        """From here on the supervisor enforces the timeout as well, whatever happens to this process."""
        run.is_noted = True
        deadline = None if run.holds else run.deadline
        self.connection.notify({"op": "note", "number": run.number, "began": run.began, "deadline": deadline})

    def _drain(self, run: CommandRun) -> None:
        """Read the rest of the output. If a process still holds the pipe, wait a moment."""
        if run.writer >= 0:
            os.close(run.writer)
            run.writer = -1
        polls = max_polls = _SUBSTITUTION_POLLS if b">(" in run.command.text else _HELD_POLLS
        drained, end = 0, 0.0
        while run.is_given:
            count = self._pull(run)
            if count == 0 or (count is None and polls == max_polls and self._is_bash_alone(run)):
                return
            end = end or time.monotonic() + HELD_SECONDS
            drained += count or 0
            # More than the pipe can hold: somebody keeps writing.
            if not polls or (drained > _BIG_PIPE and time.monotonic() > end):
                run.is_held = True
                return
            if count is None:
                polls = self.connection.poll_for_more(polls, HELD_SECONDS * 1000 / _HELD_POLLS)

    def _is_bash_alone(self, run: CommandRun) -> bool:
        """Whether nobody else can hold the pipe, which bash keeps for the next command. If not, make it let go of that."""
        if run.last_background != b"0":
            return False  # it does not keep it then
        if self.connection.is_bash_alone():
            return True
        with contextlib.suppress(BrokenPipeError):  # it is gone, and its end of the pipe too
            self.connection.send_words(CLOSE_OUT)
        return False

    def _abort(self, run: CommandRun) -> None:
        """After the reader failed or the user pressed Ctrl-C: nothing may keep running."""
        run.read, run.may_block = (lambda fd: len(os.read(fd, _USUAL_PIPE))), False
        try:
            if run.is_given and not run.is_over:
                self.kill(run.number, "cancelled")
                self._attend(run)
            self._drain(run)
            self._report(run)
        except Lost:
            self.reconnect()

    def _report(self, run: CommandRun) -> Ended:
        connection = self.connection
        if run.is_noted:
            connection.notify({"op": "over"})
        restarted, state = self._restart
        self._restart, self._last_codes = ("", ""), run.codes
        left: list[Packet] = []
        stderr = connection.take_stderr() if run.command.separate else b""
        try:
            cwd = proc.without_mark(os.readlink(f"/proc/{connection.bash}/cwd"))
            is_new = connection.has_new_children(run.last_background)
            connection.took_children(run.last_background)
            if run.is_held or is_new:
                ask = connection.renew_out if run.is_held else connection.ask_left
                answer = ask(run.number, run.command.call)
                left = [one for one in answer["left"] if one["number"] == run.number]
            for one in left:  # a subshell has no command line of its own
                one["command"] = one["command"] or run.command.text[:_SHOWN_BYTES].decode("utf-8", "replace")
        except (OSError, Lost):
            cwd = connection.cwd  # it has just died; the next command finds out
        # Only the effect watcher can tell that the call is complete. Raises Lost if it is gone.
        call = run.command.call
        is_changed = self._page.has_changed(call)
        if is_changed and (left or not self._page.has_ended(call)):
            is_changed = connection.end_call(call)
        return Ended(run.number, run.code, run.why, cwd, restarted, state, left, is_changed, stderr)

    def _connect(self, state: bytes | None) -> None:
        page = self._page.renew()
        try:
            self.connection = self._open_connection(state, page)
        finally:
            os.close(page)
        self.connection.on_saved = lambda content: self.on_saved(content)

    def reconnect(self) -> None:
        """The supervisor is gone: start another."""
        self.connection.clean_up()
        self._connect(None)
        last = self._number - 1 if self._running else self._number
        self._restarted("supervisor", self.connection.began_with, self.connection.started["saved"], last=last)
        self._last_codes = (0,)

    def _restarted(self, why: str, state: str, saved: int, *, last: int) -> None:
        """`last` is the command whose state the new shell should have."""
        changed = self._changed[last == self._number]
        is_older = state == "snapshot" and max(saved, self._known) < min(last, changed)
        self._restart = (why, "older" if is_older else state)
        self._known = self._number
        self._changed = (self._number, self._number)
