"""The agent: ask a model, run what it calls, give it the results, until it has answered.

`agent.Agent` is one session; `agent_factory.open_agent` makes one from the configuration. Inside a turn: `loop` (the turn),
`models` (ask, retry, fall back; one file per provider), `tool_calls`, `conversation` and its compaction, `events` (what a
listener gets, and the budgets of a turn), `telemetry`. What an agent keeps: `memory`, `system_prompt`; `delegation` runs child
agents, `cassette` records and replays, `agent_factory` also answers MCP servers that ask for a model.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..base.lazy_module import lazy_module

if TYPE_CHECKING:
    from ..protocols import Model as Model
    from ..protocols import ModelReply as ModelReply
    from ..store.sessions import SessionStore as SessionStore
    from .agent import Agent as Agent
    from .agent_factory import LAST as LAST
    from .agent_factory import open_agent as open_agent
    from .agent_factory import open_store as open_store
    from .cassette import Cassette as Cassette
    from .cassette import Player as Player
    from .events import Budgets as Budgets
    from .events import End as End
    from .events import Event as Event
    from .events import MessageEnded as MessageEnded
    from .events import Notice as Notice
    from .events import ReasoningDelta as ReasoningDelta
    from .events import TextDelta as TextDelta
    from .events import ToolEnded as ToolEnded
    from .events import ToolProgress as ToolProgress
    from .events import ToolStarted as ToolStarted
    from .events import TurnEnded as TurnEnded
    from .events import Usage as Usage
    from .models.base import CallPiece as CallPiece
    from .models.base import Finished as Finished
    from .models.base import Piece as Piece
    from .models.base import ReasoningPiece as ReasoningPiece
    from .models.base import StreamingModel as StreamingModel
    from .models.base import TextPiece as TextPiece
else:
    __getattr__, __dir__, __all__ = lazy_module(
        __name__,
        {
            "handrail.protocols": "Model ModelReply",
            "handrail.store.sessions": "SessionStore",
            ".agent": "Agent",
            ".agent_factory": "LAST open_agent open_store",
            ".cassette": "Cassette Player",
            ".events": "Budgets End Event MessageEnded Notice ReasoningDelta TextDelta ToolEnded ToolProgress "
            "ToolStarted TurnEnded Usage",
            ".models.base": "CallPiece Finished Piece ReasoningPiece StreamingModel TextPiece",
        },
    )
