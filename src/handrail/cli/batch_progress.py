"""Tell on stderr how the calls of a batch go, while they run."""

from __future__ import annotations

import contextlib
import sys
from collections import Counter
from typing import TYPE_CHECKING

from ..core.outcome import error_of
from ..plugins.hooks import hookimpl
from .call_text import duration, main_argument, shortened
from .open_runtime import show_progress
from .output import colours, note, paint

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..runtime.dispatch import Runtime
    from ..types import JsonDict, Progress

_REASON_CHARS = 100


class Watch:
    """A line for each call that ends."""

    def __init__(self, runtime: Runtime) -> None:
        self._registry = runtime.registry
        self._told: Counter[tuple[str, str]] = Counter()

    def progress(self, progress: Progress) -> None:
        show_progress(progress)

    @hookimpl(inline=True)
    def post_tool_call(
        self, tool_name: str, args: JsonDict, result: object, duration_ms: float, tool_call_id: str
    ) -> None:
        self._told[tool_call_id, tool_name] += 1
        about = main_argument(self._registry, tool_name, args)
        self._tell(tool_name, result, " ".join(filter(None, [about, f"({duration(duration_ms)})"])))

    def rest(self, messages: list[JsonDict]) -> None:
        """The calls that ended without a word: unreadable, or cancelled before they began."""
        for message in messages:
            key = (message["tool_call_id"], message["name"])
            if self._told[key]:
                self._told[key] -= 1
            else:
                self._tell(message["name"] or "?", message["content"], "")

    def _tell(self, tool: str, result: object, about: str) -> None:
        failure = error_of(result) if isinstance(result, str) else None
        painted = colours(sys.stderr)
        mark = paint("✗", "red", on=painted) if failure else paint("✓", "green", on=painted)
        reason = shortened(str(failure["error"]), _REASON_CHARS) if failure else ""
        line = " ".join(filter(None, [self._registry.get_emoji(tool), tool, about, reason and f"- {reason}"]))
        note(line, mark=mark)


@contextlib.contextmanager
def watching(runtime: Runtime) -> Iterator[Watch]:
    """Watch a runtime's calls for a while."""
    watch = Watch(runtime)
    name = runtime.hooks.register(watch)
    try:
        yield watch
    finally:
        runtime.hooks.unregister(name)
