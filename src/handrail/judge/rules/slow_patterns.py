"""Regular expressions that users write: none of them may take long, whatever the text."""

from __future__ import annotations

import functools
import re
from typing import TYPE_CHECKING

from ...errors import RuleError

if TYPE_CHECKING:
    import regex

_SECONDS = 0.05
_MAX_CHARS = 10_000
_MAX_PATTERN = 1000
_PROBE_CHARS = 400


@functools.lru_cache(512)
def compiled(rule_id: str, pattern: str) -> regex.Pattern[str]:
    """The pattern, if it is sound and quick; else RuleError says what is wrong with it."""
    import regex

    if len(pattern) > _MAX_PATTERN:
        raise RuleError(f"rule {rule_id!r}: the pattern is longer than {_MAX_PATTERN} characters")
    try:
        made = regex.compile(pattern)
    except regex.error as error:
        raise RuleError(f"rule {rule_id!r}: the pattern cannot be read: {error}") from None
    if made.search("") is not None:
        raise RuleError(f"rule {rule_id!r}: the pattern matches an empty text, so it would match everything")
    for probe in _probes(pattern):
        if _search(made, probe) is None:
            raise RuleError(
                f"rule {rule_id!r}: the pattern takes too long on a text that repeats itself, such as {probe[:12]!r}...; "
                "repeat no group that has a repetition inside"
            )
    return made


def says(rule_id: str, pattern: str, text: str) -> bool:
    """Whether the pattern is found in the text. One that takes too long after all counts as found."""
    return _search(compiled(rule_id, pattern), text[:_MAX_CHARS]) is not False


def _search(made: regex.Pattern[str], text: str) -> bool | None:
    try:
        return made.search(text, timeout=_SECONDS) is not None
    except TimeoutError:
        return None


def _probes(pattern: str) -> list[str]:
    """Texts on which patterns that backtrack without end do so: what the pattern repeats, and then something else."""
    literals = dict.fromkeys(re.findall(r"[A-Za-z0-9_/.-]+", pattern))
    units = [
        *literals,
        *dict.fromkeys(re.sub(r"[^A-Za-z0-9 ]", "", pattern)),
        "a",
        "0",
        " ",
        "a ",
        "ab",
        "-",
        "/",
        "x=1 ",
    ]
    return [(unit * _PROBE_CHARS)[:_PROBE_CHARS] + "\n!" for unit in units[:60]]
