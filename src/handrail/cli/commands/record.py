"""Record a session's tool calls and results, for `replay`.

Examples:
  handrail record last -o bug.cassette.jsonl
  handrail replay bug.cassette.jsonl
"""

from pathlib import Path
from typing import Annotated

from ...agent.agent_factory import open_store
from ...agent.cassette import Cassette
from ..call_text import counted
from ..options import option
from ..output import emit, say
from .sessions import LAST, SessionId, chosen

Output = Annotated[Path | None, option("--output -o FILE", "By default SESSION.cassette.jsonl, here.")]


def record(session: SessionId = LAST, output: Output = None) -> None:
    store = open_store()
    info = chosen(store, session)
    cassette = Cassette.of_session(store, info.id)
    path = output or Path(f"{info.id}.cassette.jsonl")
    cassette.save(path)
    say(f"{counted(len(cassette.calls), 'call')} of {counted(len(cassette.said), 'turn')}")
    emit(str(path))
