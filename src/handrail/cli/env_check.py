"""Whether an environment does what commands count on: a few things that each take moments."""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from ..errors import HandrailError
from ..testing.environment_conformance import Conformance, Verdict, checks

if TYPE_CHECKING:
    from ..environments.base import Environment

_PATIENCE_SECONDS = 30.0


class Checked(NamedTuple):
    """How one check went. `problem` is empty when it went well."""

    name: str
    problem: str
    seconds: float


class Broken(Exception):
    """What an environment does not do."""


def check(make: Callable[[], Environment]) -> Iterator[Checked]:
    """Try one new environment. After it could not be started there is nothing more to try."""
    environment: Environment | None = None
    try:
        environment = make()
        for name, function in _CHECKS:
            began = time.perf_counter()
            problem = _problem(function, environment)
            yield Checked(name, problem, time.perf_counter() - began)
            if problem and function is _start:
                return
    finally:
        if environment is not None:
            environment.close()


def check_all(make: Callable[[], Environment]) -> Iterator[Checked]:
    """Try all of the conformance kit. What the environment says that it cannot do is left out."""
    with Conformance(make) as subject:
        for one in checks():
            [outcome] = subject.run([one]).outcomes
            if outcome.verdict is not Verdict.DOES_NOT_APPLY:
                yield Checked(one.sentence, outcome.message, outcome.seconds)


def _problem(function: Callable[[Environment], None], environment: Environment) -> str:
    try:
        function(environment)
    except Broken as broken:
        return str(broken)
    except (HandrailError, OSError) as error:
        return f"{error}"
    return ""


def _start(environment: Environment) -> None:
    environment.start()


def _exit_codes(environment: Environment) -> None:
    ended = environment.execute("echo out; echo err >&2; (exit 7)", timeout=_PATIENCE_SECONDS)
    _expect(ended.exit_code, 7, "the exit code")
    _expect(ended.output.head, b"out\nerr\n", "the output")


def _state(environment: Environment) -> None:
    before = environment.cwd
    environment.execute("cd /; A=kept; f() { echo $A; }", timeout=_PATIENCE_SECONDS)
    _expect(
        environment.execute("pwd; f", timeout=_PATIENCE_SECONDS).output.head, b"/\nkept\n", "the next command's state"
    )
    environment.execute(f"cd {_quoted(before)}; unset A; unset -f f", timeout=_PATIENCE_SECONDS)


def _limits(environment: Environment) -> None:
    began = time.monotonic()
    ended = environment.execute("echo begun; sleep 1000", timeout=0.5)
    _expect(ended.timed_out, True, "being ended in time")
    _expect(ended.output.head[:6], b"begun\n", "the output until then")
    if time.monotonic() - began > _PATIENCE_SECONDS:
        raise Broken(f"a limit of 0.5 s took {time.monotonic() - began:.0f} s")
    _expect(environment.execute("echo on", timeout=_PATIENCE_SECONDS).output.head, b"on\n", "the command after it")


def _files(environment: Environment) -> None:
    made = environment.execute("mktemp -d", timeout=_PATIENCE_SECONDS).output.head.decode().strip()
    path = f"{made}/ä file"
    try:
        environment.files.write(path, b"\0content\n")
        _expect(environment.files.read(path, max_bytes=100), b"\0content\n", "what is read back")
        shown = environment.execute(f"cat {_quoted(path)}", timeout=_PATIENCE_SECONDS).output.head
        _expect(shown, b"\0content\n", "what a command reads")
    finally:
        environment.execute(f"rm -r {_quoted(made)}", timeout=_PATIENCE_SECONDS)


def _background(environment: Environment) -> None:
    process = environment.background("read x; echo got $x; sleep 1000")
    try:
        process.write(b"word\n")
        _expect(process.read(timeout=_PATIENCE_SECONDS).data, b"got word\n", "the output of a background process")
        _expect(process.kill(grace=1).exit_code, 143, "the exit code of one that was killed")
    finally:
        process.forget()


def _terminal(environment: Environment) -> None:
    if not environment.has_pty:
        return
    process = environment.open_pty("stty size; test -t 0", rows=33, columns=99)
    try:
        _expect(process.wait(_PATIENCE_SECONDS).exit_code, 0, "a program's test of its terminal")
        _expect(process.read().data.split(), [b"33", b"99"], "the terminal's size")
    finally:
        process.forget()


_CHECKS: tuple[tuple[str, Callable[[Environment], None]], ...] = (
    ("it starts", _start),
    ("output and exit codes are exact", _exit_codes),
    ("directory, variables and functions stay", _state),
    ("a command is ended in time, and the next one runs", _limits),
    ("files are the same for tools and commands", _files),
    ("background processes take input and can be killed", _background),
    ("programs get a terminal", _terminal),
)


def _expect(found: object, expected: object, what: str) -> None:
    if found != expected:
        raise Broken(f"{what}: expected {expected!r}, and it was {found!r}")


def _quoted(path: str) -> str:
    return shlex.quote(path)
