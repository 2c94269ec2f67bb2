"""Why a text of SQL statements is dangerous: each statement counts, comments and strings do not."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..values.data_files import Patterns

_RE = Patterns(__file__)
_MAX_CHARS = 200_000


def problem(text: str) -> str:
    """Why the first dangerous statement is dangerous; empty when none is."""
    text = text[:_MAX_CHARS]
    if _RE.meta.search(text):
        return "runs a program or replaces the database"
    if any(map(problem, _executed(text))):
        return "runs a dangerous statement that it holds as a text"
    end = text.rfind("*/") + 2  # after it no comment ends, and looking for that from each start would take long
    clean = _RE.own_command.sub(
        ";", _RE.noise.sub(_blank, _RE.comment.sub(" ", text[:end]) + text[end:] if end > 1 else text)
    )
    for statement in _RE.split.split(clean):
        words = statement.split()
        if words and (why := _statement(" ".join(words).upper())):
            return why
    return ""


def _executed(text: str) -> Iterator[str]:
    """Statements inside a block of code (`DO $$ ... $$`), and those passed to EXECUTE as text."""
    for match in _RE.block.finditer(text):
        yield from (re.sub(r"(?i)^\s*(?:DECLARE\b.*?\bBEGIN|BEGIN)\b", "", part) for part in match[2].split(";"))
    for match in _RE.executes.finditer(text):
        yield match[1].replace("''", "'")


def _blank(match: re.Match[str]) -> str:
    found = match.group()
    return (
        " "
        if found[0] in "/-#*" or found.isspace() or found.lstrip()[:1] == "#"
        else " s "
        if found[0] in "'$"
        else " ident "
    )


def _statement(statement: str) -> str:
    while match := _RE.prefix.match(statement):
        statement = statement[match.end() :]
    if re.match(r"(?:DROP|REMOVE (?:TABLE|DATABASE|NAMESPACE|NS|DB))\b", statement) and not _RE.harmless_drop.match(
        statement
    ):
        return "drops " + " ".join(statement.split()[1:3]).lower()
    if re.match(r"TRUNCATE\b", statement):
        return "empties a table"
    if (match := _RE.delete.search(statement)) and not _chooses(match["rest"]):
        return "deletes every row"
    if _RE.bare_delete.match(statement):
        return "deletes every row"
    if (match := _RE.update.search(statement)) and not _chooses(match["rest"]):
        return "changes every row"
    if re.search(r"\bEXPLAIN ANALY[SZ]E (?:DELETE|UPDATE|DROP)\b", statement):
        return "runs what it explains"
    if _RE.alters.match(statement):
        return "alters the schema or an account"
    if _RE.admin.match(statement):
        return "administers the server"
    if _RE.runs.search(statement):
        return "runs a program, ends sessions or touches the server's files"
    if re.search(r"\b(?:EXECUTE|EXEC|DO)\b.*\bS\b", statement) and re.search(r"\bIMMEDIATE\b", statement):
        return "runs a statement that is built at run time"
    return _merge(statement)


def _merge(statement: str) -> str:
    if re.match(r"MERGE\b", statement) and re.search(
        r"\bWHEN (?:NOT )?MATCHED(?: BY SOURCE)? THEN DELETE\b", statement
    ):
        return "deletes rows that another table does not have"
    return ""


def _chooses(rest: str) -> bool:
    """Whether a WHERE really selects, so that not every row is affected."""
    match = re.search(r"\bWHERE\b(.*)", rest)
    if match is None:
        return bool(re.search(r"\bLIMIT \d+|\bIN PARTITION\b", rest))
    condition = re.sub(r"\b(?:RETURNING|LIMIT|ORDER BY)\b.*", "", match[1]).strip(" ()")
    if not condition:
        return False
    return not any(_RE.always.fullmatch(part.strip()) for part in condition.split(" OR "))
