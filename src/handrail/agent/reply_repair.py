"""Repair a model's answer for the conversation: calls get unique ids, and calls written as text become calls."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Collection, Iterable
from typing import Any

from ..types import JsonDict

# How models write a call as text when their server does not recognise it: Hermes and Qwen, Llama, Mistral, Claude, DeepSeek;
# and an object that is the whole answer.
_TAGGED = re.compile(r"<tool_call>\s*(\{.*?\})\s*(?:</tool_call>|\Z)", re.DOTALL)
_FUNCTION = re.compile(r"<function=([\w.-]+)>\s*(\{.*?\})\s*</function>", re.DOTALL)
_LISTED = re.compile(r"\[TOOL_CALLS\]\s*(\[.*\])", re.DOTALL)
_INVOKED = re.compile(r"""<invoke name=["']([\w.-]+)["']>(.*?)</invoke>""", re.DOTALL)
_PARAMETER = re.compile(r"""<parameter name=["']([\w.-]+)["']>(.*?)</parameter>""", re.DOTALL)
_DEEPSEEK = re.compile(
    r"<｜tool▁sep｜>([\w.-]+)\s*(?:```json)?\s*(\{.*?\})\s*(?:```)?\s*<｜tool▁call▁end｜>", re.DOTALL
)
_WHOLE = re.compile(r"\A\s*(?:<\|python_tag\|>|```(?:json)?)?\s*(\{.*\})\s*(?:```)?\s*\Z", re.DOTALL)
# What is left around calls that were taken out.
_AROUND = re.compile(r"</?(?:tool_calls?|function_calls)>|<｜[^<>｜]*｜>(?:function)?")


def repaired(message: JsonDict, *, tools: Collection[str], used_ids: Collection[str]) -> tuple[JsonDict, str]:
    """The message, and what was wrong with it ("" for nothing). Text becomes a call only if it names a tool."""
    content = message.get("content") or ""
    calls = [_call(raw) for raw in message.get("tool_calls") or ()]
    problem = ""
    if not calls and isinstance(content, str):
        content, calls = _calls_in_text(content, tools)
        problem = "the calls were written as text" if calls else ""
    seen: set[str] = set()
    for call in calls:
        if not call["id"] or call["id"] in seen or call["id"] in used_ids:
            call["id"] = f"call_{uuid.uuid4().hex[:16]}"
        seen.add(call["id"])
    made: JsonDict = {"role": "assistant", "content": content}
    if calls:
        made["tool_calls"] = calls
    return made, problem


def is_empty(message: JsonDict) -> bool:
    return not message.get("tool_calls") and not str(message.get("content") or "").strip()


def _call(raw: Any) -> JsonDict:
    function = raw.get("function") or {}
    arguments = function.get("arguments", "")
    if not isinstance(arguments, str):
        arguments = json.dumps(arguments, ensure_ascii=False)
    return {
        "id": str(raw.get("id") or ""),
        "type": "function",
        "function": {"name": str(function.get("name") or ""), "arguments": arguments or "{}"},
    }


def _calls_in_text(text: str, tools: Collection[str]) -> tuple[str, list[JsonDict]]:
    """The text without its calls, and the calls. All calls are understood, or none is taken."""
    for pattern, read in _WAYS:
        found = [call for match in pattern.finditer(text) for call in read(match)]
        if found and all(call is not None and call["function"]["name"] in tools for call in found):
            rest = _AROUND.sub("", pattern.sub("", text)).strip()
            return rest, [call for call in found if call is not None]
    return text, []


def _tagged(match: re.Match[str]) -> Iterable[JsonDict | None]:
    yield _from_json(match[1])


def _function(match: re.Match[str]) -> Iterable[JsonDict | None]:
    yield _call({"function": {"name": match[1], "arguments": match[2]}})


def _listed(match: re.Match[str]) -> Iterable[JsonDict | None]:
    try:
        found = json.loads(match[1])
    except ValueError:
        yield None
        return
    for each in found if isinstance(found, list) else ():
        yield _from_json(json.dumps(each))


def _invoked(match: re.Match[str]) -> Iterable[JsonDict | None]:
    arguments = dict(_PARAMETER.findall(match[2]))
    yield _call({"function": {"name": match[1], "arguments": arguments}})


_WAYS = (
    (_TAGGED, _tagged),
    (_FUNCTION, _function),
    (_LISTED, _listed),
    (_INVOKED, _invoked),
    (_DEEPSEEK, _function),
    (_WHOLE, _tagged),
)


def _from_json(text: str) -> JsonDict | None:
    try:
        found = json.loads(text)
    except ValueError:
        return None
    if not isinstance(found, dict) or not isinstance(found.get("name"), str):
        return None
    return _call(
        {"function": {"name": found["name"], "arguments": found.get("arguments", found.get("parameters", {}))}}
    )
