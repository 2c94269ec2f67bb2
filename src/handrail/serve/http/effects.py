"""What calls have changed, and taking them back."""

from ...effects.calls import as_json
from ...types import JsonDict
from ..endpoint import Endpoint, HttpError, RequestContext, Role
from .shapes import ANYTHING, FLAG, TEXT, WHOLE, bounded, count, loose, many, record

_CALLS = record(calls=many(loose(number=WHOLE, tool=TEXT, head=TEXT, counts=ANYTHING, coverage=TEXT)))
_HOW = record((), only=bounded(4096), force=FLAG, dry_run=FLAG)
_DONE = loose(call=WHOLE, status=TEXT, conflicts=many(ANYTHING))


@Endpoint("GET", "/v1/effects", _CALLS, limit=count(50, 1000), session=bounded(200))
def changing_calls(context: RequestContext) -> JsonDict:
    """The calls that changed something, the newest first."""
    effects, query = context.served.app.effects, context.query
    found = effects.latest(query["limit"], session=query.get("session"))
    return {"calls": [as_json(each, effects.keep_days) for each in found]}


@Endpoint("GET", "/v1/effects/{number}", loose(call=WHOLE, can_undo=FLAG), diff={"type": "boolean", "default": False})
def effects(context: RequestContext) -> JsonDict:
    """What one call has changed: paths lost, changed, created and moved, hosts, and what was not saved."""
    return context.served.app.effects.describe(_number(context), diff=context.query["diff"])


@Endpoint("POST", "/v1/effects/{number}/undo", _DONE, role=Role.OPERATE, body=_HOW)
def undo(context: RequestContext) -> JsonDict:
    """Take a call back. `status` is undone, possible (a dry run), refused or conflict; only the first changes something."""
    return context.served.app.effects.undo(_number(context), **context.body)


@Endpoint("POST", "/v1/effects/{number}/redo", _DONE, role=Role.OPERATE, body=_HOW)
def redo(context: RequestContext) -> JsonDict:
    """Bring back what an undo took back."""
    return context.served.app.effects.redo(_number(context), **context.body)


def _number(context: RequestContext) -> int:
    if not context.path["number"].isdecimal() or len(context.path["number"]) > 18:
        raise HttpError(422, "invalid_number", "a call has a whole number")
    return int(context.path["number"])
