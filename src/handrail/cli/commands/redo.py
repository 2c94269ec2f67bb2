"""Bring back what an undo took back.

\b
Examples:
  handrail redo 17

Exit codes: 0 it is back, 1 it is not, and nothing was changed.
"""

from __future__ import annotations

from typing import Annotated

import typer

from .. import options
from ..runtime import open_runtime
from .effects import Force, leave

cli = options.new_cli()
Number = Annotated[int, typer.Argument(metavar="CALL", min=1, help="The call that was undone.")]


@cli.command()
def redo(number: Number, dry_run: options.DryRun = False, force: Force = False, as_json: options.Json = False) -> None:
    calls = open_runtime().effects
    leave([calls.redo(number, dry_run=dry_run, force=force)], calls, verb="redone", as_json=as_json)
