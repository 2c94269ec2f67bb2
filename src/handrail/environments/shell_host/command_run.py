"""One command while it runs in a shell."""

from __future__ import annotations

import re
import time
from typing import Callable, NamedTuple  # noqa: UP035  Python 3.8 knows no other place

from . import bash_template
from .wire import Packet

CODE_TIMEOUT, CODE_CANCELLED, CODE_KILLED, CODE_TERMINATED = 124, 130, 137, 143
NOTE_AFTER_SECONDS = 0.02
_HOLD_POLL_MILLISECONDS = 50
_CODE_OF_REASON = {"timeout": CODE_TIMEOUT, "cancelled": CODE_CANCELLED}

# Words that can end the shell without its EXIT trap, so that the state is saved first. The kill commands can also end the
# supervisor, which must have the state before that.
_RISKY = re.compile(rb"\b(?:exec|trap|kill|pkill|killall)\b")
# Commands that cannot change the shell's variables, options or directory as long as it has no functions, aliases and traps: plain
# words, strings and variables, in lists and pipelines with redirections, of programs that are neither keywords nor builtins which
# change the shell.
_CHANGING = (
    rb"\.|\[\[|alias|bg|bind|break|builtin|case|cd|command|compgen|complete|compopt|continue|coproc|declare|dirs|disown|do|done|elif"
    rb"|else|enable|esac|eval|exec|exit|export|fc|fg|fi|for|function|getopts|hash|history|if|in|jobs|kill|let|local|logout|mapfile"
    rb"|popd|printf|pushd|read|readarray|readonly|return|select|set|shift|shopt|source|suspend|test|then|time|trap|typeset|ulimit"
    rb"|umask|unalias|unset|until|wait|while"
)
_PROGRAM = rb"(?!(?:" + _CHANGING + rb")(?:[ \t\n;|&<>]|\Z))[\w./+@%:,-]+(?=[ \t\n;|&<>]|\Z)"
_WORD = rb"(?:[^\s'\"$`\\;&|<>(){}!#]|'[^']*'|\"[^\"$`\\]*\"|\$[\w?])+"
_MORE = rb"(?:[ \t]+" + _WORD + rb"|[ \t]*[012]?(?:>>?|<)[ \t]*" + _WORD + rb"|[ \t]*[012]?>&[12](?![^ \t\n;|&<>]))*"
_SIMPLE = _PROGRAM + _MORE + rb"[ \t]*"
_KEEPS_STATE = re.compile(rb"\s*" + _SIMPLE + rb"(?:(?:\|\||&&|\||;|\n)[ \t]*" + _SIMPLE + rb")*\n*\Z")
_MAX_KEEPING_BYTES, _MAX_SIMPLE_BYTES = 2000, 1 << 15
_LAST_STATUS = re.compile(rb"\$\{?#?\?|PIPESTATUS")
# After this, an added line would become part of the command.
_OPEN_ENDED = re.compile(rb"<<|[|&\\]\s*\Z")

# Reads from the output pipe, as much as it likes: returns the number of bytes, 0 at the end. Raises BlockingIOError if empty.
Reader = Callable[[int], int]


class Command(NamedTuple):
    text: bytes
    cwd: bytes = b""
    stdin: bytes | None = None
    timeout: float | None = None
    call: int = 0  # the call that what it changes is written down for; 0 for none
    separate: bool = False  # its stderr is kept apart from its output
    is_tried: bool = False  # its connections wait for an answer

    @property
    def is_simple(self) -> bool:
        """Whether nothing has to be prepared for it."""
        is_plain = self.stdin is None and not self.separate and len(self.text) <= _MAX_SIMPLE_BYTES
        return is_plain and _RISKY.search(self.text) is None


class Ended(NamedTuple):
    """How a command ended."""

    number: int
    code: int | None  # None: it did not run, as its working directory could not be entered
    why: str  # timeout, cancelled, or nothing
    cwd: str
    restarted: str  # why the shell is another one than before: ended, timeout, cancelled, supervisor; or nothing
    state: str  # and what the new one started with: kept, snapshot, older, clean
    left: list[Packet]  # processes that the command left running
    is_changed: bool = False  # whether its call has changed something so far
    stderr: bytes = b""  # for a command whose stderr is kept apart: of a long one the end


