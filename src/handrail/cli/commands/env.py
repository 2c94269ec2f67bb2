"""List, check and clean up the places where commands can run.

Examples:
  handrail env list
  handrail env check docker
  handrail env prune --dry-run
"""

import contextlib
import os
import shutil
import time
from collections.abc import Callable, Iterator
from typing import Annotated, NamedTuple

from ...base.temporary_folders import left_folders
from ...config.paths import state_dir
from ...environments.backend_table import resolve
from ...environments.base import Environment
from ...environments.private_dirs import prune_browsers
from ...errors import HandrailError
from ...processes.leftovers import prune_expired, prune_unknown
from ..options import DryRun, Exit, Json, argument, new_cli, option
from ..output import ExitCode, as_typed, colours, emit, emit_json, emit_table, paint, result_stream, say, visible
from ..runtime import open_runtime

Name = Annotated[str, argument("NAME", "An environment: local, docker, docker:python:3.12, …")]
Full = Annotated[bool, option("--full", "Try everything that a backend promises; takes a minute.")]
cli = new_cli()


@cli.command("list")
def list_environments(as_json: Json = False) -> None:
    """List the environments, and whether each can be used now.

    What cannot be used says why, and what would change that. The one that the configuration names is marked.

    Examples:
      handrail env list --json | jq -r '.[] | select(.available) | .name'
    """
    app, listed, rows = open_runtime(), [], []
    for name in app.environments.backends.names():
        configured = app.config.terminal.backend.partition(":")[0] == name
        try:
            missing = app.environments.backends.get(name).check(app.config.terminal.backends.get(name, {}))
            reason, fix = (missing.reason, missing.fix) if missing is not None else ("", "")
        except HandrailError as error:
            reason, fix = str(error), ""
        about = {"name": name, "configured": configured, "available": not reason, "reason": reason, "fix": fix}
        listed.append(about)
        status = "; ".join(filter(None, (reason, fix))) if reason else "available"
        rows.append((f"{name}{' *' if configured else ''}", visible(as_typed(status))))
    emit_table(("ENVIRONMENT", "STATUS"), rows, listed, as_json=as_json, wide=1)


@cli.command()
def check(name: Name, full: Full = False, as_json: Json = False) -> None:
    """Start an environment, try what commands rely on, and remove it again.

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
        for one in checks(lambda: app.environments.open(settings), full=full):
            done.append(one)
            if not as_json:
                mark = paint("✗", "red", on=colours(stdout)) if one.problem else paint("✓", "green", on=colours(stdout))
                problem = f"\n    {visible(one.problem)}" if one.problem else ""
                emit(f"{mark} {one.name} ({one.seconds * 1000:.0f} ms){problem}", stdout)
        if as_json:
            emit_json([one._asdict() for one in done], stdout)
    raise Exit(ExitCode.FAILED if any(one.problem for one in done) else ExitCode.OK)


@cli.command()
def prune(dry_run: DryRun = False, as_json: Json = False) -> None:
    """Remove what exited runtimes left behind: containers, logs, folders for temporary files.

    What runs because it was started to live on stays: `handrail ps` lists it.

    Exit codes: 0 nothing is left to remove; 1 something is: with --dry-run, or because it could not be removed.
    """
    app, found, problems = open_runtime(), list[str](), list[str]()
    backends = app.environments.backends
    for name in backends.names():
        try:
            found += backends.get(name).prune(dry_run)
        except (HandrailError, OSError) as error:  # the others may still be in order
            problems.append(f"{name}: {error}")
    found += prune_expired(app.processes, dry_run=dry_run)
    found += prune_unknown(app.processes, state_dir() / "processes", dry_run=dry_run)
    found += prune_browsers(dry_run=dry_run)
    for folder in left_folders():
        found.append(f"a temporary folder of a process that was killed, {folder}")
        if not dry_run:
            shutil.rmtree(folder, ignore_errors=True)
    if as_json:
        emit_json({"found": found, "problems": problems})
    else:
        for line in found:
            emit(f"to clean up: {line}" if dry_run else f"cleaned up: {line}")
        if not found:
            emit("Nothing was left behind.")
        for problem in problems:
            say(problem)
    raise Exit(ExitCode.FAILED if problems or (dry_run and found) else ExitCode.OK)


class Checked(NamedTuple):
    """How one check went. `problem` is empty when it went well."""

    name: str
    problem: str
    seconds: float


# What nearly every command relies on, of the conformance kit.
_BASICS = frozenset(
    "commands.codes_are_exact output.output_and_errors_come_in_order state.the_working_directory_is_kept "
    "state.functions_are_kept limits.a_time_limit_ends_the_command files.files_and_commands_see_the_same "
    "background.it_reads_what_it_is_given background.it_can_be_killed background.it_is_a_terminal".split()
)


def checks(make: Callable[[], Environment], *, full: bool) -> Iterator[Checked]:
    """Try a new environment with all of the conformance kit, or with the basics. What the environment says that it cannot do is
    left out; after it could not be started there is nothing more to try."""
    from ...testing.environment_conformance import Conformance, Verdict, environment_checks

    began, problem = time.perf_counter(), ""
    try:
        with contextlib.closing(make()) as environment:
            environment.start()
    except (HandrailError, OSError) as error:
        problem = str(error)
    yield Checked("It starts.", problem, time.perf_counter() - began)
    if problem:
        return
    with Conformance(make) as subject:
        for one in environment_checks():
            if full or one.name in _BASICS:
                [outcome] = subject.run([one]).outcomes
                if outcome.verdict is not Verdict.DOES_NOT_APPLY:
                    yield Checked(one.sentence, outcome.message, outcome.seconds)
