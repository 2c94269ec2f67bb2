"""What a page shows, as a tree of roles and names with a ref per element, short enough for a model."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .session import Session

SHORT_CHARS = 6_000
FULL_CHARS = 40_000
# Elements to act on, and those that say where the page is.
_KEPT_ROLES = frozenset(
    "button link textbox searchbox checkbox radio combobox listbox option menuitem menuitemcheckbox menuitemradio tab switch "
    "slider spinbutton treeitem iframe heading alert alertdialog dialog status".split()
)
_LINE = re.compile(r"^(\s*)- ([\w/]+)")


async def take(session: Session, *, full: bool = False) -> str:
    """The page's tree, read again if the page was still waiting for its server."""
    text = await session.page.aria_snapshot(mode="ai")
    if session.is_waiting_for_server:
        await session.settle()
        if session.dialog is not None:
            return ""
        text = await session.page.aria_snapshot(mode="ai")
    return shortened(text, full=full)


def shortened(text: str, *, full: bool) -> str:
    """A short tree unchanged; else only what can be acted on, cut at the end of a line with a notice."""
    max_chars = FULL_CHARS if full else SHORT_CHARS
    if len(text) <= max_chars:
        return text
    hint = "the rest is left out"
    if not full:
        text = compact(text)
        hint = "text and the rest are left out; full=true shows them"
    if len(text) <= max_chars:
        return f"{text}\n# {hint if not full else ''}"
    kept = text[:max_chars].rsplit("\n", 1)[0]
    left = text.count("\n") - kept.count("\n")
    return f"{kept}\n# {left} more lines: {hint}"


def compact(text: str) -> str:
    """The lines of elements to act on, with the lines of the elements that contain them."""
    lines = text.split("\n")
    kept: list[str] = []
    # The containers of the current line that are not kept yet, with their depth.
    waiting: list[tuple[int, str]] = []
    for line in lines:
        match = _LINE.match(line)
        if match is None:
            continue
        depth, role = len(match.group(1)), match.group(2)
        waiting = [(outer, text) for outer, text in waiting if outer < depth]
        if role in _KEPT_ROLES:
            kept += [text for _, text in waiting]
            waiting = []
            kept.append(line)
        elif role != "text" and not role.startswith("/"):
            waiting.append((depth, line))
    return "\n".join(kept)
