"""Whether a text of SQL statements is dangerous: each statement counts, comments and strings do not."""

import re
from collections.abc import Iterator

from ..values.data_files import Patterns

_RE = Patterns(__file__)
_MAX_CHARS = 200_000
_BETWEEN = r"^\s*'|'\s*,\s*'|'\s*$"


def is_dangerous(text: str) -> bool:
    """Whether one of the statements destroys or changes whole tables, administers the server, or runs a program."""
    text = folded(text[:_MAX_CHARS])
    if _RE.computes.search(text) and not _is_known(text):
        return True
    if _RE.meta.search(text) or _RE.builds.match(text[:4000]) or any(map(is_dangerous, _executed(text))):
        return True
    end = text.rfind("*/") + 2  # after it no comment ends, and looking for that from each start would take long
    text = _RE.comment.sub(" ", text[:end]) + text[end:] if end > 1 else text
    clean = _RE.own_command.sub(";", _RE.noise.sub(_blank, text))
    return any(map(_is_dangerous_statement, _RE.split.split(clean)))


def folded(text: str) -> str:
    """The text with strings that are put together as one: `'DR' || 'OP'`, `concat('DR', 'OP')`, Lua's `'DR' .. 'OP'`."""
    text = _RE.concat.sub(lambda match: f"'{re.sub(_BETWEEN, '', match[1])}'", text)
    return _RE.added.sub("", text)


def _is_known(text: str) -> bool:
    """Whether a statement that is run as a text is there as one, and harmless."""
    statements = [match[1] for match in _RE.literal.finditer(text) if _RE.statement.match(match[1])]
    return bool(statements) and not any(map(is_dangerous, statements))


def _executed(text: str) -> Iterator[str]:
    """Statements inside a block of code (`DO $$ ... $$`), and those passed to EXECUTE as text."""
    for match in _RE.block.finditer(text):
        yield from (re.sub(r"(?i)^\s*(?:DECLARE\b.*?\bBEGIN|BEGIN)\b", "", part) for part in match[2].split(";"))
    for match in _RE.executes.finditer(text):
        yield match[1].replace("''", "'")


def _blank(match: re.Match[str]) -> str:
    found = match.group()
    if found[0] in "/-#*" or found.isspace() or found.lstrip()[:1] == "#":
        return " "
    return " s " if found[0] in "'$" else " ident "


def _is_dangerous_statement(text: str) -> bool:
    statement = " ".join(text.split()).upper()
    while match := _RE.prefix.match(statement):
        statement = statement[match.end() :]
    if _RE.only_explains.match(statement):
        return False
    if _RE.starts_dangerous.match(statement) or _RE.holds_dangerous.search(statement):
        return True
    changes = (_RE.delete.search(statement), _RE.update.search(statement))
    return any(match is not None and not _chooses(match["rest"]) for match in changes)


def _chooses(rest: str) -> bool:
    """Whether a WHERE really selects, so that not every row is affected."""
    match = re.search(r"\bWHERE\b(.*)", rest)
    if match is None:
        return bool(re.search(r"\bLIMIT \d+|\bIN PARTITION\b", rest))
    condition = re.sub(r"\b(?:RETURNING|LIMIT|ORDER BY)\b.*", "", match[1]).strip(" ()")
    if not condition:
        return False
    return not any(_RE.always.fullmatch(part.strip()) for part in condition.split(" OR "))
