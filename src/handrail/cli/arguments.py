"""Read the arguments of a call from the command line, or from stdin."""

from __future__ import annotations

import json
import re
import select
import sys
from pathlib import Path
from typing import Any

from ..errors import InvalidArguments
from .output import say

_ITEM = re.compile(r"(?P<key>[^\s=:@]+)(?P<sign>:?=)(?P<value>.*)", re.DOTALL)
_PATIENCE_SECONDS = 2.0


def read_arguments(items: list[str]) -> Any:
    """`key=value`, `key:=json`, `key=@file` and `key:=@file` as a dict; `-`, or nothing but a pipe, as the text of stdin.

    Values stay text where they are text: the runtime fits them to the tool's schema. Raises InvalidArguments.
    """
    if items == ["-"] or (not items and not sys.stdin.isatty()):
        return _from_stdin()
    arguments: dict[str, Any] = {}
    for item in items:
        key, value = _read_item(item)
        if key in arguments:
            raise InvalidArguments(f"{key} is given twice; for a list write {key}:='[1, 2]'")
        arguments[key] = value
    return arguments


def _read_item(item: str) -> tuple[str, Any]:
    match = _ITEM.fullmatch(item)
    if match is None:
        raise InvalidArguments(f"{item!r} is not an argument; write key=value, key:=json or key=@file")
    key, sign, value = match["key"], match["sign"], match["value"]
    if value.startswith("@"):
        value = _text_of(key, value[1:])
    if sign == "=":
        return key, value
    try:
        return key, json.loads(value)
    except ValueError as error:
        raise InvalidArguments(
            f"{key}:= needs JSON, and this is not: {error}; for plain text write {key}=..."
        ) from None


def _text_of(key: str, name: str) -> str:
    try:
        return Path(name).expanduser().read_text("utf-8")
    except OSError as error:
        raise InvalidArguments(f"{key}: cannot read {name}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise InvalidArguments(f"{key}: {name} is not UTF-8 text") from None


def _from_stdin() -> str:
    """The text as it is: the runtime parses and repairs what a model would send, and says what is wrong with it."""
    if not _something_to_read():
        say("reading the arguments as a JSON object from stdin; give key=value, or </dev/null for none")
    try:
        return sys.stdin.read().strip() or "{}"
    except UnicodeDecodeError:
        raise InvalidArguments("stdin is not UTF-8 text") from None


def _something_to_read() -> bool:
    try:
        return bool(select.select([sys.stdin], [], [], _PATIENCE_SECONDS)[0])
    except (OSError, ValueError):  # not a stream of the operating system
        return True
