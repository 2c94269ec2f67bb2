"""Say in a few words what a call is and what became of it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from .output import visible

if TYPE_CHECKING:
    from ..core.registry import ToolRegistry
    from ..types import JsonDict


def main_argument(registry: ToolRegistry, tool: str, arguments: JsonDict, *, max_chars: int = 50) -> str:
    """What a call is about: the argument that the tool cannot do without, or else the first text or list."""
    name = _main_name(registry, tool, arguments)
    return shortened(_one_line(arguments[name]), max_chars) if name else ""


def other_arguments(registry: ToolRegistry, tool: str, arguments: JsonDict, *, max_chars: int = 24) -> str:
    """The rest of a call's arguments, as `key=value`, text in quotes."""
    main = _main_name(registry, tool, arguments)
    others = (
        (name, _one_line(json.dumps(value, ensure_ascii=False))) for name, value in arguments.items() if name != main
    )
    return " ".join(f"{name}={shortened(value, max_chars)}" for name, value in others)


def duration(milliseconds: float) -> str:
    if milliseconds < 1:
        return "<1 ms"
    return f"{milliseconds:.0f} ms" if milliseconds < 1000 else f"{milliseconds / 1000:.1f} s"


def age(seconds: float) -> str:
    """How long something has been there, in the two largest units."""
    whole = int(seconds)
    for unit, smaller, length in (("d", "h", 86400), ("h", "m", 3600), ("m", "s", 60)):
        if whole >= length:
            rest = whole % length * {"h": 24, "m": 60, "s": 60}[smaller] // length
            return f"{whole // length}{unit} {rest}{smaller}"
    return f"{whole}s"


def counted(number: int, what: str) -> str:
    return f"{number:,} {what}{'s' * (number != 1)}"


def shortened(text: str, max_chars: int) -> str:
    return text if len(text) <= max_chars else text[: max_chars - 1] + "…"


def _main_name(registry: ToolRegistry, tool: str, arguments: JsonDict) -> str | None:
    entry = registry.get_entry(tool)
    required = entry.schema["parameters"].get("required", ()) if entry else ()
    speaking = (name for name, value in arguments.items() if isinstance(value, str | list))
    return next((name for name in (*required, *speaking) if name in arguments), None)


def _one_line(value: Any) -> str:
    if isinstance(value, list):
        return counted(len(value), "item")
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return visible(" ".join(text.split()))
