"""A command that was allowed to be tried: it has run, and what it did is shown, to be kept or taken back."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from ..base.async_bridge import run_async
from ..errors import CallNotFound, Denied
from ..protocols import Action, ActionKind

if TYPE_CHECKING:
    from ..types import JsonDict, ToolContext

_SIGNS = {"lost": "-", "changed": "~", "created": "+", "moved": ">"}
_MAX_LINES = 40
_WHY = "it was tried and has run; this is what it did. A yes keeps it, a no takes it back"


def settle(context: ToolContext, number: int, end_left: Callable[[], object]) -> list[str]:
    """What the model has to be told if the call was tried and is not kept. `end_left` ends what the command left running."""
    effects = context.effects
    if effects is None or not number:
        return []
    effects.end()
    try:
        told = effects.calls.describe(number)
    except CallNotFound:  # it has changed nothing
        return []
    details = {"why": _WHY, "rule": "effect.tried", "path": "", "project": "", "once": True}
    action = Action(ActionKind.HELD, "\n".join(_lines(told)) or "nothing is different", details=details)
    try:
        if context.gate is None:
            raise Denied("nobody can be asked", decided_by="policy")
        waiting = context.gate.review([action], context)
        if waiting is not None:
            run_async(waiting, cancel=context.cancel)
    except Denied as error:
        end_left()
        return [f"It was tried, and is not kept: {str(error).removeprefix('Not run: ')}", effects.take_back(number)]
    return []


def _lines(told: JsonDict) -> Iterator[str]:
    found = [f"{sign} {one['path']}{_more(one)}" for kind, sign in _SIGNS.items() for one in told.get(kind, ())]
    yield from found[:_MAX_LINES]
    if len(found) > _MAX_LINES:
        yield f"and {sum(told['counts'].values()) - _MAX_LINES:,} more"
    for host in told.get("hosts", ()):
        yield f"! contacted {host}, which cannot be taken back"
    for one in told.get("unsaved", ()):
        yield f"! not saved: {one['path'] or 'something'}: {one['reason']}"


def _more(one: JsonDict) -> str:
    return f" -> {one['to']}" if "to" in one else f"/ ({one['files']:,} files)" if one.get("files", 1) > 1 else ""
