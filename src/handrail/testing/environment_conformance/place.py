"""What a check is, how it reports a failure, and what it works with: an environment, and shortcuts to use it."""

from __future__ import annotations

import contextlib
import inspect
import os
import random
import re
import shlex
import threading
import time
import unittest
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import wait
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

from ...base.workers import pool
from ...environments.base import CommandResult, Environment
from ...environments.errors import EnvironmentClosed
from ...environments.shell_host import proc
from ...types import CancelToken

MakeEnvironment = Callable[[], Environment]
BreakConnection = Callable[[Environment], object]
LIMIT_SECONDS = 0.5
_POLL_SECONDS = 0.01
CheckFunction = Callable[[Any], None]  # takes a `Place`
_MAX_SHOWN = 300


class ConformanceFailure(AssertionError):
    """An environment does not keep a promise; the message says which one, and what was found instead."""


class NotApplicable(unittest.SkipTest):
    """The environment does not claim what the check is about, or the caller gave no means to try it."""


@dataclass(frozen=True, slots=True)
class Check:
    """One promise. `quick` ones take well under a second; `fresh` ones need their own environment."""

    name: str
    sentence: str
    function: CheckFunction
    quick: bool
    fresh: bool

    def __str__(self) -> str:
        return self.name


def check(*, quick: bool = True, fresh: bool = False) -> Callable[[CheckFunction], Check]:
    """Make a check from a function: its docstring is the promise, its module and name are the check's name."""

    def make(function: CheckFunction) -> Check:
        theme = function.__module__.rpartition(".")[2]
        sentence = " ".join((inspect.getdoc(function) or "").split())
        return Check(f"{theme}.{function.__name__}", sentence, function, quick, fresh)

    return make


def checks_of(theme: ModuleType) -> Iterator[Check]:
    """A theme is a module, whose public functions are checks, and a file of transcripts."""
    for name, one in vars(theme).items():
        if isinstance(one, Check):
            yield one
        elif inspect.isfunction(one) and one.__module__ == theme.__name__ and not name.startswith("_"):
            yield check()(one)
    yield from transcripts(Path(str(theme.__file__)).with_suffix(".txt"))


# One command of a transcript: the sign after its `$`, the command, its output and its exit code.
_Step = tuple[str, str, str, int]


def transcripts(path: Path) -> Iterator[Check]:
    """The checks of a file, each a section: its name (and `fresh`), its promise, and commands with what they print. `$ command`
    is followed by its output and, unless that is 0, its exit code in brackets. `$? command` may print anything, and only a code
    that is given counts. `$! command` ends the shell, which its result says and the next one does not. `$~ command` does not
    end by itself before its time limit. `> ` goes on with a command; `{folder}` is an empty folder, and processes that `sleep
    {nap}` are the check's own."""
    sections = re.split(r"(?m)^== (\w+)( fresh)?\n", path.read_text("utf-8"))[1:] if path.exists() else []
    for name, fresh, text in zip(sections[::3], sections[1::3], sections[2::3], strict=True):
        sentence, *parts = re.split(r"(?m)^\$(?=[?!~ \n])", text)
        steps = [_step(part) for part in parts]
        yield Check(f"{path.stem}.{name}", " ".join(sentence.split()), partial(_play, steps), True, bool(fresh))


def _step(text: str) -> _Step:
    first, *lines = text.rstrip("\n").split("\n")
    more = [line[2:] for line in lines if line.startswith("> ")]
    code = next((int(line[1:-1]) for line in lines if re.fullmatch(r"\[\d+\]", line)), 0)
    output = "".join(f"{line}\n" for line in lines if not re.match(r"> |\[\d+\]$", line))
    return first[:1].strip(), "\n".join([first[1:].lstrip(), *more]), output, code


