"""Cut a program of a C-like or scripting language into tokens: strings with their value, names, signs. Comments are dropped."""

from __future__ import annotations

import functools
import re
from typing import NamedTuple

from ..values.data_files import read_tables

_MAX_CHARS = 200_000
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "0": "\0", "a": "\a", "b": "\b", "e": "\x1b", "\n": ""}
_ESCAPE = re.compile(r"\\(x[0-9A-Fa-f]{1,2}|u\{[0-9A-Fa-f]+\}|u[0-9A-Fa-f]{4}|[0-7]{3}|.)", re.DOTALL)
_CLOSING = {"(": ")", "[": "]", "{": "}", "<": ">"}
_TABLES = read_tables(__file__)
_HASH = r"#[^\n]*"
_STRING = r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\""
_LISP_STRING = r"\"(?:[^\"\\]|\\.)*\""
_LISP_NAME = r"[A-Za-z_][\w*!?/<>=+.:-]*"


class Token(NamedTuple):
    kind: str
    """`string`, `command` (a string that is run), `name`, `sign`, `end`"""
    text: str
    start: int


@functools.cache
def _scanner(language: str) -> re.Pattern[str]:
    parts = [f"(?P<comment>{_TABLES['comments'].get(language, _HASH)})"]
    if language in _TABLES["quotes"]:
        parts.append(f"(?P<quote>{_TABLES['quotes'][language]})")
    lisp = language == "scheme"  # a quote comes before lists
    parts.append(rf"(?P<string>{_LISP_STRING if lisp else _STRING})")
    parts.append(r"(?P<tick>`(?:[^`\\]|\\.)*`)")
    parts.append(
        rf"(?P<name>{_LISP_NAME})"
        if lisp
        else r"(?P<name>[$@%&]?[A-Za-z_][\w]*(?:(?:\.|::|->|\?\.)[A-Za-z_]\w*)*[!?]?)"
    )
    parts.append(r"(?P<number>\d[\w.]*)")
    parts.append(r"(?P<end>;|\n)")
    parts.append(r"(?P<blank>[ \t\r]+)")
    parts.append(r"(?P<sign>.)")
    return re.compile("|".join(parts), re.DOTALL)


def too_long(text: str) -> bool:
    """Whether `tokens` would not read it to the end."""
    return len(text) > _MAX_CHARS


def tokens(language: str, text: str) -> list[Token]:
    found: list[Token] = []
    scanner, place, text = _scanner(language), 0, text[:_MAX_CHARS]
    while place < len(text):
        match = scanner.match(text, place)
        if match is None:
            break
        kind, start = match.lastgroup or "", place
        place = match.end()
        if kind in ("comment", "blank"):
            continue
        if kind == "open":
            kind = "quote"
        if kind == "quote":
            place, token = _quoted(text, match, start)
            found.append(token)
        elif kind == "string":
            found.append(Token("string", unescape(match.group()[1:-1]), start))
        elif kind == "tick":
            runs = language in ("perl", "ruby", "php", "julia", "other") or text[start - 1 : start] == "$"  # Bun.$`..`
            found.append(Token("command" if runs else "string", unescape(match.group()[1:-1]), start))
        else:
            found.append(Token(kind, match.group(), start))
    return found


def _quoted(text: str, match: re.Match[str], start: int) -> tuple[int, Token]:
    """A string in `qx{..}`, `%x(..)`, `[[..]]`."""
    opening = match["open"]
    closing = "]]" if opening == "[[" else _CLOSING.get(opening, opening)
    depth, place = 1, match.end()
    while place < len(text) and depth:
        if text.startswith(closing, place):
            depth -= 1
        elif opening in _CLOSING and text[place] == opening:
            depth += 1
        place += 1
    body = text[match.end() : place - 1]
    runs = match.group().startswith(("qx", "qqx", "%x"))
    return place + len(closing) - 1, Token("command" if runs else "string", body, start)


def unescape(text: str) -> str:
    if "\\" not in text:
        return text
    return _ESCAPE.sub(_unescaped, text)


def _unescaped(match: re.Match[str]) -> str:
    code = match[1]
    if code[0] == "x" and len(code) > 1:
        return chr(int(code[1:], 16))
    if code[0] == "u" and len(code) > 1:
        return chr(min(int(code[1:].strip("{}"), 16), 0x10FFFF))
    if len(code) == 3 and code.isdigit():
        return chr(int(code, 8) & 0xFF)
    return _ESCAPES.get(code, code)
