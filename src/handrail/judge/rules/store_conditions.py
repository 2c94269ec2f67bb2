"""Conditions on what database clients do."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from ..grammar.sql import problem
from ..values.data_files import lazy_pattern, read_tables
from ..values.word_values import UNKNOWN, Arg, Taint
from .command import Command

_MASS_DELETE = lazy_pattern(
    r"\.objects\b[^;]*\.delete\(|\b(?:delete_all|destroy_all|drop_all|dropDatabase|drop_database|drop_collection|drop_table|"
    r"flushall|flushdb|flushAll|flushDb|dropAllTables|dropAllSchemas|delete_collection|delete_index)\s*[!(]?|"
    r"\.query\([^;]*\)\.delete\(|::(?:truncate|query\(\)->delete)\b|->(?:delete|truncate|forceDelete)\(\)|"
    r"\.(?:deleteMany|remove|destroy)\(\s*(?:\{\s*(?:(?:where|truncate)\s*:\s*(?:\{\s*\}|true)\s*,?\s*)*\})?\s*\)(?=.*(?:prisma|mongoose|sequelize|db\.|[Mm]odel))|"
    r"\.sync\(\s*\{\s*force\s*:\s*true"
)
_CLIENTS = read_tables(__file__)["clients"]
"""Options whose value is SQL; after a `;` those whose value is a file of SQL. `*` when operands are SQL too."""
_POSTED = ("curl", "http")
SQL_CLIENTS = (*_CLIENTS, *_POSTED)
_REDIS = lazy_pattern(
    r"(?i)(?:^|[\s;'\"(])(flushall|flushdb|swapdb|shutdown|debug\s+(?:segfault|sleep|reload)|"
    r"script\s+flush|function\s+flush|config\s+(?:set|rewrite|resetstat)|cluster\s+(?:reset|forget|"
    r"failover|flushslots|delslots)|"
    r"failover|replicaof|slaveof|acl\s+(?:deluser|setuser|load)|client\s+kill|module\s+(?:load|unload)|"
    r"reset|migrate|restore|bgrewriteaof)(?=$|[\s'\",);])"
)
_MONGO = lazy_pattern(
    r"(?i)dropDatabase|dropCollection|\.drop\(|deleteMany\(\s*(?:\{\s*\})?\s*[,)]|"
    r"\.remove\(\s*(?:\{\s*\})?\s*[,)]|shutdownServer|dropUser|dropAllUsers|dropRole|dropIndex|"
    r"updateMany\(\s*\{\s*\}|fsyncLock|replSetReconfig|rs\.(?:stepDown|remove|reconfig)|"
    r"sh\.removeShard|killOp|createUser|grantRolesToUser|renameCollection|\bdrop\b.*:\s*['\"]|"
    r"adminCommand\(\s*\{\s*['\"]?(?:shutdown|fsync|replSet\w+|dropAllUsers\w*)|findAndModify.*remove|\.deleteMany\(|bulkWrite.*deleteMany"
)


def sql(command: Command, _: str) -> bool:
    """A statement that destroys or changes whole tables, in an option, an operand, a file or what is piped in."""
    return any(problem(statements) for statements in _sql_texts(command))


def _sql_texts(command: Command) -> Iterator[str]:
    if command.name in _POSTED:
        yield from (
            value
            for option, value in command.values
            if option.startswith(("-d", "--data")) and re.match(r"(?i)\s*(?:drop|truncate|delete|alter)\b", value)
        )
        return
    options, files = (part.split() for part in _CLIENTS[command.name].partition(";")[::2])
    args = command.args
    for place, arg in enumerate(args):
        name, equals, value = arg.partition("=")
        following = args[place + 1] if place + 1 < len(args) else None
        if arg in options and following is not None:
            yield following
        elif equals and name in options:
            yield value
        elif (attached := _attached(arg, options)) is not None:
            yield attached if attached else following or ""
        elif (arg in files or name in files) and (content := command.file(value or following or "")) is not None:
            yield content.text
        elif "*" in options and re.search(r"\s|/\*|;", arg):
            yield arg
    if command.stdin is not None:
        yield command.stdin.text


def _attached(arg: str, options: list[str]) -> str | None:
    """SQL in or after a cluster of letters: `-cDROP..`, `-tAc 'DROP ..'`."""
    if arg[:1] != "-" or arg[:2] == "--" or len(arg) < 3:
        return None
    if arg[:2] in options:
        return arg[2:]
    cluster = re.match(r"-[A-Za-z]{2,6}$", arg)
    return "" if cluster and f"-{arg[-1]}" in options else None


def redis(command: Command, _: str) -> bool:
    """Empties the store, stops or reconfigures the server, or deletes keys that the command does not name."""
    operands = command.operands
    whole = " ".join(operands)
    if _REDIS.search(whole) or (command.stdin is not None and _REDIS.search(command.stdin.text)):
        return not (
            operands
            and operands[0].lower()
            in ("get", "set", "help", "hget", "keys", "echo", "exists", "ttl", "type", "command")
        )
    if operands and operands[0].lower() in ("del", "unlink", "hdel", "expire"):
        return (
            any(UNKNOWN in key or Taint.WIDE in key.taints or key.glob or "*" in key for key in operands[1:])
            or len(operands) == 1
        )
    return False


def mongo(command: Command, _: str) -> bool:
    texts = [*command.args, *([command.stdin.text] if command.stdin is not None else [])]
    return any(_MONGO.search(text) for text in texts)


def memcached(command: Command, _: str) -> bool:
    return command.name in ("memcflush", "memrm", "memcrm") or any(
        arg in ("flush_all", "flush", "shutdown") for arg in command.args
    )


def mass_delete(command: Command, _: str) -> bool:
    """Code that is given as text deletes every row, table or key through a library."""
    texts = [arg for arg in command.args if "." in arg or ":" in arg]
    if command.stdin is not None:
        texts.append(Arg(command.stdin.text[:20_000]))
    return any(_MASS_DELETE.search(text) for text in texts)


CONDITIONS: dict[str, Callable[[Command, str], bool]] = {
    "sql": sql,
    "redis": redis,
    "mongo": mongo,
    "memcached": memcached,
    "mass-delete": mass_delete,
}
