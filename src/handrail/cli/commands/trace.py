"""Show a session's timeline.

It shows model requests, tool calls, approvals and child agents, with their times.

Arguments are shown, results are not. For spans in a tracing system see `telemetry` in the configuration.

Examples:
  handrail trace
  handrail trace 20260703-1412 --json | jq '.moments[].kind'
"""

import json
from collections.abc import Iterator
from typing import NamedTuple

from ...agent.agent_factory import open_store
from ...store.approvals import ApprovalStore
from ...store.sessions import SessionStore
from ..approvals import open_approvals
from ..call_text import duration, shortened
from ..options import Json
from ..output import emit_either, visible
from .sessions import LAST, SessionId, chosen, cost, session_view


def trace(session: SessionId = LAST, as_json: Json = False) -> None:
    store = open_store()
    info = chosen(store, session)
    found = moments(store, open_approvals(), info.id)
    text = "\n".join([f"{info.id} · {info.title}", *lines(found), summary(found)])
    emit_either({**session_view(info), "moments": [each._asdict() for each in found]}, text, as_json=as_json)


_ABOUT_CHARS = 60


class Moment(NamedTuple):
    """One thing that happened. `depth` is 0 for the session itself, 1 for its child agents."""

    at: float
    seconds: float
    kind: str
    what: str
    about: str
    error: str
    depth: int
    session: str


def moments(store: SessionStore, approvals: ApprovalStore, session_id: str, depth: int = 0) -> list[Moment]:
    """In the order in which they began, with those of child agents."""
    found = []
    for asked in store.model_calls(session_id):
        about = f"{asked.input_tokens:,} → {asked.output_tokens:,} tokens {cost(asked.cost)}"
        found.append(Moment(asked.at, asked.seconds, "model", asked.model, about, asked.error, depth, session_id))
    for call in store.calls(session_id):
        about = " ".join(json.dumps(call.arguments, ensure_ascii=False).split())
        found.append(Moment(call.at, call.seconds, "tool", call.tool, about, call.error_type, depth, session_id))
    for each in approvals.decisions.of_session(session_id):
        about = f"{each.decision} by {each.by}"
        found.append(Moment(each.at - each.seconds, each.seconds, "approval", each.tool, about, "", depth, session_id))
    for child in store.children(session_id):
        took = child.updated - child.created
        found.append(Moment(child.created, took, "child", child.title, "", "", depth, child.id))
        found += moments(store, approvals, child.id, depth + 1)
    return sorted(found, key=lambda moment: moment.at)


def lines(found: list[Moment]) -> Iterator[str]:
    marks = {"model": "◇", "tool": "▸", "approval": "?", "child": "⑂"}
    begin = found[0].at if found else 0.0
    for moment in found:
        problem = f"  ✗ {visible(moment.error)}" if moment.error else ""
        what = f"{'  ' * moment.depth}{marks[moment.kind]} {visible(moment.what)}"
        took = duration(moment.seconds * 1000)
        yield f"{moment.at - begin:8.2f} s  {took:>8}  {what}  {shortened(visible(moment.about), _ABOUT_CHARS)}{problem}".rstrip()


def summary(found: list[Moment]) -> str:
    if not found:
        return "nothing has happened in it yet"
    mine = [moment for moment in found if moment.depth == 0]
    whole = max(moment.at + moment.seconds for moment in found) - found[0].at
    model, tools = (sum(each.seconds for each in mine if each.kind == kind) * 1000 for kind in ("model", "tool"))
    return f"{duration(whole * 1000)} in all, {duration(model)} of it the model's, {duration(tools)} tools"
