"""Conversations: search, read, start and continue them."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from ...agent.events import payload_of
from ...approval.policy import Mode, usual_mode
from ...store.search import search
from ...store.sessions import CHILD, MAIN
from ...types import JsonDict
from ..agent_turns import SessionBusy
from ..endpoint import Endpoint, HttpError, RequestContext, Role
from ..event_bus import frame, streamed
from .shapes import ANYTHING, FLAG, TEXT, bounded, count, loose, many, record

_DETACHED = {"type": "boolean", "description": "The turn continues when you stop listening."}
_MODE = {"type": "string", "enum": [each.value for each in Mode]}
_OF_MODE = record(mode=_MODE)
_TURN = {"model": bounded(200), "toolsets": many(bounded(100)), "detached": _DETACHED}
_IMAGE = bounded(10_000_000, pattern=r"^data:image/(png|jpeg|gif|webp);base64,[A-Za-z0-9+/=]+$")
_IMAGES = {"type": "array", "items": _IMAGE, "maxItems": 10, "description": "Images for the model, as data: URLs."}
_MESSAGE = record(("text",), mode=_MODE, text=bounded(1_000_000, minLength=1), images=_IMAGES, **_TURN)
_STEERED = record(text=bounded(100_000, minLength=1))
_SESSION = loose(id=TEXT, title=TEXT)
_FOUND = record(sessions=many(_SESSION), hits=many(ANYTHING))
_WHOLE = loose(session=_SESSION, messages=many(ANYTHING), calls=many(ANYTHING))
_KIND = {"type": "string", "enum": [MAIN, CHILD], "default": MAIN}


@Endpoint("GET", "/v1/sessions", _FOUND, query=bounded(1000, default=""), limit=count(50, 10_000), kind=_KIND)
def sessions(context: RequestContext) -> JsonDict:
    """The latest conversations, or those of delegated agents; with `query` the best matching messages of all."""
    store, query, limit = context.served.sessions, context.query["query"], context.query["limit"]
    if query.strip():
        return {"sessions": [], "hits": [each._asdict() for each in search(store, query, limit=limit)]}
    turns, found = context.served.turns, store.recent(limit=limit, kind=context.query["kind"])
    return {"sessions": [{**each._asdict(), "is_running": turns.is_running(each.id)} for each in found], "hits": []}


@Endpoint("GET", "/v1/sessions/{id}", _WHOLE)
def session(context: RequestContext) -> JsonDict:
    """One conversation: messages, calls, model usage and decisions."""
    store = context.served.sessions
    info = store.get(context.path["id"])
    decided, messages = context.served.approvals.decisions.of_session(info.id), store.messages(info.id, hidden=True)
    return {
        "session": info._asdict(),
        "messages": [{"id": each.id, "at": each.at, **each.message} for each in messages],
        "calls": [each._asdict() for each in store.calls(info.id)],
        "model_calls": [each._asdict() for each in store.model_calls(info.id)],
        "children": [each._asdict() for each in store.children(info.id)],
        "decisions": [{**each._asdict(), "keys": list(each.keys)} for each in decided],
        "is_running": context.served.turns.is_running(info.id),
        "mode": _mode_of(context, info.id).value,
        "written": "".join(context.served.turns.written.get(info.id, ())),
    }


@Endpoint("POST", "/v1/sessions", role=Role.OPERATE, body=_MESSAGE, media="text/event-stream")
async def begin(context: RequestContext) -> Any:
    """Start a conversation with an agent. Its answer is a stream of events that ends with `TurnEnded`."""
    return await _turn(context, None)


@Endpoint("POST", "/v1/sessions/{id}/turns", role=Role.OPERATE, body=_MESSAGE, media="text/event-stream")
async def go_on(context: RequestContext) -> Any:
    """Send a message in a conversation."""
    return await _turn(context, context.path["id"])


async def _turn(context: RequestContext, session_id: str | None) -> Any:
    body, turns = context.body, context.served.turns
    mode = _mode(context)
    agent = await turns.agent(session_id, model=body.get("model"), toolsets=body.get("toolsets"))
    context.served.app.gate.modes.set(agent.session_id, mode or _mode_of(context, agent.session_id))
    if turns.is_running(agent.session_id):
        raise HttpError(409, "busy", "the session is busy with a turn; stop it, or wait")
    return streamed(_events(context, agent))


async def _events(context: RequestContext, agent: Any) -> AsyncIterator[bytes]:
    text, detached = context.body["text"], context.body.get("detached", False)
    if images := context.body.get("images"):
        shown = ({"type": "image_url", "image_url": {"url": each}} for each in images)
        text = [{"type": "text", "text": text}, *shown]
    yield frame("session", {"id": agent.session_id})
    try:
        async for event in context.served.turns.run(agent, text, detached=detached):
            yield frame(type(event).__name__, payload_of(event))
    except SessionBusy as error:
        yield frame("error", {"error": str(error), "error_type": "busy"})


@Endpoint("POST", "/v1/sessions/{id}/stop", record(stopped=FLAG), role=Role.OPERATE)
async def stop(context: RequestContext) -> JsonDict:
    """Interrupt the current turn."""
    info = await asyncio.to_thread(context.served.sessions.get, context.path["id"])
    return {"stopped": context.served.turns.stop(info.id)}


@Endpoint("POST", "/v1/sessions/{id}/steer", record(heard=FLAG), role=Role.OPERATE, body=_STEERED)
async def steer(context: RequestContext) -> JsonDict:
    """Say something to the agent while it works. `heard` is false if it does not work here now."""
    info = await asyncio.to_thread(context.served.sessions.get, context.path["id"])
    return {"heard": context.served.turns.steer(info.id, context.body["text"])}


@Endpoint("PUT", "/v1/sessions/{id}/mode", _OF_MODE, role=Role.OPERATE, body=_OF_MODE)
async def set_mode(context: RequestContext) -> JsonDict:
    """Choose how much the agent of a conversation may do by itself, while this server runs."""
    info = await asyncio.to_thread(context.served.sessions.get, context.path["id"])
    mode = _mode(context) or Mode.AUTO
    context.served.app.gate.modes.set(info.id, mode)
    return {"mode": mode.value}


def _mode_of(context: RequestContext, session_id: str) -> Mode:
    app = context.served.app
    return app.gate.modes.of(session_id, usual_mode(app.environments.settings(session_id).options.get("profile")))


def _mode(context: RequestContext) -> Mode | None:
    """The mode that the body names. Raises HttpError."""
    mode = Mode(context.body["mode"]) if "mode" in context.body else None
    if mode is Mode.YOLO and not context.served.app.gate.settings.takes_modes:
        raise HttpError(409, "not_allowed", "approvals cannot be switched off here: nobody watches this server")
    return mode
