"""Find the command lines among the strings of a program, in whatever language, when something in it can run them."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence

from ..values.data_files import Patterns, Words
from .host import Host
from .tokens import Token, tokens

_WORDS = Words(__file__)
_RE = Patterns(__file__)
_NEAR = 8
_MAX_TOKENS = 4_000
_MAX_NAMES = 64


def judge(host: Host, text: str) -> None:
    """Show to the rules what could be run and has not been shown yet."""
    found = tokens(host.language, text)
    for match in itertools.islice(_RE.tree.finditer(text), _MAX_NAMES):
        _paths(found, match.start(), host.delete_tree)
    for match in itertools.islice(_RE.writes.finditer(text), _MAX_NAMES):
        _paths(found, match.start(), host.write)
    if host.language in ("other", "haskell"):
        for match in itertools.islice(_RE.escaped.finditer(text), _MAX_NAMES):
            host.shell(match[1])
    if not _RE.runs.search(text):
        return
    if len(found) > _MAX_TOKENS:
        host.find("limit.exceeded")
    shown = set(host.shown)
    for words in _series(found):
        if not shown.intersection(words) and host.is_program(words[0]):
            host.run(*words)
    reverses = _RE.reverses.search(text) is not None
    for string in _strings(found):
        for line in (string, string[::-1]) if reverses else (string,):
            if line not in shown and " " in line.strip() and host.is_program(line.split(None, 1)[0]):
                host.shell(line)


def _paths(found: Sequence[Token], start: int, show: Callable[[str], None]) -> None:
    """The strings around a name that look like paths: `RemoveAll("/x")`, `new File("/x").deleteDir()`."""
    after = next((place for place, token in enumerate(found) if token.start >= start), len(found))
    for token in found[max(0, after - _NEAR // 2) : after + _NEAR]:
        if token.kind == "string" and token.text[:1] in ("/", "~", "."):
            show(token.text)


def _strings(found: Sequence[Token]) -> Iterator[str]:
    for place, token in enumerate(found[:_MAX_TOKENS]):
        before = [earlier.text for earlier in found[max(0, place - 2) : place] if earlier.text not in ("(", "[")]
        if token.kind == "string" and not (before and before[-1] in _WORDS.prints):
            yield token.text.strip()


def _series(found: Sequence[Token]) -> Iterator[list[str]]:
    """Strings that follow one another with nothing but commas and brackets between: an argument list."""
    series: list[str] = []
    gap = 0
    for token in found[:_MAX_TOKENS]:
        if token.kind == "string":
            series.append(token.text)
            gap = 0
        elif token.kind == "end" or (gap := gap + 1) > _NEAR:
            if len(series) > 1:
                yield series
            series, gap = [], 0
    if len(series) > 1:
        yield series
