"""The titled code blocks of the documentation: complete programs, and captures of a terminal."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
FRAMEWORKS = ROOT / "docs" / "how-to" / "frameworks.md"
_BLOCK = r'^```{language} title="{title}"\n(.*?)^```$'


def programs(*, of_frameworks: bool = False) -> Iterator[tuple[str, str]]:
    """The name and the code of each program that the pages show whole. Those of frameworks need the framework's packages."""
    for page in sorted((ROOT / "docs").rglob("*.md")):
        if (page == FRAMEWORKS) is not of_frameworks:
            continue
        pattern = _BLOCK.format(language="python", title=r"([\w.]+)")
        yield from re.findall(pattern, page.read_text(), re.DOTALL | re.MULTILINE)


def shows(page: str, title: str, capture: str) -> bool:
    """Whether a page shows this capture of a terminal. With UPDATE_PICTURES set it is written into the page first."""
    path = ROOT / "docs" / page
    pattern = re.compile(_BLOCK.format(language="text", title=re.escape(title)), re.DOTALL | re.MULTILINE)
    text = path.read_text()
    found = pattern.search(text)
    assert found is not None, f"docs/{page} has no block with the title {title}"
    if os.environ.get("UPDATE_PICTURES"):
        path.write_text(text[: found.start(1)] + capture + text[found.end(1) :])
        return True
    return found[1] == capture
