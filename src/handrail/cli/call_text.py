"""Calls and their results in words, for you to read."""

import json
import sys
import time
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from ..core.outcome import Outcome, parsed
from ..core.registry import ToolRegistry
from ..types import JsonDict
from .output import colours, note, paint, visible

# The fields that hold what a tool is called for, where it has one.
MAIN_FIELDS = ("content", "output")
# What an undo did to a path, by the result's field.
UNDONE = {"put_back": "restored", "as_before": "reverted", "taken_away": "removed"}
TODO_MARKS = {"pending": "☐", "in_progress": "▶", "completed": "☑", "cancelled": "☒"}
_REASON_CHARS = 100


def main_text(outcome: Outcome) -> str | None:
    """The one text that a result is about, if it is about one."""
    result = parsed(outcome)
    if not isinstance(result, dict):
        return outcome if isinstance(outcome, str) and result is None else None
    return next((result[name] for name in MAIN_FIELDS if isinstance(result.get(name), str)), None)


def row_text(item: Any) -> str:
    """One entry of a list, as grep would write it: `src/a.py:12: the line`."""
    if not isinstance(item, dict):
        return str(item)
    *first, last = (str(value) for value in item.values())
    return ":".join(first) + (f": {last}" if first else last)


def calls_of(message: JsonDict) -> Iterator[str]:
    """The calls in a message of a model, each with its arguments."""
    for call in message.get("tool_calls") or ():
        yield f"{call['function']['name']} {call['function']['arguments']}"


def main_argument(registry: ToolRegistry, tool: str, arguments: JsonDict, *, max_chars: int = 50) -> str:
    """What a call is about: the argument that the tool cannot do without, or else the first text or list."""
    entry = registry.get_entry(tool)
    required = entry.schema["parameters"].get("required", ()) if entry else ()
    speaking = (name for name, value in arguments.items() if isinstance(value, str | list))
    name = next((name for name in (*required, *speaking) if name in arguments), None)
    return shortened(_one_line(arguments[name]), max_chars) if name else ""


def report_call(line: str, failure: JsonDict | None, *, is_good: bool) -> None:
    """A line on stderr about a call that has ended."""
    mark = paint("✓" if is_good else "✗", "green" if is_good else "red", on=colours(sys.stderr))
    note(f"{line} - {shortened(str(failure['error']), _REASON_CHARS)}" if failure else line, mark=mark)


def duration(milliseconds: float) -> str:
    if milliseconds < 1:
        return "<1 ms"
    return f"{milliseconds:.0f} ms" if milliseconds < 1000 else f"{milliseconds / 1000:.1f} s"


def ran_and_waited(seconds: float, waited: float) -> str:
    """How long a call took, without the time that it waited for an answer."""
    ran = duration(max(0.0, seconds - waited) * 1000)
    return f"ran {ran}, waited {duration(waited * 1000)}" if waited else ran


def age(seconds: float) -> str:
    """How long something has been there, in the two largest units."""
    whole = int(seconds)
    for unit, smaller, length in (("d", "h", 86400), ("h", "m", 3600), ("m", "s", 60)):
        if whole >= length:
            rest = whole % length * {"h": 24, "m": 60, "s": 60}[smaller] // length
            return f"{whole // length}{unit} {rest}{smaller}"
    return f"{whole}s"


def when(at: float) -> str:
    """A time in the local time zone."""
    return datetime.fromtimestamp(at).astimezone().strftime("%Y-%m-%d %H:%M:%S")


def since(at: float) -> str:
    """The age of what has been there since a time."""
    return age(max(0.0, time.time() - at))


def counted(number: int, what: str) -> str:
    return f"{number:,} {what}{'s' * (number != 1)}"


def shortened(text: str, max_chars: int) -> str:
    return text if len(text) <= max_chars else text[: max_chars - 1] + "…"


def _one_line(value: Any) -> str:
    if isinstance(value, list):
        if len(value) == 1 and isinstance(value[0], dict):  # such as the one task that is delegated
            value = next((each for each in value[0].values() if isinstance(each, str)), value)
        if isinstance(value, list):
            return counted(len(value), "item")
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return visible(" ".join(text.split()))
