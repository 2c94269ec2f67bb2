"""`handrail record`: a session's tool traffic as a file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..session_views import LAST, SessionId


def add_to(app: typer.Typer) -> None:
    app.command("record")(record)


def record(
    session: SessionId = LAST,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="By default SESSION.cassette.jsonl, here.")
    ] = None,
) -> None:
    """Write down what a session called and what came back, so that `handrail replay` can answer from it.

    \b
    Examples:
      handrail record last -o bug.cassette.jsonl
      handrail replay bug.cassette.jsonl
    """
    from ...agent.agent_factory import open_store
    from ...agent.cassette import Cassette
    from ..call_text import counted
    from ..output import emit, say
    from ..session_views import chosen

    store = open_store()
    info = chosen(store, session)
    cassette = Cassette.of_session(store, info.id)
    path = output or Path(f"{info.id}.cassette.jsonl")
    cassette.save(path)
    say(f"{counted(len(cassette.calls), 'call')} of {counted(len(cassette.said), 'turn')}")
    emit(str(path))
