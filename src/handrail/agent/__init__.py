"""The agent: ask a model, run what it calls, give it the results, until it has answered.

`agent.Agent` is one session; `agent_factory.open_agent` makes one from the configuration. Inside a turn: `loop` (the turn),
`model_requests` (ask, retry, fall back) with `models` (one file per provider), `reply_repair`, `tool_calls` and
`loop_detection`, `conversation`, `compaction`, `budgets`, `events` (what a listener gets), `telemetry`. What an agent keeps:
`memory`, `todos`, `system_prompt`; `delegation` runs child agents, `cassette` records and replays, `sampling` answers MCP
servers that ask for a model.
"""

# ruff: noqa: F401  type checkers read the imports; at run time `__getattr__` loads a name when it is first used

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
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

_HOMES = {
    "Agent": ".agent",
    "LAST": ".agent_factory",
    "open_agent": ".agent_factory",
    "open_store": ".agent_factory",
    "Budgets": ".budgets",
    "Cassette": ".cassette",
    "Player": ".cassette",
    "SessionStore": "handrail.store.sessions",
    **dict.fromkeys(
        (
            "End", "Event", "MessageEnded", "Notice", "ReasoningDelta", "TextDelta", "ToolEnded", "ToolProgress",
            "ToolStarted", "TurnEnded", "Usage",
        ),
        ".events",
    ),
    **dict.fromkeys(
        ("CallPiece", "Finished", "Piece", "ReasoningPiece", "StreamingModel", "TextPiece"), ".models.base"
    ),
}  # fmt: skip

__all__ = [*_HOMES]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name], __name__), name)


def __dir__() -> list[str]:
    return __all__
