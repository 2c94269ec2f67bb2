"""What calls have changed, and taking them back."""

from __future__ import annotations

import asyncio

from ...effects.calls import as_json
from ...types import JsonDict
from ..endpoint import Endpoint, HttpError, RequestContext
from ..tokens import Role
from .shapes import ANYTHING, FLAG, TEXT, WHOLE, bounded, count, loose, many, record


async def changing_calls(context: RequestContext) -> JsonDict:
    """The calls that changed something, the newest first."""
    effects, query = context.served.app.effects, context.query
    found = await asyncio.to_thread(effects.latest, query["limit"], session=query.get("session"))
    return {"calls": [as_json(each, effects.keep_days) for each in found]}


async def effects(context: RequestContext) -> JsonDict:
    """What one call has changed: paths lost, changed, created and moved, hosts, and what was not saved."""
    return await asyncio.to_thread(context.served.app.effects.describe, _number(context), diff=context.query["diff"])


async def undo(context: RequestContext) -> JsonDict:
    """Take a call back. `status` is undone, possible (a dry run), refused or conflict; only the first changes something."""
    return await asyncio.to_thread(lambda: context.served.app.effects.undo(_number(context), **context.body))


async def redo(context: RequestContext) -> JsonDict:
    """Bring back what an undo took back."""
    return await asyncio.to_thread(lambda: context.served.app.effects.redo(_number(context), **context.body))


def _number(context: RequestContext) -> int:
    if not context.path["number"].isdecimal() or len(context.path["number"]) > 18:
        raise HttpError(422, "invalid_number", "a call has a whole number")
    return int(context.path["number"])


_CALLS = record(calls=many(loose(number=WHOLE, tool=TEXT, head=TEXT, counts=ANYTHING, coverage=TEXT)))
_HOW = {"only": bounded(4096), "force": FLAG, "dry_run": FLAG}
_DONE = loose(call=WHOLE, status=TEXT, conflicts=many(ANYTHING))
_FOUND, _DIFF = loose(call=WHOLE, can_undo=FLAG), {"diff": {"type": "boolean", "default": False}}
_LIST = {"limit": count(50, 1000), "session": bounded(200)}

ENDPOINTS = (
    Endpoint("GET", "/v1/effects", changing_calls, query=_LIST, answer=_CALLS),
    Endpoint("GET", "/v1/effects/{number}", effects, query=_DIFF, answer=_FOUND),
    Endpoint("POST", "/v1/effects/{number}/undo", undo, role=Role.OPERATE, body=record((), **_HOW), answer=_DONE),
    Endpoint("POST", "/v1/effects/{number}/redo", redo, role=Role.OPERATE, body=record((), **_HOW), answer=_DONE),
)
