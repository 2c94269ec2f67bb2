"""Conditions on what database clients do."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..grammar.sql import is_dangerous
from ..values.data_files import Patterns, read_tables
from ..values.word_values import UNKNOWN, Arg, Taint
from .command import Command

_RE = Patterns(__file__)
_CLIENTS = read_tables(__file__)["clients"]
"""Options whose value is SQL; after a `;` those whose value is a file of SQL. `*` when operands are SQL too."""
_POSTED = ("curl", "http")
SQL_CLIENTS = (*_CLIENTS, *_POSTED)


def sql(command: Command, _: str) -> bool:
    """A statement that destroys or changes whole tables, in an option, an operand, a file or what is piped in."""
    return any(is_dangerous(statements) for statements in _sql_texts(command))


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
    if _RE.redis.search(whole) or (command.stdin is not None and _RE.redis.search(command.stdin.text)):
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
    return any(_RE.mongo.search(text) for text in texts)


def mass_delete(command: Command, _: str) -> bool:
    """Code that is given as text deletes every row, table or key through a library."""
    texts = [arg for arg in command.args if "." in arg or ":" in arg]
    if command.stdin is not None:
        texts.append(Arg(command.stdin.text[:20_000]))
    return any(_RE.mass_delete.search(text) for text in texts)
