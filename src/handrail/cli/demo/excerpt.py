"""The few lines of a result that show what it is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from ..output import visible
from ..render import parsed

_MARKS = {"completed": "☑", "in_progress": "▶", "pending": "☐", "cancelled": "☒"}
_DIFF_STYLES = {"+": "green", "-": "red", "@": "cyan"}


class Line(NamedTuple):
    text: str
    style: str = "dim"


def excerpt(content: str, *, max_lines: int) -> list[Line]:
    """A result in at most so many lines."""
    lines = list(_lines(parsed(content) or {}))
    if len(lines) <= max_lines:
        return lines
    return [*lines[: max_lines - 1], Line(f"… {len(lines) - max_lines + 1} more lines")]


def _lines(result: dict[str, Any]) -> Iterator[Line]:
    if result.get("error"):
        yield Line(f"{result.get('error_type', 'error')}: {visible(result['error'])}", "red")
        return
    for item in result.get("todos", ()):
        yield Line(f"{_MARKS[item['status']]} {item['content']}", "dim" if item["status"] == "completed" else "")
    for match in result.get("matches", ()):
        yield Line(":".join(visible(str(value)) for value in match.values()))
    if "matches" in result:
        yield Line(f"{result.get('total_matches', result.get('total'))} in all")
    for line in str(result.get("diff", "")).splitlines():
        if not line.startswith(("---", "+++")):
            yield Line(visible(line), _DIFF_STYLES.get(line[:1], "dim"))
    yield from _text(result)
    if "status" in result:
        waits = ", waits for input" if result.get("waiting_for_input") else ""
        yield Line(f"{result['session_id']} {result['status']}{waits}", "cyan")


def _text(result: dict[str, Any]) -> Iterator[Line]:
    text = str(result.get("content") or result.get("output") or "")
    for stored in result.get("stored", {}).values():
        first, *_, last = text.strip().splitlines()
        yield from (Line(visible(first)), Line("[…]"), Line(visible(last)))
        yield Line(f"{stored['chars']:,} characters in {stored['lines']:,} lines are kept as {stored['id']}", "cyan")
        return
    for line in text.splitlines():
        if line.strip():
            yield Line(visible(line))
    if "exit_code" in result:
        yield Line(f"exit code {result['exit_code']}", "green" if result["exit_code"] == 0 else "red")