class CommandRun:
    """A command's progress and result so far."""

    __slots__ = (
        "_last_codes", "began", "code", "codes", "command", "deadline", "has_big_pipe", "held_at", "holds", "is_given", "is_held",
        "is_noted", "is_over", "keeps", "last_background", "may_block", "must_save", "number", "read", "why", "words", "writer",
    )  # fmt: skip

    def __init__(self, number: int, command: Command, read: Reader, last_codes: tuple[int, ...]) -> None:
        self.number, self.command, self.read = number, command, read
        self.may_block = False
        self.holds, self.held_at = 0, 0.0  # system calls of it that wait for an answer, and since when
        self.began = time.monotonic()
        self.deadline = None if command.timeout is None else self.began + command.timeout
        self.writer = -1  # our own writing end of the output pipe, so that it does not end before the command
        self.is_given = self.is_noted = self.is_over = self.is_held = self.has_big_pipe = False
        self.code: int | None = None
        self.codes: tuple[int, ...] = (0,)
        self.last_background = b""  # the shell's `$!`
        self.why = ""
        self._last_codes = last_codes
        self.keeps = False  # the shell is the same after it as before
        self.words = bash_template.RUN_ELSEWHERE if command.cwd else bash_template.RUN
        is_risky = _RISKY.search(command.text) is not None
        self.must_save = is_risky and b"kill" in command.text
        if is_risky:
            self.words = bash_template.DUMP + self.words

    @property
    def keeps_state(self) -> bool:
        """Whether a shell without functions, aliases and traps is the same after it as before."""
        text = self.command.text
        return len(text) <= _MAX_KEEPING_BYTES and _KEEPS_STATE.match(text) is not None

    def text_fields(self, stdin_path: str, stderr_path: str) -> bytes:
        """The fields of TEXT that bash reads."""
        text, refers_to = self.command.text, b""
        if b"|" in text and not _OPEN_ENDED.search(text):
            text = bash_template.with_pipe_status(text)
        if self._last_codes != (0,) and _LAST_STATUS.search(self.command.text):
            text, refers_to = bash_template.after_status(self._last_codes), text
        if self.command.separate:
            text, refers_to = bash_template.with_stderr_in(stderr_path, text, refers_to)
        flags = bash_template.FLAG_TRAP if b"trap" in self.command.text else b""
        if self.keeps and self.words == bash_template.RUN and self.command.stdin is None:
            flags = bash_template.FLAG_KEEPS
        stdin = b"/dev/null" if self.command.stdin is None else stdin_path.encode()
        fields = (b"%d" % self.number, flags, stdin, self.command.cwd, text, refers_to, b"")
        return b"\0".join(fields)

    def take_reply(self, reply: bytes) -> bool:
        """Whether this reply on the channel DONE ends it. A forged report, or one of an earlier command, has another number."""
        number = b"%d" % self.number
        for report in reply.split(b";"):
            words = report.split()
            if len(words) < 2 or words[0] != number:
                continue
            self.is_over = True
            if words[1].isdigit():
                self.code = int(words[1])
                # bash repeats the code before the list of codes
                self.codes = tuple([int(word) for word in words[4:] if word.isdigit()]) or (self.code,)
            self.last_background = words[2] if len(words) > 2 else b""
            return True
        return False

    def count_hold(self, more: int) -> None:
        """One more, or one less, of its system calls waits for an answer: its time stands still as long as there is one."""
        if self.holds == 0:
            self.held_at = time.monotonic()
        self.holds += more
        if self.holds == 0 and self.deadline is not None:
            self.deadline += time.monotonic() - self.held_at

    @property
    def milliseconds_to_wait(self) -> float | None:
        """Until something is to be done about its time."""
        if self.deadline is None:
            return None
        if self.holds:
            return _HOLD_POLL_MILLISECONDS
        until = self.deadline if self.is_noted else min(self.deadline, self.began + NOTE_AFTER_SECONDS)
        return max(0.0, until - time.monotonic()) * 1000 + 0.2

    @property
    def was_ended_late(self) -> bool:
        """On a busy machine the supervisor may enforce the timeout before the client does. A shell whose traps were removed then
        goes on after what was killed, and reports how that ended, until it is killed itself."""
        is_late = self.is_noted and self.deadline is not None and time.monotonic() >= self.deadline
        return is_late and self.code in (CODE_TERMINATED, CODE_KILLED)

    def end(self, code: int, why: str = "") -> None:
        """Record that it ended with the shell."""
        self.is_over = True
        self.why = why
        self.code = _CODE_OF_REASON.get(why, code)
        self.codes = (self.code,)
