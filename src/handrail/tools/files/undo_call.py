"""Run a call of `undo`."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from ...core.outcome import tool_result
from ...errors import CallNotFound, Denied, ToolFailed
from ...files.task_arguments import everything, files_of, path_argument
from ...protocols import Action, ActionKind
from ...types import JsonDict, Resources, ToolContext

if TYPE_CHECKING:
    from ...effects.calls import Calls
    from ...store.call_records import CallRecord

_MAX_PATHS = 50
_NAMES = {"lost": "put_back", "changed": "as_before", "created": "taken_away", "moved": "moved_back"}


def undo(args: JsonDict, *, context: ToolContext, **_: object) -> str:
    calls, record = _chosen(args, context)
    only = files_of(context).resolve(path_argument(args, "only")) if args.get("only") else ""
    how: JsonDict = {"only": only, "force": bool(args.get("force"))}
    told = calls.undo(record.number, session=context.session_id, task=context.task_id, **how)
    status = told["status"]
    if status == "refused":
        raise ToolFailed(f"call {record.number} was not undone: {told['reason']}")
    if status == "conflict":
        by = "; ".join(_conflict(one) for one in told["conflicts"][:_MAX_PATHS])
        raise ToolFailed(
            f"call {record.number} was not undone, and nothing was changed, because this was changed since: {by}. Undo the later "
            f"calls first, or only a part, or ask the user",
            conflicts=told["conflicts"][:_MAX_PATHS],
        )
    shown: JsonDict = {"undone": record.number, "tool": record.tool, "what": record.head}
    for kind, name in _NAMES.items():
        if told[kind]:
            shown[name] = [one["path"] for one in told[kind][:_MAX_PATHS]]
    shown |= {"call": told["number"], **({"kept_beside": told["kept_beside"]} if told["kept_beside"] else {})}
    if told["failed"]:
        shown |= {"error": "some of it could not be put back", "error_type": "tool_failed", "failed": told["failed"]}
    return tool_result(shown)


def resources(args: JsonDict, context: ToolContext) -> Resources:  # noqa: ARG001  it may concern any file
    return Resources(writes=(everything(context),))


def actions(args: JsonDict, context: ToolContext) -> list[Action]:
    """Taking back what it did itself needs no question, unless it sets aside what others did since."""
    if not args.get("force"):
        return []
    _, record = _chosen(args, context)
    why = "it takes back a call although others have changed its files since; what is there now is kept beside them"
    return [
        Action(ActionKind.TOOL, f"undo call {record.number}: {record.head}", details={"why": why, "rule": "undo.force"})
    ]


def _chosen(args: JsonDict, context: ToolContext) -> tuple[Calls, CallRecord]:
    """Only calls of the same session, or of the same task where there is none, can be taken back."""
    if context.effects is None:
        raise ToolFailed("this runtime keeps no journal of what calls change")
    calls = cast("Calls", context.effects.calls)
    session, task = context.session_id, context.task_id
    if args.get("call"):
        record = calls.records.get(int(args["call"]))
        if (record.session, record.task if session is None else task) != (session, task):
            raise Denied(
                f"call {record.number} was made by another session; only its user can undo it", decided_by="session"
            )
        return calls, record
    mine = [
        one
        for one in calls.last(1000, session=session)
        if session is not None or (one.session, one.task) == (None, task)
    ]
    if not mine:
        raise CallNotFound("no call of this session has changed anything that could be undone")
    return calls, mine[0]


def _conflict(one: JsonDict) -> str:
    return f"{one['path']} by {'call ' + str(one['call']) if one['call'] else 'somebody else'}"
