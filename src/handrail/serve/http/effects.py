"""What calls have changed, and taking them back."""

from __future__ import annotations

import asyncio

from ...effects.calls import as_json
from ...types import JsonDict
from ..endpoint import Endpoint, HttpError, RequestContext
from ..roles import Role
from .shapes import ANYTHING, FLAG, TEXT, WHOLE, bounded, count, loose, many, record


async def changing_calls(context: RequestContext) -> JsonDict:
    """The calls that changed something, the newest first."""
    effects = context.served.app.effects
    found = await asyncio.to_thread(effects.latest, context.query["limit"], session=context.query.get("session"))
    return {"calls": [as_json(each, effects.keep_days) for each in found]}


async def effects(context: RequestContext) -> JsonDict:
    """What one call has changed: paths lost, changed, created and moved, hosts, and what was not saved."""
    return await asyncio.to_thread(context.served.app.effects.describe, _number(context), diff=context.query["diff"])


async def undo(context: RequestContext) -> JsonDict:
    """Take a call back. `status` is undone, possible (a dry run), refused or conflict; only the first changes something."""
    body = context.body
    return await asyncio.to_thread(
        context.served.app.effects.undo,
        _number(context),
        only=body.get("only", ""),
        force=body.get("force", False),
        dry_run=body.get("dry_run", False),
    )


async def redo(context: RequestContext) -> JsonDict:
    """Bring back what an undo took back."""
    body = context.body
    options = {"force": body.get("force", False), "dry_run": body.get("dry_run", False)}
    return await asyncio.to_thread(lambda: context.served.app.effects.redo(_number(context), **options))


def _number(context: RequestContext) -> int:
    if not context.path["number"].isdigit() or len(context.path["number"]) > 18:
        raise HttpError(422, "invalid_number", "a call has a whole number")
    return int(context.path["number"])


_CALL = loose(number=WHOLE, tool=TEXT, head=TEXT, counts=ANYTHING, coverage=TEXT)
_DONE = loose(call=WHOLE, status=TEXT, conflicts=many(ANYTHING))
_DIFF = {"type": "boolean", "default": False}

ENDPOINTS = (
    Endpoint(
        "GET",
        "/v1/effects",
        changing_calls,
        query={"limit": count(50, 1000), "session": bounded(200)},
        answer=record(calls=many(_CALL)),
    ),
    Endpoint("GET", "/v1/effects/{number}", effects, query={"diff": _DIFF}, answer=loose(call=WHOLE, can_undo=FLAG)),
    Endpoint(
        "POST",
        "/v1/effects/{number}/undo",
        undo,
        role=Role.OPERATE,
        body=record((), only=bounded(4096), force=FLAG, dry_run=FLAG),
        answer=_DONE,
    ),
    Endpoint(
        "POST",
        "/v1/effects/{number}/redo",
        redo,
        role=Role.OPERATE,
        body=record((), force=FLAG, dry_run=FLAG),
        answer=_DONE,
    ),
)
