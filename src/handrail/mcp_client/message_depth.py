"""Cut off what is nested too deeply in a message for its parser, so that the rest can be read."""

from __future__ import annotations

import re

# A parser accepts about twice as many levels; a tool with a schema half as deep is not offered.
_MAX_DEPTH = 96
_TOKENS = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|[\[\]{}]', re.DOTALL)


def without_depths(message: bytes) -> bytes | None:
    """The JSON text with `null` in place of everything below a certain depth; None if nothing is that deep."""
    kept: list[bytes] = []
    depth = begin = 0
    for token in _TOKENS.finditer(message):
        sign = token[0]
        if sign in (b"{", b"["):
            depth += 1
            if depth == _MAX_DEPTH + 1:
                kept += [message[begin : token.start()], b"null"]
        elif sign in (b"}", b"]"):
            if depth == _MAX_DEPTH + 1:
                begin = token.end()
            depth -= 1
    return b"".join([*kept, message[begin:]]) if kept and depth <= _MAX_DEPTH else None
