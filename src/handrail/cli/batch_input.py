"""Read the calls that `handrail run` is given: a message, a list, or one of either on each line."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import InvalidArguments
from ..runtime.tool_calls import read_calls


@dataclass(frozen=True, slots=True)
class BatchInput:
    """The calls, grouped as they may run: one group is one message's, or bare calls that follow each other."""

    batches: list[list[Any]]
    by_line: bool


def read_batches(name: str, *, by_line: bool = False) -> BatchInput:
    """Read a file, or stdin for `-`. Everything is read before anything runs. Raises InvalidArguments."""
    text = _text(name)
    by_line = by_line or name.endswith((".jsonl", ".ndjson"))
    if not by_line:
        try:
            whole = json.loads(text)
        except ValueError as error:
            first = error
        else:
            return BatchInput(_grouped([("", whole)]), by_line=False)
    values = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        try:
            values.append((f"line {number}: ", json.loads(line)))
        except ValueError as error:
            # A file whose first line is not JSON was never meant to be JSON lines.
            what = f"line {number} is not JSON: {error}" if by_line or values else f"this is not JSON: {first}"
            raise InvalidArguments(f"{name}: {what}") from None
    return BatchInput(_grouped(values), by_line=True)


def _text(name: str) -> str:
    try:
        return sys.stdin.read() if name == "-" else Path(name).read_text("utf-8")
    except OSError as error:
        raise InvalidArguments(f"cannot read {name}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise InvalidArguments(f"{name} is not UTF-8 text") from None


def _grouped(values: list[tuple[str, Any]]) -> list[list[Any]]:
    batches: list[list[Any]] = []
    in_row = False
    for place, value in values:
        for item in _items(value):
            is_call = _is_call(item)
            if is_call and in_row:
                batches[-1].append(item)
            elif is_call:
                batches.append([item])
            elif calls := _calls_of(place, item):
                batches.append(calls)
            in_row = is_call
    if not batches:
        raise InvalidArguments(
            "there are no tool calls in this; give a message with tool_calls, a list of calls, or one call per line"
        )
    return batches


def _items(value: Any) -> Iterator[Any]:
    """The messages and calls in a value: also in a provider's whole response."""
    if isinstance(value, list):
        for item in value:
            yield from _items(item)
    elif isinstance(value, dict) and isinstance(value.get("choices"), list):
        yield from (choice.get("message") for choice in value["choices"][:1] if isinstance(choice, dict))
    elif isinstance(value, dict) and isinstance(value.get("output"), list):
        yield from (item for item in value["output"] if isinstance(item, dict) and item.get("type") == "function_call")
    else:
        yield value


def _is_call(item: Any) -> bool:
    return isinstance(item, dict) and "role" not in item and ("function" in item or "name" in item)


def _calls_of(place: str, item: Any) -> list[Any]:
    """The calls of a message. A message without calls has none; anything else is an error."""
    try:
        return read_calls(item)
    except InvalidArguments:
        if isinstance(item, dict) and ("role" in item or "content" in item):
            return []
        shown = json.dumps(item, ensure_ascii=False)
        raise InvalidArguments(
            f"{place}this is neither a message nor a tool call: {shown if len(shown) < 80 else shown[:79] + '…'}"
        ) from None
