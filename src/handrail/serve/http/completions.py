"""The OpenAI-compatible API: the agent answers, with its tools, which run on this server."""

import json
import time
import uuid
from collections.abc import AsyncIterator
from typing import Any

from starlette.responses import StreamingResponse

from ...agent.agent import Agent
from ...agent.events import End, TextDelta, ToolEnded, ToolStarted, TurnEnded
from ...types import JsonDict
from ..endpoint import Endpoint, HttpError, RequestContext, as_response
from ..tokens import Role
from .shapes import ANYTHING, FLAG, TEXT, bounded, loose, many, maybe

MODEL = "handrail"
SESSION_HEADER = "x-handrail-session"
_REASONS = {End.ANSWERED: "stop", End.TOKENS: "length", End.TURNS: "length", End.TIME: "length", End.COST: "length"}

_CONTENT = {"anyOf": [bounded(1_000_000), many(ANYTHING), {"type": "null"}]}
_MESSAGE = {"type": "object", "properties": {"role": TEXT, "content": _CONTENT}, "required": ["role"]}
_MESSAGES = {"type": "array", "items": _MESSAGE, "minItems": 1, "maxItems": 10_000}
_FIELDS = {"messages": _MESSAGES, "model": maybe(TEXT), "stream": maybe(FLAG)}
_BODY = {"type": "object", "properties": _FIELDS, "required": ["messages"]}
_ANSWER = loose(id=TEXT, choices=many(ANYTHING))


@Endpoint("GET", "/v1/models", loose(object=TEXT, data=many(ANYTHING)))
async def models(context: RequestContext) -> JsonDict:
    """The one model of this server: its agent."""
    model = {"id": MODEL, "object": "model", "created": int(context.served.started), "owned_by": MODEL}
    return {"object": "list", "data": [model]}


@Endpoint("POST", "/v1/chat/completions", _ANSWER, role=Role.OPERATE, body=_BODY, streams=True)
async def complete(context: RequestContext) -> Any:
    """A chat completion by the agent. The last message is its prompt; `x-handrail-session` continues a session.

    Without that header every request is a new conversation, and the earlier messages are its history.
    """
    body = context.body
    text = _prompt(body["messages"], has_session=SESSION_HEADER in context.request.headers)
    agent = await context.served.turns.agent(context.request.headers.get(SESSION_HEADER), platform="api")
    if context.served.turns.is_running(agent.session_id):
        raise HttpError(409, "busy", "the session is busy with a turn")
    name = f"chatcmpl-{uuid.uuid4().hex}"
    if body.get("stream"):
        headers = {SESSION_HEADER: agent.session_id}
        return StreamingResponse(_chunks(context, agent, text, name), media_type="text/event-stream", headers=headers)
    ended = None
    async for event in context.served.turns.run(agent, text):
        ended = event if isinstance(event, TurnEnded) else ended
    assert ended is not None
    if ended.end is End.FAILED:
        raise HttpError(502, "model_failed", ended.reason)
    message, reason = {"role": "assistant", "content": ended.answer}, _REASONS.get(ended.end, "stop")
    choice = {"index": 0, "message": message, "finish_reason": reason}
    response = as_response({**_head(name, "chat.completion"), "choices": [choice], "usage": _usage(ended)})
    response.headers[SESSION_HEADER] = agent.session_id
    return response


async def _chunks(context: RequestContext, agent: Agent, text: str, name: str) -> AsyncIterator[bytes]:
    def chunk(delta: JsonDict, reason: str | None = None, **more: Any) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": reason}
        payload = {**_head(name, "chat.completion.chunk"), "choices": [choice], **more}
        return f"data: {json.dumps(payload, ensure_ascii=False)}\n\n".encode("utf-8", "replace")

    yield chunk({"role": "assistant", "content": ""})
    async for event in context.served.turns.run(agent, text):
        if isinstance(event, TextDelta):
            yield chunk({"content": event.text})
        elif isinstance(event, ToolStarted | ToolEnded):
            # A comment, which clients ignore.
            yield f": {type(event).__name__} {event.tool}\n\n".encode()
        elif isinstance(event, TurnEnded):
            if event.end is End.FAILED:
                error = {"message": event.reason, "type": "model_failed"}
                yield f"data: {json.dumps({'error': error})}\n\n".encode()
            else:
                yield chunk({}, _REASONS.get(event.end, "stop"), usage=_usage(event))
    yield b"data: [DONE]\n\n"


def _prompt(messages: list[JsonDict], *, has_session: bool) -> str:
    turns = [(str(each["role"]), _text(each.get("content"))) for each in messages]
    if turns[-1][0] != "user":
        raise HttpError(422, "invalid_body", "the last message must be the user's: tools run on the server")
    if has_session or len(turns) == 1:
        return turns[-1][1]
    before = "\n\n".join(f"[{role}]\n{text}" for role, text in turns[:-1] if text)
    return f"The conversation so far:\n\n{before}\n\nNow:\n\n{turns[-1][1]}"


def _text(content: Any) -> str:
    if isinstance(content, list):
        return "\n".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    return "" if content is None else str(content)


def _head(name: str, kind: str) -> JsonDict:
    return {"id": name, "object": kind, "created": int(time.time()), "model": MODEL}


def _usage(ended: TurnEnded) -> JsonDict:
    used = ended.usage
    total = used.input_tokens + used.output_tokens
    return {"prompt_tokens": used.input_tokens, "completion_tokens": used.output_tokens, "total_tokens": total}
