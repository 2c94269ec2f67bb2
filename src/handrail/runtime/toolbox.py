"""Let a tool call the other tools that its caller was given, as the caller would: by the same dispatch, gate and budgets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..core.registry import ToolEntry, ToolRegistry
    from ..toolsets import Toolsets
    from ..types import CancelToken, JsonDict, Outcome
    from .call import Call


class Caller(Protocol):
    """The part of a runtime that makes calls."""

    registry: ToolRegistry
    toolsets: Toolsets
    given_by_default: Callable[[], frozenset[str]]

    def handle(
        self,
        name: str,
        args: Any,
        task_id: str | None = ...,
        user_task: str | None = ...,
        session_id: str | None = ...,
        **more: Any,
    ) -> Outcome: ...
    async def ahandle(
        self,
        name: str,
        args: Any,
        task_id: str | None = ...,
        user_task: str | None = ...,
        session_id: str | None = ...,
        **more: Any,
    ) -> Outcome: ...


class CallersTools:
    """See `protocols.Toolbox`. It costs nothing until it is used."""

    __slots__ = ("_call", "_names", "_runtime")

    def __init__(self, runtime: Caller, call: Call) -> None:
        self._runtime, self._call, self._names = runtime, call, call.enabled_tools

    def names(self) -> frozenset[str]:
        if self._names is None:
            self._names = self._runtime.given_by_default()
        return self._names

    def names_of(self, toolsets: Sequence[str]) -> frozenset[str]:
        return frozenset(self._runtime.toolsets.select(toolsets))

    def entries(self) -> Sequence[ToolEntry]:
        registry = self._runtime.registry
        entries = registry.get_entries(sorted(self.names()))
        missing = registry.availability.unavailable(entries)
        return [entry for entry in entries if entry.name not in missing]

    def call(self, name: str, arguments: Any, *, cancel: CancelToken | None = None, number: int = 0) -> Outcome:
        outer = self._call
        call_id = f"{outer.tool_call_id}.{number}" if number else outer.tool_call_id
        more = {**self._more(), "tool_call_id": call_id, "cancel": cancel or outer.cancel}
        return self._runtime.handle(name, arguments, outer.task_id, outer.user_task, outer.session_id, **more)

    async def acall(self, name: str, arguments: Any) -> Outcome:
        outer = self._call
        who = (outer.task_id, outer.user_task, outer.session_id)
        return await self._runtime.ahandle(name, arguments, *who, **self._more())

    def _more(self) -> JsonDict:
        """Everything else of the outer call that holds for the inner one."""
        outer = self._call
        return {
            "tool_call_id": outer.tool_call_id,
            "cancel": outer.cancel,
            "on_progress": outer.on_progress,
            "agent": outer.agent,
            "enabled_tools": self.names(),
        }
