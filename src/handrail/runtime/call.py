"""One call on its way: who asks, how to reach them, and what has become of it so far."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..core.entry import ToolEntry
    from ..types import AgentState, CancelToken, JsonDict, ProgressListener, ToolContext


class Call:
    """The first ten fields are the caller's; the wrappers of the call path fill in the rest."""

    __slots__ = (
        "agent", "arguments", "batched", "blocked", "cancel", "context", "enabled_tools", "entry", "extra", "name", "on_progress",
        "raw", "session_id", "started", "task_id", "tool_call_id", "user_task",
    )  # fmt: skip

    def __init__(  # noqa: PLR0913  one per fact about the caller
        self,
        name: str,
        raw: Any,
        task_id: str | None = None,
        user_task: str | None = None,
        session_id: str | None = None,
        *,
        tool_call_id: str = "",
        cancel: CancelToken | None = None,
        on_progress: ProgressListener | None = None,
        agent: AgentState | None = None,
        enabled_tools: frozenset[str] | None = None,
    ) -> None:
        self.name, self.raw = name, raw  # `raw`: the arguments as the model sent them
        self.task_id, self.user_task, self.session_id = task_id, user_task, session_id
        self.tool_call_id, self.cancel, self.on_progress, self.agent = tool_call_id, cancel, on_progress, agent
        self.enabled_tools = (
            enabled_tools  # all tools that the model was given; None: those that the configuration gives
        )
        self.entry: ToolEntry | None = None
        self.arguments: JsonDict = {}
        self.blocked = False
        self.batched = False  # it shares the machine with other calls of its message
        self.context: ToolContext | None = None  # given by who dispatches on a bare registry
        self.extra: JsonDict | None = None  # further keyword arguments for the handler, likewise
        self.started = time.perf_counter()
