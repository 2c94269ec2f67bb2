"""Hook functions as plugins of Hermes Agent write them: other names for some arguments, and arguments that we do not have."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any


@cache
def table() -> Any:
    """Hooks of things that do not exist here, which are never called; and our names for their arguments."""
    return json.loads(Path(__file__).with_name("original_hooks.json").read_text("utf-8"))


def adapted(callback: Callable[..., Any]) -> Callable[..., Any]:
    """A hook of ours that calls theirs: with every argument that it names, None for one that there is not here."""
    parameters = inspect.signature(callback).parameters.values()
    takes_all = any(each.kind is each.VAR_KEYWORD for each in parameters)
    named = [each.name for each in parameters if each.kind in (each.POSITIONAL_OR_KEYWORD, each.KEYWORD_ONLY)]

    def call(**payload: Any) -> Any:
        result = callback(**(payload if takes_all else {}) | {name: _value(name, payload) for name in named})
        # How theirs adds to a prompt.
        return result["context"] if isinstance(result, dict) and set(result) == {"context"} else result

    call.__qualname__ = getattr(callback, "__qualname__", type(callback).__name__)
    return call


def _value(name: str, payload: Mapping[str, Any]) -> Any:
    if name in ("completed", "interrupted") and name not in payload:
        return payload.get("reason") == ("answered" if name == "completed" else name)
    if name == "command" and name not in payload:
        return payload.get("args", {}).get(name)
    return payload.get(name, payload.get(table()["names"].get(name)))
