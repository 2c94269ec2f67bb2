"""Bring back what an undo took back."""

from __future__ import annotations

from typing import Annotated

import typer

from .. import options
from ..effect_views import show_undone
from ..output import ExitCode, emit_json
from ..runtime import open_runtime

cli = options.new_cli()


@cli.command()
def redo(
    number: Annotated[int, typer.Argument(metavar="CALL", min=1, help="The call that was undone.")],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be done.")] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Also where something was changed since: it is kept beside it.")
    ] = False,
    as_json: options.Json = False,
) -> None:
    """Bring back what an undo took back.

    \b
    Examples:
      handrail redo 17

    Exit codes: 0 it is back, 1 it is not, and nothing was changed.
    """
    calls = open_runtime().effects
    answer = calls.redo(number, dry_run=dry_run, force=force)
    if as_json:
        emit_json(answer)
        raise typer.Exit(ExitCode.OK if answer["status"] in ("undone", "possible") else ExitCode.FAILED)
    raise typer.Exit(show_undone([answer], calls, verb="redone"))
