"""How often each tool was used, over all starts: what is used rarely is left out of a long list of tools first."""

from __future__ import annotations

from collections.abc import Mapping

from ..config.paths import remember, remembered

USES_FILE = "tool-uses.json"
MAX_USES = 10_000


def previous_uses(home: str) -> dict[str, int]:
    """What earlier runtimes with this home have counted."""
    known = remembered(USES_FILE, home=home)
    return {name: count for name, count in known.items() if isinstance(count, int)}


def remember_uses(uses: Mapping[str, int], home: str) -> None:
    """Add the uses of a runtime that ends."""
    if not uses:
        return
    known = previous_uses(home)
    total = {name: known.get(name, 0) + uses.get(name, 0) for name in {*known, *uses}}
    if sum(total.values()) > MAX_USES:  # what was used long ago counts ever less
        total = {name: count // 2 for name, count in total.items() if count > 1}
    remember(USES_FILE, total, home=home)
