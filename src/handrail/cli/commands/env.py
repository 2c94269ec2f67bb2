"""List, check and clean up the places where commands can run.

\b
Examples:
  handrail env list
  handrail env check docker
  handrail env prune --dry-run
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, NamedTuple

import typer

from ...app import Handrail
from ...config.paths import state_dir
from ...environments.base import Environment
from ...environments.task_settings import resolve
from ...errors import HandrailError
from ...processes.leftovers import prune_expired, prune_unknown
from ...tools.browser import browsers
from ...types import JsonDict
from .. import options
from ..demo import FOLDER_PREFIX
from ..output import ExitCode, colours, emit, emit_json, emit_listing, paint, result_stream, say, visible
from ..runtime import open_runtime

Name = Annotated[str, typer.Argument(metavar="NAME", help="An environment: local, docker, docker:python:3.12, …")]
Full = Annotated[bool, typer.Option("--full", help="Try everything that a backend promises; takes a minute.")]
cli = options.new_cli()


@cli.command("list")
def list_environments(as_json: options.Json = False) -> None:
    """List the environments, and whether each can be used now.

    What cannot be used says why, and what would change that. The one that the configuration names is marked.

    \b
    Examples:
      handrail env list
      handrail env list --json | jq -r '.[] | select(.available) | .name'
    """
    app = open_runtime()
    listed = [_described(app, name) for name in app.environments.backends.names()]
    rows = [(f"{row['name']}{' *' if row['configured'] else ''}", visible(_status(row))) for row in listed]
    emit_listing(listed, ("ENVIRONMENT", "STATUS"), rows, as_json=as_json, wide=1)


@cli.command()
def check(name: Name, full: Full = False, as_json: options.Json = False) -> None:
    """Start an environment, try what commands rely on, and remove it again.

    \b
    Examples:
      handrail env check local
      handrail env check ssh:build.example
      handrail env check docker --full

    Exit codes: 0 it works, 1 something does not.
    """
    app = open_runtime()
    settings = resolve(f"check-{os.getpid()}", app.config, {"backend": name}, app.environments.backends)
    done = []
    with result_stream() as stdout:
        for one in (check_all if full else check_some)(lambda: app.environments.open(settings)):
            done.append(one)
            if not as_json:
                mark = paint("✗", "red", on=colours(stdout)) if one.problem else paint("✓", "green", on=colours(stdout))
                problem = f"\n    {visible(one.problem)}" if one.problem else ""
                emit(f"{mark} {one.name} ({one.seconds * 1000:.0f} ms){problem}", stdout)
        if as_json:
            emit_json([one._asdict() for one in done], stdout)
    raise typer.Exit(ExitCode.FAILED if any(one.problem for one in done) else ExitCode.OK)


@cli.command()
def prune(dry_run: options.DryRun = False, as_json: options.Json = False) -> None:
    """Remove what exited runtimes left behind: containers, logs, folders for temporary files.

    What runs because it was started to live on stays: `handrail ps` lists it.

    \b
    Examples:
      handrail env prune --dry-run
      handrail env prune

    Exit codes: 0 nothing is left, or with --dry-run was; 1 something is, with --dry-run or because it could not be
    removed.
    """
    found, problems = remove_leftovers(open_runtime(), dry_run=dry_run)
    if as_json:
        emit_json({"found": found, "problems": problems})
    else:
        for line in found:
            emit(f"to clean up: {line}" if dry_run else f"cleaned up: {line}")
        if not found:
            emit("Nothing was left behind.")
        for problem in problems:
            say(problem)
    raise typer.Exit(ExitCode.FAILED if problems or (dry_run and found) else ExitCode.OK)


def _described(app: Handrail, name: str) -> JsonDict:
    configured = app.config.terminal.backend.partition(":")[0] == name
    try:
        missing = app.environments.backends.get(name).check(app.config.terminal.backends.get(name, {}))
        reason, fix = (missing.reason, missing.fix) if missing is not None else ("", "")
    except HandrailError as error:
        reason, fix = str(error), ""
    return {"name": name, "configured": configured, "available": not reason, "reason": reason, "fix": fix}


def _status(row: JsonDict) -> str:
    if row["available"]:
        return "available"
    return f"{row['reason']}; {row['fix']}" if row["fix"] else str(row["reason"])


def remove_leftovers(app: Handrail, *, dry_run: bool) -> tuple[list[str], list[str]]:
    """What was found, and what went wrong: one line each."""
    found: list[str] = []
    problems: list[str] = []
    backends = app.environments.backends
    for name in backends.names():
        try:
            found += backends.get(name).prune(dry_run)
        except (HandrailError, OSError) as error:  # the others may still be in order
            problems.append(f"{name}: {error}")
    found += prune_expired(app.processes, dry_run=dry_run)
    found += prune_unknown(app.processes, state_dir() / "processes", dry_run=dry_run)
    found += browsers.prune(dry_run=dry_run)
    for folder in _demo_folders():
        found.append(f"the folder of a demonstration that was cut off, {folder}")
        if not dry_run:
            shutil.rmtree(folder, ignore_errors=True)
    return found, problems


def _demo_folders() -> list[Path]:
    """Those of this user whose process has exited."""
    folders = []
    for path in Path(tempfile.gettempdir()).glob(f"{FOLDER_PREFIX}*"):
        pid = re.match(rf"{FOLDER_PREFIX}(\d+)-", path.name)
        if pid and path.stat().st_uid == os.getuid() and not os.path.exists(f"/proc/{pid[1]}"):
            folders.append(path)
    return folders


_PATIENCE_SECONDS = 30.0


class Checked(NamedTuple):
    """How one check went. `problem` is empty when it went well."""

    name: str
    problem: str
    seconds: float


class Broken(Exception):
    """What an environment does not do."""


def check_some(make: Callable[[], Environment]) -> Iterator[Checked]:
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
    from ...testing.environment_conformance import Conformance, Verdict, environment_checks

    with Conformance(make) as subject:
        for one in environment_checks():
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
    environment.execute(f"cd {shlex.quote(before)}; unset A; unset -f f", timeout=_PATIENCE_SECONDS)


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
        shown = environment.execute(f"cat {shlex.quote(path)}", timeout=_PATIENCE_SECONDS).output.head
        _expect(shown, b"\0content\n", "what a command reads")
    finally:
        environment.execute(f"rm -r {shlex.quote(made)}", timeout=_PATIENCE_SECONDS)


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
