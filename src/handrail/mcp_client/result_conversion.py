"""Turn what a server answers into what a model gets: text, data, pictures, sound, and links to more."""

import json
from functools import partial
from typing import Any

from ..errors import ToolFailed
from ..types import JsonDict

_canonical = partial(json.dumps, sort_keys=True)
_AUDIO = {"audio/wav": "wav", "audio/x-wav": "wav", "audio/mpeg": "mp3", "audio/mp3": "mp3"}


def result_of(answer: Any) -> JsonDict:
    """The result of a call. Raises ToolFailed for one that the tool itself reports as failed."""
    parts = [_part(block) for block in answer.content]
    texts = [part["text"] for part in parts if part["type"] == "text"]
    text, data = "\n".join(texts), answer.structured_content
    if answer.is_error:
        rest = None if _parsed(text) == data else data
        if isinstance(rest, dict):
            rest = {name: value for name, value in rest.items() if value != text}
        more = {"structured": rest} if rest else {}
        raise ToolFailed(text or "the tool reports a failure, and does not say which", **more)
    # Most servers send their data a second time as text, for clients that know nothing else.
    kept = texts if data is None else _unsaid(texts, data)
    if any(part["type"] != "text" for part in parts):
        parts = [part for part in parts if part["type"] != "text" or part["text"] in kept]
        if data is not None:
            parts.append({"type": "text", "text": json.dumps(data, ensure_ascii=False)})
        return {"_multimodal": True, "content": parts}
    if data is None:
        return {"content": text}
    return {"content": "\n".join(kept), "structured": data} if kept else {"structured": data}


def resource_of(answer: Any) -> JsonDict:
    parts = [_content(each) for each in answer.contents]
    if any(part["type"] != "text" for part in parts):
        return {"_multimodal": True, "content": parts}
    return {"content": "\n".join(part["text"] for part in parts)}


def prompt_of(answer: Any) -> JsonDict:
    messages = [{"role": each.role, "content": _part(each.content)} for each in answer.messages]
    return {"description": answer.description or "", "messages": messages}


def _unsaid(texts: list[str], data: Any) -> list[str]:
    """The texts that say something else than the data, one of the fields that its schema names, or a list that is spelled out.
    One that equals a part of a list's item is kept: it may say which of them is meant."""
    said, left, held = {form for text in texts for form in _forms(text)}, [data], set[str]()
    while left:
        value = left.pop()
        held.add(_canonical(value.strip() if isinstance(value, str) else value))
        if isinstance(value, dict):
            left += value.values()
        elif isinstance(value, list):  # of the protocol's own parts, each counts as its text
            items = {_canonical(item.get("text", item) if isinstance(item, dict) else item) for item in value}
            held |= items if items <= said else set()
    is_held = "".join(texts).strip() == "" or _forms("\n".join(texts)) & held
    return [] if is_held else [text for text in texts if not _forms(text) & held]


def _forms(text: str) -> set[str]:
    return {_canonical(text), _canonical(text.strip()), _canonical(_parsed(text))}


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _part(block: Any) -> JsonDict:
    if block.type == "text":
        return {"type": "text", "text": block.text}
    if block.type == "image":
        return _picture(block.mime_type, block.data)
    if block.type == "audio":
        return _sound(block.mime_type, block.data)
    if block.type == "resource_link":
        about = ", ".join(filter(None, (block.mime_type, block.description)))
        return {"type": "text", "text": f"[{block.name}]({block.uri})" + (f": {about}" if about else "")}
    return _content(block.resource)


def _content(resource: Any) -> JsonDict:
    """What a resource holds, in the answer itself."""
    kind = resource.mime_type or ""
    if (text := getattr(resource, "text", None)) is not None:
        return {"type": "text", "text": text}
    if kind.startswith("image/"):
        return _picture(kind, resource.blob)
    if kind.startswith("audio/"):
        return _sound(kind, resource.blob)
    size = len(resource.blob) * 3 // 4
    shown = f"[{resource.uri}: {size:,} bytes of {kind or 'unknown kind'}, which are not shown]"
    return {"type": "text", "text": shown}


def _picture(kind: str, data: str) -> JsonDict:
    return {"type": "image_url", "image_url": {"url": f"data:{kind};base64,{data}"}}


def _sound(kind: str, data: str) -> JsonDict:
    form = _AUDIO.get(kind, kind.removeprefix("audio/"))
    return {"type": "input_audio", "input_audio": {"data": data, "format": form}}
