"""A scripted reply as it goes over the wire: in OpenAI's events, whole, or in Anthropic's events."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence

from ..protocols import ModelReply
from ..types import JsonDict

_PIECE_CHARS = 7
_USAGE = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}


def events(reply: ModelReply) -> Iterator[str]:
    deltas: list[JsonDict] = [{"content": piece} for piece in _pieces(reply.content)]
    for index, call in enumerate(reply.tool_calls):
        function = call["function"]
        begin = {"index": index, "id": call["id"], "type": "function"}
        deltas.append({"tool_calls": [{**begin, "function": {"name": function["name"], "arguments": ""}}]})
        deltas.append({"tool_calls": [{"index": index, "function": {"arguments": function["arguments"]}}]})
    return raw_events(deltas, "tool_calls" if reply.tool_calls else "stop")


def raw_events(deltas: Sequence[JsonDict], finish: str | None) -> Iterator[str]:
    for delta in deltas:
        yield chunk(delta)
    if finish is not None:
        yield chunk({}, finish=finish)
    yield json.dumps({**_frame("chat.completion.chunk"), "choices": [], "usage": _USAGE})
    yield "[DONE]"


def chunk(delta: JsonDict, *, finish: str | None = None) -> str:
    choice = {"index": 0, "delta": {"role": "assistant", **delta}, "finish_reason": finish}
    return json.dumps({**_frame("chat.completion.chunk"), "choices": [choice]})


def whole(reply: ModelReply) -> JsonDict:
    message: JsonDict = {"role": "assistant", "content": reply.content}
    if reply.tool_calls:
        message["tool_calls"] = [dict(call) for call in reply.tool_calls]
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if reply.tool_calls else "stop"}
    return {**_frame("chat.completion"), "choices": [choice], "usage": _USAGE}


def anthropic_events(reply: ModelReply) -> Iterator[str]:
    usage = {"input_tokens": 10, "output_tokens": 0, "cache_read_input_tokens": 4}
    head = {
        "id": "scripted",
        "type": "message",
        "role": "assistant",
        "content": [],
        "model": "scripted",
        "usage": usage,
    }
    yield json.dumps({"type": "message_start", "message": head})
    index = 0
    if reply.content:
        yield _block(index, {"type": "text", "text": ""})
        for piece in _pieces(reply.content):
            yield _delta(index, {"type": "text_delta", "text": piece})
        yield json.dumps({"type": "content_block_stop", "index": index})
        index += 1
    for index, call in enumerate(reply.tool_calls, index):  # noqa: B020  the calls are numbered after the text
        yield _block(index, {"type": "tool_use", "id": call["id"], "name": call["function"]["name"], "input": {}})
        yield _delta(index, {"type": "input_json_delta", "partial_json": call["function"]["arguments"]})
        yield json.dumps({"type": "content_block_stop", "index": index})
    reason = "tool_use" if reply.tool_calls else "end_turn"
    yield json.dumps({"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"output_tokens": 5}})
    yield json.dumps({"type": "message_stop"})


def named(event: str) -> str:
    """Anthropic's events have a name of their own in front."""
    kind = json.loads(event).get("type", "") if event.startswith('{"type": "') else ""
    return f"event: {kind}\n" if kind else ""


def _pieces(text: str) -> Iterator[str]:
    return (text[start : start + _PIECE_CHARS] for start in range(0, len(text), _PIECE_CHARS))


def _block(index: int, block: JsonDict) -> str:
    return json.dumps({"type": "content_block_start", "index": index, "content_block": block})


def _delta(index: int, delta: JsonDict) -> str:
    return json.dumps({"type": "content_block_delta", "index": index, "delta": delta})


def _frame(kind: str) -> JsonDict:
    return {"id": "scripted", "object": kind, "created": int(time.time()), "model": "scripted"}
