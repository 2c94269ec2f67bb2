"""Show what a call has changed, and what was not saved.

Files lost, changed, created and moved, and hosts contacted.

\b
Examples:
  handrail effects 17
  handrail effects 17 --diff
  handrail effects 17 --json | jq -r '.lost[].path'
"""

from __future__ import annotations

from typing import Annotated

import typer

from .. import options
from ..effect_views import show_effects
from ..output import emit_json
from ..runtime import open_runtime

cli = options.new_cli()


@cli.command()
def effects(
    number: Annotated[int, typer.Argument(metavar="CALL", help="Its number, as `handrail calls` names it.")],
    diff: Annotated[bool, typer.Option("--diff", help="With the lines that are different.")] = False,
    as_json: options.Json = False,
) -> None:
    calls = open_runtime().effects
    told = calls.describe(number, diff=diff)
    if as_json:
        emit_json(told)
    else:
        show_effects(told, calls.records.get(number), keep_days=calls.keep_days)
