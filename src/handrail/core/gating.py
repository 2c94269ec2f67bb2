"""Have a gate look at a call that reaches its tool by the low-level way, so that nothing gets past it by accident."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING, Any

from ..errors import Denied

if TYPE_CHECKING:
    from ..types import Gate, JsonDict
    from .entry import ToolEntry


def review(entry: ToolEntry, args: JsonDict, context: JsonDict, gate: Gate | None) -> Awaitable[None] | None:
    """Let the gate look at what the call is about to do. Raises Denied, now or when awaited."""
    from ..types import ToolContext

    known: Any = context.get("context")
    if not isinstance(known, ToolContext):
        named = {name: context[name] for name in ("task_id", "session_id", "user_task") if context.get(name)}
        known = ToolContext(tool=entry.name, **named)
    actions = entry.actions(args, known) if entry.actions is not None else ()
    if not actions:
        return None
    if gate is None:
        raise Denied(
            f"{entry.name} passes a gate before it does this; call it through a Runtime, or give dispatch a gate",
            decided_by="nobody",
        )
    return gate.review(actions, known)
