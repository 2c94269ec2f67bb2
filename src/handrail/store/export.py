"""Sessions as text for other programs: a line a message, or trajectories as models are trained on."""

import json
from collections.abc import Iterable, Iterator
from typing import Any

from ..types import JsonDict
from .sessions import SessionStore

_FROM = {"system": "system", "user": "human", "assistant": "gpt", "tool": "tool"}


def as_jsonl(store: SessionStore, session_id: str) -> Iterator[str]:
    """The session first, then every message of the conversation, each a JSON object of its own."""
    info = store.get(session_id)
    yield _line({"session": info._asdict()})
    for stored in store.messages(info.id):
        yield _line({"id": stored.id, "at": stored.at, **stored.message})


def as_sharegpt(store: SessionStore, session_id: str) -> JsonDict:
    """`{"conversations": [{"from": "human", "value": ...}, ...]}`. Calls and results are in tags, as such data has them."""
    info = store.get(session_id)
    turns = sharegpt_turns([stored.message for stored in store.messages(info.id)])
    return {"id": info.id, "model": info.model, "conversations": turns}


def sharegpt_turns(messages: Iterable[JsonDict]) -> list[JsonDict]:
    turns: list[JsonDict] = []
    for message in messages:
        said = {"from": _FROM.get(str(message["role"]), "human"), "value": _value(message)}
        if turns and turns[-1]["from"] == said["from"] == "tool":  # the results of one answer's calls are one turn
            turns[-1]["value"] += f"\n{said['value']}"
        else:
            turns.append(said)
    return turns


def text_of(message: JsonDict) -> str:
    content = message.get("content")
    if isinstance(content, list):
        kinds = ((part.get("type"), part) for part in content)
        return "\n".join(str(part["text"]) if kind == "text" else f"[{kind}]" for kind, part in kinds)
    return str(content or "")


def _value(message: JsonDict) -> str:
    text = text_of(message)
    if message["role"] == "tool":
        response = {"name": message.get("name", ""), "content": text}
        return f"<tool_response>\n{_line(response)}\n</tool_response>"
    functions = (call["function"] for call in message.get("tool_calls") or ())
    made = ({"name": each["name"], "arguments": _loaded(each["arguments"])} for each in functions)
    calls = [f"<tool_call>\n{_line(each)}\n</tool_call>" for each in made]
    return "\n".join([*([text] if text else []), *calls])


def _loaded(arguments: str) -> Any:
    try:
        return json.loads(arguments)
    except ValueError:
        return arguments


def _line(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