def _play(steps: Sequence[_Step], place: Place) -> None:
    before, nap = "", place.nap()
    for kind, command, output, code in steps:
        command = command.replace("{nap}", nap)
        if "{folder}" in command:
            command = command.replace("{folder}", shlex.quote(place.folder))
        if kind == "~":
            place.is_ended(command, nap)
            continue
        result = place.run(command) if kind == "?" else place.says(command, output, code=code)
        if code:
            expect(result.exit_code, code, f"exit code of `{_short(command)}`")
        if kind == "!":
            expect_that(result.restarted is not None, "the result does not say that the shell is another one now")
        elif before == "!":
            expect_that(result.restarted is None, "a result speaks of a new shell where nothing had ended the old one")
        before = kind


def expect(found: Any, wanted: Any, what: str) -> None:
    if found != wanted:
        raise ConformanceFailure(f"{what}: expected {_shown(wanted)}, found {_shown(found)}")


def expect_that(is_so: object, complaint: str) -> None:
    if not is_so:
        raise ConformanceFailure(complaint)


def expect_error(kind: type[Exception], call: Callable[[], object], what: str) -> None:
    """`call` has to raise it, with a message."""
    try:
        found = call()
    except kind as error:
        expect_that(str(error).strip(), f"{what}: {type(error).__name__} was raised without a message")
        return
    raise ConformanceFailure(f"{what}: expected {kind.__name__}, but nothing was raised (it returned {_shown(found)})")


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _MAX_SHOWN else f"{text[: _MAX_SHOWN // 2]}…{text[-_MAX_SHOWN // 2 :]}"


class Running:
    """A command that runs in another thread. `outcome` is its result, or the exception."""

    def __init__(self, environment: Environment, command: str, timeout: float) -> None:
        self.cancel = CancelToken()
        self._command, self._timeout = command, timeout
        self._has_printed, self._has_news = False, threading.Event()
        how: Any = {"timeout": timeout, "cancel": self.cancel, "on_output": self._note_output}
        self._run = partial(environment.execute, command, **how)

    def __enter__(self) -> Running:
        self._work = pool.submit(self._run)
        self._work.add_done_callback(lambda _: self._has_news.set())  # there is nothing more to wait for
        self._has_news.wait(self._timeout)
        expect_that(self._has_printed, f"`{self._command}` printed nothing while it ran")
        return self

    def __exit__(self, *_: object) -> None:
        self.cancel.cancel()
        wait([self._work], self._timeout)

    @property
    def outcome(self) -> CommandResult | BaseException | None:
        return (self._work.exception() or self._work.result()) if self._work.done() else None

    def end(self) -> CommandResult | BaseException:
        """Wait for it."""
        wait([self._work], self._timeout)
        if self.outcome is None:
            raise ConformanceFailure(f"the call of `{self._command}` does not return")
        return self.outcome

    def _note_output(self, _: bytes) -> None:
        self._has_printed = True
        self._has_news.set()


