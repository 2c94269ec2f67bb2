"""Runs commands in a keeper's bash, one at a time.

The client owns the output's pipe and speaks to bash directly: a command costs two wake-ups, bash's and the client's. What it
tells the keeper on the way is one-way and rare.
"""

from __future__ import annotations

import contextlib
import os
import select
import threading
import time
from fcntl import fcntl
from typing import Callable, NamedTuple, Optional  # noqa: UP035  Python 3.8 knows no other place

from . import wire
from .command_run import CODE_KILLED, Attempt, Command, Reader
from .connection import Connection, Fatal, Lost
from .wire import Packet

NOTE_AFTER_SECONDS = 0.02
DIRTY_EVERY_SECONDS = 0.1
HELD_SECONDS = 0.02
_HELD_LOOKS = 20
SHORT_MILLISECONDS = 1
KILL_SECONDS = 3.0
_USUAL_PIPE, _BIG_PIPE, _F_SETPIPE_SZ = 1 << 16, 1 << 20, 1031
_MAX_TRIES = 8
_BETWEEN_TRIES_SECONDS = 0.02
_SHOWN_BYTES = 300
_DELETED = " (deleted)"

Connect = Callable[[Optional[bytes]], Connection]  # noqa: UP045  the same


class Ended(NamedTuple):
    """How a command ended."""

    number: int
    code: int | None  # None: it did not run, as its working directory could not be entered
    why: str  # timeout, cancelled, or nothing
    cwd: str
    restarted: str  # why the shell is another one than before: ended, timeout, cancelled, keeper; or nothing
    state: str  # and what the new one began with: kept, snapshot, older, clean
    left: list[Packet]  # processes that the command left running


