"""The commands that a user allows or denies in config.yaml: `git push origin`, `docker compose *`, `tool:mcp__mail__*`.

An entry is the first words of a command line, which may contain `*` and `?`; a command with more words matches too.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from typing import NamedTuple

_TOOL = "tool:"
# Shells and their like run anything: allowing them by name allows everything.
_RUN_ANYTHING = frozenset(
    "sh bash zsh dash ksh fish ash busybox env xargs eval exec sudo doas su ssh python python3 perl ruby node php nohup "
    "timeout time nice parallel find watch setsid".split()
)


class Entry(NamedTuple):
    text: str
    words: tuple[str, ...] = ()
    tool: str = ""

    def matches(self, argv: Sequence[str]) -> bool:
        if not self.words or len(argv) < len(self.words):
            return False
        name = argv[0].rpartition("/")[2] if "/" not in self.words[0] else argv[0]
        return all(fnmatchcase(word, pattern) for word, pattern in zip((name, *argv[1:]), self.words, strict=False))

    def matches_tool(self, name: str) -> bool:
        return bool(self.tool) and fnmatchcase(name, self.tool)


def deny_entries(texts: Iterable[str]) -> tuple[Entry, ...]:
    """Raises ValueError."""
    return tuple(map(_entry, texts))


def allow_entries(texts: Iterable[str]) -> tuple[Entry, ...]:
    """Raises ValueError, also for an entry that would allow everything."""
    entries = tuple(map(_entry, texts))
    for entry in entries:
        first = (entry.tool or entry.words[0]).strip("*?")
        if not first:
            raise ValueError(f"{entry.text!r} would allow everything; name a program")
        if len(entry.words) == 1 and first.rpartition("/")[2] in _RUN_ANYTHING:
            raise ValueError(f"{entry.text!r} would allow everything that {first} can run; add the words that follow")
    return entries


def _entry(text: str) -> Entry:
    if text.startswith(_TOOL):
        return Entry(text, tool=text.removeprefix(_TOOL).strip())
    try:
        words = tuple(shlex.split(text))
    except ValueError as error:
        raise ValueError(f"{text!r} cannot be read as words: {error}") from None
    if not words:
        raise ValueError("an entry is empty; name a program")
    return Entry(text, words)
