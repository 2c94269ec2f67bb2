"""Let a tool call the other tools that its caller was given, as the caller would: by the same dispatch, gate and budgets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..tools.outcome import Outcome
    from ..tools.registry import ToolEntry
    from ..types import CancelToken
    from .dispatch import Call, Runtime


class CallersTools:
    """See `protocols.Toolbox`. It costs nothing until it is used."""

    __slots__ = ("_call", "_names", "_runtime")

    def __init__(self, runtime: Runtime, call: Call) -> None:
        self._runtime, self._call, self._names = runtime, call, call.enabled_tools

    def names(self) -> frozenset[str]:
        if self._names is None:
            self._names = self._runtime.given_by_default()
        return self._names

    def entries(self) -> Sequence[ToolEntry]:
        return self._runtime.registry.get_entries(sorted(self.names()))

    def call(self, name: str, arguments: Any, *, cancel: CancelToken | None = None, number: int = 0) -> Outcome:
        outer = self._call
        return self._runtime.handle(
            name,
            arguments,
            outer.task_id,
            outer.user_task,
            outer.session_id,
            tool_call_id=f"{outer.tool_call_id}.{number}" if number else outer.tool_call_id,
            cancel=cancel or outer.cancel,
            on_progress=outer.on_progress,
            agent=outer.agent,
            enabled_tools=self.names(),
        )
