"""Why a text of SQL statements is dangerous: each statement counts, comments and strings do not."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..values.data_files import lazy_pattern

_MAX_CHARS = 200_000
_NOISE = lazy_pattern(
    r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|`[^`]*`|\[[^\]\n]*\]|\$(\w*)\$.{0,4000}?\$\1\$|/\*!?\d*|\*/|--[^\n]*|^\s*#[^\n]*",
    re.DOTALL | re.MULTILINE,
)
_COMMENT = lazy_pattern(r"/\*(?!!).*?\*/", re.DOTALL)
_SPLIT = lazy_pattern(r";|\\g\b|\\G\b|\bGO\b(?=\s*(?:\n|$))|\n\s*/\s*\n")
_PREFIX = lazy_pattern(
    r"(?:EXPLAIN(?! ANALY[SZ]E)|BEGIN(?: TRANSACTION| WORK)?|START TRANSACTION|ROLLBACK|SET \w+ ?= "
    r"?\w+|\(|USE \S+|DO)\s+"
)
_HARMLESS_DROP = lazy_pattern(r"DROP (?:PREPARE|TEMPORARY|TEMP)\b")
_DELETE = lazy_pattern(
    r"(?:^|\bAS (?:MATERIALIZED )?\( ?|\) |\bTHEN |\bBEGIN )DELETE (?:LOW_PRIORITY |QUICK |IGNORE "
    r")?(?:[\w.]+ )?(?:FROM\b|TOP\b)(?P<rest>.*)"
)
_BARE_DELETE = lazy_pattern(r"DELETE [\w.]+$")
_UPDATE = lazy_pattern(r"(?:^|\) |\bAS \( ?|\bTHEN )UPDATE\b.*? SET\b(?P<rest>.*)")
_ALTERS = lazy_pattern(
    r"ALTER TABLE\b.*\b(?:DROP|TRUNCATE|DISABLE|RENAME TO|EXCHANGE|DELETE WHERE|UPDATE .* WHERE (?:1|"
    r"TRUE))\b|ALTER (?:USER|ROLE|DATABASE|SYSTEM|LOGIN|SERVER|TABLESPACE|SCHEMA|OWNER|KEYSPACE|"
    r"ACCOUNT|WAREHOUSE)\b"
)
_ADMIN = lazy_pattern(
    r"(?:GRANT ALL|GRANT\b.*\b(?:SUPERUSER|DBA|ADMIN|ALL PRIVILEGES|SYSADMIN|ACCOUNTADMIN)|REVOKE|DENY|"
    r"SHUTDOWN|KILL|RESET (?:MASTER|SLAVE|REPLICA)|PURGE|REASSIGN OWNED|"
    r"CREATE (?:OR REPLACE )?(?:USER|ROLE|LOGIN)|SET (?:GLOBAL )?PASSWORD|FLUSH (?:TABLES WITH|HOSTS|"
    r"USER)|DETACH|STOP (?:SLAVE|REPLICA|GROUP_REPLICATION)|RENAME (?:TABLE|USER)|"
    r"UNDROP|RESTORE DATABASE|VACUUM FULL|OPTIMIZE TABLE .* FINAL|SYSTEM (?:SHUTDOWN|KILL|DROP|STOP)|"
    r"REPLACE TABLE|LOAD (?:DATA )?.*REPLACE|DBCC (?:CHECKDB.*REPAIR|FREE|SHRINK)|"
    r"CREATE EXTENSION .*(?:PLPYTHON|PLPERLU|DBLINK|FILE_FDW)|INSERT OVERWRITE|CREATE OR REPLACE TABLE|"
    r"ALTER INDEX .*(?:UNUSABLE|DISABLE)|EXEC(?:UTE)?(?: MASTER\.\.| SYS\.)? ?SP_(?:CONFIGURE|DROP\w*|"
    r"DETACH_DB|ADDSRVROLEMEMBER))\b"
)
_RUNS = lazy_pattern(
    r"\bCOPY\b.*\b(?:TO|FROM) PROGRAM\b|XP_CMDSHELL|XP_REGWRITE|\bINTO (?:OUTFILE|DUMPFILE)\b|"
    r"\bLOAD_FILE ?\(|\bLO_(?:IMPORT|EXPORT) ?\(|\bPG_READ_FILE ?\(|\bSYS_EXEC ?\(|\bLOAD_EXTENSION "
    r"?\(|"
    r"\bWRITEFILE ?\(|PG_TERMINATE_BACKEND ?\(|PG_CANCEL_BACKEND ?\(.*FROM PG_STAT|\bDBMS_SCHEDULER\b|"
    r"^\\!|^\.SHELL\b|^\.SYSTEM\b|PG_RELOAD_CONF|PG_SWITCH_WAL|PG_DROP_REPLICATION_SLOT"
)
_BLOCK = lazy_pattern(r"(?is)\bDO\s+(?:LANGUAGE\s+\w+\s+)?\$(\w*)\$(.{0,4000}?)\$\1\$")
_EXECUTES = lazy_pattern(r"(?i)\b(?:EXECUTE|EXEC|EXECUTE IMMEDIATE|PREPARE\s+\w+\s+FROM)\s*\(?\s*N?'((?:[^']|'')*)'")
_ALWAYS = lazy_pattern(
    r"\(*(?:TRUE|1|NOT FALSE|NOT 0|(?P<same>[\w.']+) ?(?:=|<=|>=|<=>|IS) ?(?P=same)|1 ?< ?2|2 ?> ?1|0 "
    r"?= ?0|S ?= ?S|NULL IS NULL|1 ?<> ?0|1 ?!= ?0|EXISTS ?\( ?SELECT 1 ?\)|S LIKE S)\)*"
)
_OWN_COMMAND = lazy_pattern(r"(?m)^\s*[\\.][A-Za-z?+]+[^\n;]*$")
_META = lazy_pattern(r"(?m)^\s*(?:\\!|\.shell\b|\.system\b|\.restore\b|\.import\b.*--drop|!\s*\w)")


def problem(text: str) -> str:
    """Why the first dangerous statement is dangerous; empty when none is."""
    text = text[:_MAX_CHARS]
    if _META.search(text):
        return "runs a program or replaces the database"
    if any(map(problem, _executed(text))):
        return "runs a dangerous statement that it holds as a text"
    end = text.rfind("*/") + 2  # after it no comment ends, and looking for that from each start would take long
    clean = _OWN_COMMAND.sub(";", _NOISE.sub(_blank, _COMMENT.sub(" ", text[:end]) + text[end:] if end > 1 else text))
    for statement in _SPLIT.split(clean):
        words = statement.split()
        if words and (why := _statement(" ".join(words).upper())):
            return why
    return ""


def _executed(text: str) -> Iterator[str]:
    """Statements inside a block of code (`DO $$ ... $$`), and those passed to EXECUTE as text."""
    for match in _BLOCK.finditer(text):
        yield from (re.sub(r"(?i)^\s*(?:DECLARE\b.*?\bBEGIN|BEGIN)\b", "", part) for part in match[2].split(";"))
    for match in _EXECUTES.finditer(text):
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
    while match := _PREFIX.match(statement):
        statement = statement[match.end() :]
    if re.match(r"(?:DROP|REMOVE (?:TABLE|DATABASE|NAMESPACE|NS|DB))\b", statement) and not _HARMLESS_DROP.match(
        statement
    ):
        return "drops " + " ".join(statement.split()[1:3]).lower()
    if re.match(r"TRUNCATE\b", statement):
        return "empties a table"
    if (match := _DELETE.search(statement)) and not _chooses(match["rest"]):
        return "deletes every row"
    if _BARE_DELETE.match(statement):
        return "deletes every row"
    if (match := _UPDATE.search(statement)) and not _chooses(match["rest"]):
        return "changes every row"
    if re.search(r"\bEXPLAIN ANALY[SZ]E (?:DELETE|UPDATE|DROP)\b", statement):
        return "runs what it explains"
    if _ALTERS.match(statement):
        return "alters the schema or an account"
    if _ADMIN.match(statement):
        return "administers the server"
    if _RUNS.search(statement):
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
    return not any(_ALWAYS.fullmatch(part.strip()) for part in condition.split(" OR "))
