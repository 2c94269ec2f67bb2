"""The text of a command as a shell gets it."""

from __future__ import annotations

import shlex
from collections.abc import Mapping

from .clean_env import check_variables
from .errors import CommandRefused

_MAX_COMMAND_BYTES = 32 << 20


def encoded(text: str) -> bytes:
    if "\0" in text:
        raise CommandRefused(
            "the command contains a NUL character, which no shell accepts; write it as $'\\\\0' in printf"
        )
    try:
        encoded = text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError as error:
        place = f"U+{ord(text[error.start]):04X} at position {error.start}"
        raise CommandRefused(f"the command contains {place}, which is not a character; leave it out") from None
    if len(encoded) > _MAX_COMMAND_BYTES:
        raise CommandRefused(
            f"the command has {len(encoded):,} bytes; write the data to a file, and name that in the command"
        )
    return encoded


def with_variables(text: bytes, env: Mapping[str, str] | None) -> bytes:
    """The command with its own variables, which are gone when it has ended."""
    if not env:
        return text
    check_variables(env)
    words = " ".join(f"{name}={shlex.quote(value)}" for name, value in env.items())
    command = shlex.quote(text.decode("utf-8", "surrogateescape"))
    return f"{words} command eval {command}".encode("utf-8", "surrogateescape")