@dataclass
class Place:
    """`env` is the environment to check. What a check makes here is removed afterwards."""

    env: Environment
    make: MakeEnvironment
    patience: float
    flood_seconds: float
    break_connection: BreakConnection | None

    def __post_init__(self) -> None:
        # What is still there when a call returns gets this long to disappear from the process table.
        self._gone_seconds = self.patience / 3
        self._start, self._folder, self._others = self.env.cwd, "", list[Any]()

    @property
    def folder(self) -> str:
        """An empty folder inside."""
        if not self._folder:
            self._folder = self.text('cd "$(mktemp -d)" && pwd -P && cd - >/dev/null').rstrip("\n")
            expect_that(self._folder.startswith("/"), f"mktemp -d returned no folder, but {self._folder!r}")
        return self._folder

    def run(self, command: str, **options: object) -> CommandResult:
        """Run a command that should end by itself."""
        return self.env.execute(command, **{"timeout": self.patience, **options})  # type: ignore[arg-type]

    def text(self, command: str, **options: object) -> str:
        return text(self.run(command, **options))

    def says(self, command: str, wanted: str, *, code: int = 0, **options: object) -> CommandResult:
        """Run it, and expect this output and exit code."""
        result = self.run(command, **options)
        expect(text(result), wanted, f"output of `{_short(command)}`")
        expect(result.exit_code, code, f"exit code of `{_short(command)}`")
        return result

    def works(self) -> None:
        """The next command runs as if nothing had happened."""
        self.says("echo goes on", "goes on\n")

    def is_ended(self, command: str, nap: str) -> None:
        """Run a command that is over its time limit: it ends then, with all that it started."""
        # What is hoped for is less than a tenth of a second over the limit; this is for busy machines.
        with takes_at_most(LIMIT_SECONDS + self.patience / 2, f"a limit of {LIMIT_SECONDS} s"):
            result = self.run(command, timeout=LIMIT_SECONDS)
        expect_that(result.timed_out, "the result does not say that the time was over")
        expect(result.exit_code, 124, "exit code")
        self.expect_gone(nap, "what the command started")
        self.works()

    def running(self, command: str, env: Environment | None = None) -> Running:
        """Run it in another thread. Entering waits for its first output."""
        return Running(env or self.env, command, self.patience)

    def another(self) -> Environment:
        """One more environment, closed when the check is over."""
        other = self.make()
        self._others.append(other)
        return other

    def needs_pty(self) -> None:
        if not self.env.has_pty:
            raise NotApplicable("the environment has no terminals")

    # Processes are identified by how long they sleep.

    def nap(self) -> str:
        """A number of seconds that no other process on the machine sleeps for."""
        return str(random.randrange(10**8, 10**9))

    def is_asleep(self, nap: str, env: Environment | None = None) -> bool:
        """Whether one runs inside, or on this machine: commands may see only processes of their own."""
        # The pattern does not match the command line of grep itself.
        look = f"grep -ls '{nap[:-1]}[{nap[-1]}]' /proc/[0-9]*/cmdline"
        # Not by its exit code, which also shows that some process ended before it was read.
        is_inside = bool((env or self.env).execute(look, timeout=self.patience).output.head)
        here = (int(name) for name in os.listdir("/proc") if name.isdigit())
        return is_inside or any(proc.command_line(pid) == f"sleep {nap}" for pid in here)

    def wait_until_asleep(self, nap: str) -> None:
        self.wait_until(lambda: self.is_asleep(nap), f"`sleep {nap}` did not start")

    def expect_gone(self, nap: str, what: str, env: Environment | None = None) -> None:
        self.wait_until(lambda: not self.is_asleep(nap, env), f"{what} is still running", self._gone_seconds)

    def wait_until(self, condition: Callable[[], object], complaint: str, seconds: float | None = None) -> None:
        end = time.monotonic() + (self.patience if seconds is None else seconds)
        while not condition():
            expect_that(time.monotonic() < end, complaint)
            time.sleep(_POLL_SECONDS)

    def wait_until_none(self, find: Callable[[], object], what: str) -> None:
        """Wait until `find` returns nothing; what it still returns at the end is in the message."""
        end = time.monotonic() + self._gone_seconds
        while (found := find()) and time.monotonic() < end:
            time.sleep(_POLL_SECONDS)
        expect_that(not found, f"{what}: {found}")

    def clean_up(self) -> None:
        for other in self._others:
            other.close()
        if not self._folder:
            return
        remove = f"cd {shlex.quote(self._start)}; rm -rf {shlex.quote(self._folder)}"
        try:
            self.env.execute(remove, timeout=self.patience)
        except EnvironmentClosed:
            with contextlib.closing(self.make()) as other:
                other.execute(remove, timeout=self.patience)


def text(result: CommandResult) -> str:
    """What was kept of its output, in one string."""
    return (result.output.head + result.output.tail).decode("utf-8", "replace")


@contextlib.contextmanager
def takes_at_most(seconds: float, what: str) -> Iterator[None]:
    began = time.monotonic()
    yield
    taken = time.monotonic() - began
    expect_that(taken <= seconds, f"{what} took {taken:.1f} s, and at most {seconds:.1f} s are allowed")


def _short(command: str) -> str:
    return command if len(command) <= 60 else command[:59] + "…"
