"""Be the agent of an editor that speaks the Agent Client Protocol: Zed, JetBrains, Neovim, Emacs.

The editor starts this command and talks with it over stdin and stdout. Approvals are asked in the editor, and can be answered
in the console, a chat or with `handrail approvals` as well.

\b
Examples:
  handrail acp
  handrail acp --terminal editor
"""

from __future__ import annotations

import asyncio
from enum import StrEnum
from importlib.util import find_spec
from typing import Annotated

import typer

from .. import options
from ..output import ExitCode, say
from ..runtime import log_as_notes

cli = options.new_cli()


class Terminal(StrEnum):
    OWN = "own"
    EDITOR = "editor"


@cli.command()
def acp(
    model: Annotated[
        str | None, typer.Option("--model", "-m", metavar="NAME", help="Instead of the configured one.")
    ] = None,
    terminal: Annotated[
        Terminal,
        typer.Option("--terminal", help="Where commands run: in a shell of Handrail, or in the editor's terminals."),
    ] = Terminal.OWN,
) -> None:
    if find_spec("acp") is None:
        say("this needs the package agent-client-protocol; pip install 'handrail[acp]'")
        raise typer.Exit(ExitCode.FAILED)
    from ...serve.acp.agent_server import serve  # a heavy optional dependency
    from ...serve.acp.session import Options

    log_as_notes()
    asyncio.run(serve(Options(terminals=terminal is Terminal.EDITOR, model=model)))
