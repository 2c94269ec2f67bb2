"""Take over the configuration of another agent.

That is its settings, MCP servers, skills, memory and scheduled jobs.

\b
Examples:
  handrail migrate hermes --dry-run
  handrail migrate hermes ~/.hermes --yes
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from ...errors import HandrailError
from .. import options
from ..hermes import plan_migration
from ..output import ExitCode, emit, emit_table, say, visible
from ..runtime import open_runtime

cli = options.new_cli()


@cli.callback()
def _group() -> None:
    """The command has a name, as there may be others to migrate from."""


@cli.command()
def hermes(
    path: Annotated[Path | None, typer.Argument(help="Its folder; HERMES_HOME or ~/.hermes if not given.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would be done.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """Take over what Hermes Agent was configured with. Nothing of it is changed, and nothing of yours is overwritten.

    Exit codes: 0 done, or shown with --dry-run; 1 something could not be taken over, or you said no; 2 there is no such folder.
    """
    folder = (path or Path(os.environ.get("HERMES_HOME", "~/.hermes"))).expanduser()
    if not folder.is_dir():
        say(f"{folder} is not a folder; give the one that Hermes Agent keeps its files in")
        raise typer.Exit(ExitCode.USAGE)
    found = plan_migration(folder, open_runtime(asks=False))
    emit_table(("WHAT", "", "NOTE"), [[visible(each.what), each.state, visible(each.note)] for each in found], wide=2)
    work = [each for each in found if each.take is not None]
    if dry_run or not work:
        return
    if not yes and not (sys.stdin.isatty() and typer.confirm(f"Take over {len(work)} of them?", err=True)):
        say("nothing was changed; --yes does it without asking")
        raise typer.Exit(ExitCode.FAILED)
    failed = 0
    for each in work:
        try:
            assert each.take is not None
            each.take()
        except (HandrailError, OSError) as error:
            failed += 1
            say(f"{each.what}: {error}")
    emit(f"{len(work) - failed} of {len(work)} are taken over")
    raise typer.Exit(ExitCode.FAILED if failed else ExitCode.OK)
