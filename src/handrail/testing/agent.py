"""The state of an agent, for the tools that need one."""

from __future__ import annotations

from dataclasses import dataclass, field

from ..agent.todos import Todos


@dataclass(frozen=True, slots=True)
class FakeAgent:
    """What `todo` and its like find when no agent loop runs: `run_tool_calls(calls, agent=FakeAgent())`."""

    todos: Todos = field(default_factory=Todos)
