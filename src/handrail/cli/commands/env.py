"""`handrail env`: the places where commands can run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from .. import exit_codes, options

if TYPE_CHECKING:
    from ...app import Handrail
    from ...environments.task_settings import EnvironmentSettings
    from ...types import JsonDict

Name = Annotated[str, typer.Argument(metavar="NAME", help="An environment: local, docker, docker:python:3.12, …")]
Full = Annotated[bool, typer.Option("--full", help="Try everything that a backend promises; it takes a minute.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only say what would be done.")]


def add_to(app: typer.Typer) -> None:
    env = typer.Typer(rich_markup_mode=None, no_args_is_help=True, help=_HELP)
    env.command("list")(list_environments)
    env.command("check")(check)
    env.command("prune")(prune)
    app.add_typer(env, name="env")


_HELP = """The places where commands can run: which there are, whether they work, and what was left in them.

\b
Examples:
  handrail env list
  handrail env check docker
  handrail env prune --dry-run
"""


def list_environments(as_json: options.Json = False) -> None:
    """List the environments, and say of each whether it can be used now.

    What cannot be used says why, and what would change that. The one that the configuration names is marked.

    \b
    Examples:
      handrail env list
      handrail env list --json | jq -r '.[] | select(.available) | .name'
    """
    from ..open_runtime import open_runtime
    from ..output import emit_json, emit_table, visible

    here = open_runtime()
    listed = [_described(here, name) for name in here.environments.backends.names()]
    if as_json:
        emit_json(listed)
        return
    emit_table(
        ("ENVIRONMENT", "STATUS"),
        [(f"{row['name']}{' *' if row['configured'] else ''}", visible(_status(row))) for row in listed],
        wide=1,
    )


def check(name: Name, full: Full = False, as_json: options.Json = False) -> None:
    """Start an environment, try what commands count on, and take it away again.

    \b
    Examples:
      handrail env check local
      handrail env check ssh:build.example
      handrail env check docker --full

    Exit codes: 0 it works, 1 something does not.
    """
    from ..env_check import check as try_some
    from ..env_check import check_all
    from ..open_runtime import open_runtime
    from ..output import colours, emit, emit_json, paint, result_stream, visible

    here = open_runtime()
    settings = _settings(here, name)
    done = []
    with result_stream() as stdout:
        for one in (check_all if full else try_some)(lambda: here.environments.open(settings)):
            done.append(one)
            if not as_json:
                mark = paint("✗", "red", on=colours(stdout)) if one.problem else paint("✓", "green", on=colours(stdout))
                problem = f"\n    {visible(one.problem)}" if one.problem else ""
                emit(f"{mark} {one.name} ({one.seconds * 1000:.0f} ms){problem}", stdout)
        if as_json:
            emit_json([one._asdict() for one in done], stdout)
    raise typer.Exit(exit_codes.ExitCode.FAILED if any(one.problem for one in done) else exit_codes.ExitCode.OK)


def prune(dry_run: DryRun = False, as_json: options.Json = False) -> None:
    """Take away what runtimes that are gone have left: containers, logs, folders for temporary files.

    What runs because it was started to live on stays: `handrail ps` lists it.

    \b
    Examples:
      handrail env prune --dry-run
      handrail env prune

    Exit codes: 0 nothing is left, or with --dry-run was; 1 something is, with --dry-run or because it could not be
    taken away.
    """
    from ..leftovers import take_away
    from ..open_runtime import open_runtime
    from ..output import emit, emit_json, say

    here = open_runtime()
    try:
        found, problems = take_away(here, dry_run=dry_run)
    finally:
        here.close()
    if as_json:
        emit_json({"found": found, "problems": problems})
    else:
        for line in found:
            emit(f"would take away {line}" if dry_run else f"took away {line}")
        if not found:
            emit("Nothing was left behind.")
        for problem in problems:
            say(problem)
    raise typer.Exit(exit_codes.ExitCode.FAILED if problems or (dry_run and found) else exit_codes.ExitCode.OK)


def _described(here: Handrail, name: str) -> JsonDict:
    from ...errors import HandrailError

    configured = here.config.terminal.backend.partition(":")[0] == name
    try:
        missing = here.environments.backends.get(name).check(here.config.terminal.backends.get(name, {}))
        reason, fix = (missing.reason, missing.fix) if missing is not None else ("", "")
    except HandrailError as error:
        reason, fix = str(error), ""
    return {"name": name, "configured": configured, "available": not reason, "reason": reason, "fix": fix}


def _status(row: JsonDict) -> str:
    if row["available"]:
        return "available"
    return f"{row['reason']}; {row['fix']}" if row["fix"] else str(row["reason"])


def _settings(here: Handrail, name: str) -> EnvironmentSettings:
    import os

    from ...environments.task_settings import resolve

    return resolve(f"check-{os.getpid()}", here.config, {"backend": name}, here.environments.backends)
