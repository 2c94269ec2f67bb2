"""The agent: ask a model, run what it calls, give it the results, until it has answered.

`agent.Agent` is one session; `agent_factory.open_agent` makes one from the configuration. Inside a turn: `loop` (the turn),
`model_requests` (ask, retry, fall back) with `models` (one file per provider), `tool_calls` and
`loop_detection`, `conversation` and its compaction, `budgets`, `events` (what a listener gets), `telemetry`. What an agent keeps:
`memory`, `todos`, `system_prompt`; `delegation` runs child agents, `cassette` records and replays, `agent_factory` also answers
MCP servers that ask for a model.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..base.lazy_module import by_name, lazy_module

if TYPE_CHECKING:
    from ..protocols import Model, ModelReply
    from ..store.sessions import SessionStore
    from .agent import Agent
    from .agent_factory import LAST, open_agent, open_store
    from .budgets import Budgets
    from .cassette import Cassette, Player
    from .events import (
        End,
        Event,
        MessageEnded,
        Notice,
        ReasoningDelta,
        TextDelta,
        ToolEnded,
        ToolProgress,
        ToolStarted,
        TurnEnded,
        Usage,
    )
    from .models.base import CallPiece, Finished, Piece, ReasoningPiece, StreamingModel, TextPiece

_HOMES = by_name(
    {
        "handrail.agent.agent": "Agent",
        "handrail.agent.agent_factory": "LAST open_agent open_store",
        "handrail.agent.budgets": "Budgets",
        "handrail.agent.cassette": "Cassette Player",
        "handrail.agent.events": "End Event MessageEnded Notice ReasoningDelta TextDelta ToolEnded ToolProgress ToolStarted "
        "TurnEnded Usage",
        "handrail.agent.models.base": "CallPiece Finished Piece ReasoningPiece StreamingModel TextPiece",
        "handrail.protocols": "Model ModelReply",
        "handrail.store.sessions": "SessionStore",
    }
)
__all__ = [
    "LAST",
    "Agent",
    "Budgets",
    "CallPiece",
    "Cassette",
    "End",
    "Event",
    "Finished",
    "MessageEnded",
    "Model",
    "ModelReply",
    "Notice",
    "Piece",
    "Player",
    "ReasoningDelta",
    "ReasoningPiece",
    "SessionStore",
    "StreamingModel",
    "TextDelta",
    "TextPiece",
    "ToolEnded",
    "ToolProgress",
    "ToolStarted",
    "TurnEnded",
    "Usage",
    "open_agent",
    "open_store",
]
__getattr__, __dir__ = lazy_module(__name__, _HOMES)
