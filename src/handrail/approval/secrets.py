"""Where a command contains a secret, so that it can be shown and stored without it.

What could be more than a value (`--token $(rm -rf x)`) is never hidden: the user must see what runs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from ..base.safe_text import secret_places, secret_values

Span = tuple[int, int]

HIDDEN = "[secret]"
_NAME = r"[\w-]*(?:api[_-]?key|access[_-]?key|private[_-]?key|token|secret|passw(?:or)?d|passphrase|credential)s?"
# NAME=value, --name=value, --name value, "name": "value"; -u user:password; and mysql's -ppassword.
_NAMED = (
    rf"(?i)(?:\b{_NAME}=|--{_NAME}[= ]|[\"']{_NAME}[\"']\s*:\s*)[\"']?([^\s\"']+)"
    r"|(?: -u|--user)[= ]?[\"']?[^\s:\"'/]+:([^\s\"'@]+)"
    r"|\b(?:mysql\w*|mariadb\w*)\b[^|;&\n]*? -p([^\s\"']+)"
)
# Every text in which a pattern, here or in `safe_text`, can match contains one of these.
_HINT = re.compile(
    "key|token|secret|passw|passphrase|credential|bearer|basic|://| -u| -p|--user|[spr]k-|gh[pousr]_|github_pat_|glpat-|xox|hf_"
    "|akia|aiza|eyj|-----begin"
)
_RUNS = re.compile(r"[$`;|&<>(){}\\]")


def secret_spans(text: str, values: tuple[str, ...] | None = None) -> list[Span]:
    """The secrets in a text, in order, none inside another. `values`: of this process, where they are known already."""
    values = secret_values() if values is None else values
    if not _HINT.search(text.lower()) and not any(value in text for value in values):
        return []  # most commands have nothing like a secret and must not wait for the patterns
    found: list[Span] = []
    for start, end in sorted({*_named(text), *secret_places(text, values)}):
        if _RUNS.search(text, start, end) or end <= start:
            continue
        if found and start < found[-1][1]:
            found[-1] = (found[-1][0], max(end, found[-1][1]))
        else:
            found.append((start, end))
    return found


def without_secrets(
    text: str, spans: Iterable[Span] = (), *, values: tuple[str, ...] | None = None
) -> tuple[str, list[Span]]:
    """The text with its secrets replaced, and the places in it that `spans` have become."""
    secrets = secret_spans(text, values)
    if not secrets:
        return text, list(spans)
    parts, position = [], 0
    for start, end in secrets:
        parts += [text[position:start], HIDDEN]
        position = end
    moved = [(_moved(start, secrets), _moved(end, secrets, end=True)) for start, end in spans]
    return "".join([*parts, text[position:]]), moved


def _moved(place: int, secrets: list[Span], *, end: bool = False) -> int:
    shift = 0
    for start, stop in secrets:
        if place >= stop:
            shift += len(HIDDEN) - (stop - start)
        elif place > start:  # inside a hidden part: all of that is marked
            return start + shift + (len(HIDDEN) if end else 0)
    return place + shift


def _named(text: str) -> Iterator[Span]:
    for match in re.finditer(_NAMED, text):
        yield match.span(match.lastindex or 0)