class LiveShell:
    """`connect` gives a line to a new keeper. It gets `state`, what another shell had, the first time."""

    def __init__(self, connect: Connect, state: bytes | None = None) -> None:
        self._new_line = connect
        self.on_saved: Callable[[bytes], None] = lambda _: None
        self.others: dict[int, Callable[[], None]] = {}  # what else to serve while a command runs
        self._lock = threading.Lock()
        self._number = self._running = 0
        self._began = self._dirty_at = 0.0
        self._killed_at: float | None = None
        self._killed_why = ""
        self._last_codes: tuple[int, ...] = (0,)
        self._restart = ("", "")
        self._known = 0  # the command whose state, or what was saved of it, the bash that is there began with
        self._connect(state)

    def run(
        self, command: Command, read: Reader, *, may_block: bool = False, on_begin: Callable[[int], None] | None = None
    ) -> Ended:
        """Run to the end. `may_block` says that `read` may take long. `on_begin` hears the number that `kill` takes."""
        self._number += 1
        attempt = Attempt(self._number, command, read, self._last_codes)
        attempt.may_block = may_block
        self._killed_at = None
        self._running, self._began = attempt.number, attempt.began
        try:
            self._try(attempt, on_begin)
        except (Lost, Fatal):
            raise
        except BaseException:
            self._abort(attempt)
            raise
        finally:
            self._running = 0
        return self._report(attempt)

    def kill(self, number: int, why: str) -> None:
        """Abandon the command, if it still runs. Any thread may."""
        with self._lock:
            if number and number == self._running and self._killed_at is None:
                self._killed_at, self._killed_why = time.monotonic(), why
                self.line.tell({"op": "kill", "number": number, "why": why, "began": self._began})

    def interrupt(self) -> None:
        """Abandon whatever runs."""
        self.kill(self._running, "cancelled")

    def hear_while_idle(self) -> None:
        try:
            self.line.hear()
        except Lost:
            self.reconnect()
        for birth in self.line.births:
            self._restarted(birth.why, birth.state, birth.saved, last=self._number)
            self._last_codes = (0,)
        self.line.births.clear()

    @property
    def is_running(self) -> bool:
        return self._running != 0

    @property
    def last_number(self) -> int:
        """Of the command that runs, or ran last."""
        return self._number

    def close(self) -> None:
        self.line.close()

    # One command

    def _try(self, attempt: Attempt, on_begin: Callable[[int], None] | None) -> None:
        for tried in range(_MAX_TRIES):
            # What has died is sometimes noticed a moment later, on a busy machine a long one.
            if tried > 1:
                time.sleep(_BETWEEN_TRIES_SECONDS * tried)
            try:
                if not self._begin(attempt):
                    continue
                if on_begin is not None:
                    on_begin(attempt.number)
                    on_begin = None
                self._attend(attempt)
                self._drain(attempt)
                return
            except Lost:
                was_read = attempt.is_given and not self.line.is_word_unread()
                self._drain(attempt)
                self.reconnect()
                attempt.is_given = False
                if was_read:
                    attempt.end(CODE_KILLED, self._killed_why if self._killed_at is not None else "")
                    return
        raise Lost("it is lost again and again before the command can begin")

    def _begin(self, attempt: Attempt) -> bool:
        """Give bash the command. False when there was another bash, or keeper, than was thought: try again."""
        line = self.line
        if attempt.command.stdin is not None:
            content = wire.memory_file("stdin", attempt.command.stdin)
            try:
                line.ask("stdin", [content])
            finally:
                os.close(content)
        if attempt.must_save:
            line.ask("save")
        try:
            line.write_text(attempt.text_fields(line.stdin_path))
            line.give(attempt.words)
        except (FileNotFoundError, BrokenPipeError):
            self.hear_while_idle()
            return False
        attempt.is_given = True
        if attempt.began - self._dirty_at > DIRTY_EVERY_SECONDS:
            self._dirty_at = attempt.began
            line.tell({"op": "dirty"})
        return True

    def _attend(self, attempt: Attempt) -> None:
        line = self.line
        # A short command wakes us once, when it is done; what it printed is in the pipe then.
        for fd, _ in line.news.poll(SHORT_MILLISECONDS):
            if fd == line.done:
                self._on_done(attempt)
        if attempt.is_over:
            return
        # From here on the pipe is watched, and must not look ended before bash has opened it.
        if attempt.writer < 0:
            attempt.writer = os.open(f"/proc/self/fd/{line.out}", os.O_WRONLY | os.O_CLOEXEC)
        for fd in self.others:
            line.poll.register(fd, select.POLLIN)
        try:
            while not attempt.is_over:
                for fd, _ in line.poll.poll(self._milliseconds_to_wait(attempt)):
                    self._on_ready(fd, attempt)
                if line.births:
                    self._on_births(attempt)
                if attempt.deadline is not None or self._killed_at is not None:
                    self._look_at_the_clock(attempt)
        finally:
            for fd in self.others:
                line.poll.unregister(fd)

    def _on_ready(self, fd: int, attempt: Attempt) -> None:
        if fd == self.line.out:
            self._pull(attempt)
        elif fd == self.line.done:
            self._on_done(attempt)
        elif fd == self.line.fileno():
            self.line.hear()
        elif fd in self.others:
            self.others[fd]()

    def _pull(self, attempt: Attempt) -> int | None:
        """Read from the pipe: how much, 0 at its end, None when it is empty."""
        if attempt.may_block and attempt.deadline is not None and not (attempt.is_noted or attempt.is_over):
            self._note(attempt)
        try:
            count = attempt.read(self.line.out)
        except BlockingIOError:
            return None
        if count >= _USUAL_PIPE and not attempt.has_big_pipe:
            attempt.has_big_pipe = True
            with contextlib.suppress(OSError):  # this user has too many big pipes already; a small one will do
                fcntl(self.line.out, _F_SETPIPE_SZ, _BIG_PIPE)
        return count

    def _on_done(self, attempt: Attempt) -> None:
        try:
            reply = os.read(self.line.done, 1 << 16)
        except BlockingIOError:
            return
        with self._lock:
            # Once it was to be killed, the shell is replaced whatever happens: that is the end to wait for.
            if self._killed_at is None and attempt.hear(reply):
                self._running = 0

    def _on_births(self, attempt: Attempt) -> None:
        births, self.line.births = self.line.births, []
        must_give = False
        for birth in births:
            self._restarted(birth.why, birth.state, birth.saved, last=attempt.number - 1)
            was_meant = birth.why != "ended" and birth.number == attempt.number
            if attempt.is_over or must_give:
                continue
            if birth.is_unread and not was_meant:
                must_give = True  # the shell died before it had read the command: the new one runs it
            else:
                attempt.end(birth.code, birth.why if was_meant else "")
        if must_give:
            with contextlib.suppress(BrokenPipeError):  # that one is gone as well, and the next will be told of
                self.line.give(attempt.words)

    def _look_at_the_clock(self, attempt: Attempt) -> None:
        now = time.monotonic()
        if self._killed_at is not None:
            if now > self._killed_at + KILL_SECONDS:
                self.line.kill_keeper()
        elif attempt.deadline is not None and now >= attempt.deadline:
            self.kill(attempt.number, "timeout")
        elif not attempt.is_noted and now >= attempt.began + NOTE_AFTER_SECONDS:
            self._note(attempt)

    def _milliseconds_to_wait(self, attempt: Attempt) -> float | None:
        if self._killed_at is not None:
            return 100
        if attempt.deadline is None:
            return None
        until = attempt.deadline if attempt.is_noted else min(attempt.deadline, attempt.began + NOTE_AFTER_SECONDS)
        return max(0.0, until - time.monotonic()) * 1000 + 0.2

    def _note(self, attempt: Attempt) -> None:
        """From here on the keeper holds the time limit as well, whatever becomes of this process."""
        attempt.is_noted = True
        self.line.tell({"op": "note", "number": attempt.number, "began": attempt.began, "deadline": attempt.deadline})

    def _drain(self, attempt: Attempt) -> None:
        """What the command printed is in the pipe. If somebody still holds it, give him a moment: `> >(tee)` ends at once."""
        if attempt.writer >= 0:
            os.close(attempt.writer)
            attempt.writer = -1
        drained, looks, end = 0, _HELD_LOOKS, 0.0
        while attempt.is_given:
            count = self._pull(attempt)
            if count == 0:
                return
            end = end or time.monotonic() + HELD_SECONDS
            drained += count or 0
            # More than the pipe held at the end: it goes on and on.
            if not looks or (drained > _BIG_PIPE and time.monotonic() > end):
                attempt.is_held = True
                return
            if count is None:
                looks = self._look_for_more(looks)

    def _look_for_more(self, looks: int) -> int:
        """How many looks are left when there is more. Each is short, and takes longer on a machine that is slow for all."""
        poll = select.poll()
        poll.register(self.line.out, select.POLLIN)
        while looks > 0:
            looks -= 1
            if poll.poll(HELD_SECONDS * 1000 / _HELD_LOOKS):
                break
        return looks

    def _abort(self, attempt: Attempt) -> None:
        """The reader failed, or the user pressed Ctrl-C: nothing may go on running."""
        attempt.read, attempt.may_block = _discard, False
        try:
            if attempt.is_given and not attempt.is_over:
                self.kill(attempt.number, "cancelled")
                self._attend(attempt)
            self._drain(attempt)
            self._report(attempt)
        except Lost:
            self.reconnect()

    def _report(self, attempt: Attempt) -> Ended:
        line = self.line
        if attempt.is_noted:
            line.tell({"op": "over"})
        restarted, state = self._restart
        self._restart, self._last_codes = ("", ""), attempt.codes
        left: list[Packet] = []
        try:
            cwd = _without_mark(line.cwd_of_bash())
            if attempt.is_held or line.has_new_family(attempt.last_background):
                answer = line.renew_out(attempt.number) if attempt.is_held else line.ask("left", number=attempt.number)
                left = [one for one in answer["left"] if one["number"] == attempt.number]
            for one in left:  # a subshell has no words of its own
                one["command"] = one["command"] or attempt.command.text[:_SHOWN_BYTES].decode("utf-8", "replace")
        except (OSError, Lost):
            cwd = line.cwd  # it died just now; the next command finds out
        return Ended(attempt.number, attempt.code, attempt.why, cwd, restarted, state, left)

    def _connect(self, state: bytes | None) -> None:
        self.line = self._new_line(state)
        self.line.on_saved = lambda content: self.on_saved(content)

    def reconnect(self) -> None:
        """The keeper is gone: have another."""
        self.line.bury()
        self._connect(None)
        last = self._number - 1 if self._running else self._number
        self._restarted("keeper", self.line.began_with, self.line.birth["saved"], last=last)
        self._last_codes = (0,)

    def _restarted(self, why: str, state: str, saved: int, *, last: int) -> None:
        """`last` is the command whose state should be there."""
        is_older = state == "snapshot" and max(saved, self._known) < last
        self._restart = (why, "older" if is_older else state)
        self._known = self._number


def _without_mark(path: str) -> str:
    """The system marks a directory that was removed. Whoever makes a file there means the place by its name."""
    return path[: -len(_DELETED)] if path.endswith(_DELETED) and not os.path.isdir(path) else path


def _discard(fd: int) -> int:
    return len(os.read(fd, 1 << 16))
