"""Cut a program of a C-like or scripting language into tokens: strings with their value, names, signs. Comments are dropped."""

import base64
import binascii
import functools
import itertools
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ..values.data_files import Patterns, Words, read_tables
from ..values.word_values import UNKNOWN

_WORDS = Words(__file__)
_RE = Patterns(__file__)
_MAX_CHARS = 200_000
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "0": "\0", "a": "\a", "b": "\b", "e": "\x1b", "\n": ""}
_CLOSING = {"(": ")", "[": "]", "{": "}", "<": ">", "«": "»"}
_TABLES = read_tables(__file__)
_HASH = r"#[^\n]*"
_STRING = r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\""
_LISP_STRING = r"\"(?:[^\"\\]|\\.)*\""
_LISP_NAME = r"[A-Za-z_][\w*!?/<>=+.:-]*"
_IN_TEXT = re.compile(rf"[$#]\{{\s*(?:{_RE.home.pattern})\s*\}}|\$ENV\{{['\"]?HOME['\"]?\}}(?=[^\n;,)]*['\"])")
_MAX_TOKENS = 300


class Token(NamedTuple):
    kind: str
    """`string`, `command` (a string that is run), `name`, `sign`, `end`"""
    text: str
    start: int
    quote: str = "'"
    """Of a string: `'` if it is taken as it is written, `"` if names in it stand for their values."""


class Given(str):
    """What a function was given of which it is not known what it returns."""


_END = Token("end", "", 0)
_CALLED = "\0called"
"""Stands for the result of a function among the pieces of an argument."""


@functools.cache
def _scanner(language: str) -> re.Pattern[str]:
    parts = [f"(?P<comment>{_TABLES['comments'].get(language, _HASH)})"]
    if language in _TABLES["quotes"]:
        parts.append(f"(?P<quote>{_TABLES['quotes'][language]})")
    lisp = language == "scheme"  # a quote comes before lists
    parts.append(rf"(?P<string>{_LISP_STRING if lisp else _STRING})")
    parts.append(r"(?P<tick>`(?:[^`\\]|\\.)*`)")
    sigils = "[$&]?" if language == "php" else "[$@%&]?"  # `@` there keeps a call quiet
    name = _LISP_NAME if lisp else rf"{sigils}[A-Za-z_][\w]*(?:(?:\.|::|->|\?\.)[A-Za-z_]\w*)*[!?]?"
    parts += [rf"(?P<name>{name})", r"(?P<number>\d[\w.]*)", r"(?P<end>;|\n)", r"(?P<blank>[ \t\r]+)", r"(?P<sign>.)"]
    return re.compile("|".join(parts), re.DOTALL)


def too_long(text: str) -> bool:
    """Whether `tokens` would not read it to the end."""
    return len(text) > _MAX_CHARS


def tokens(language: str, text: str) -> list[Token]:
    found: list[Token] = []
    text = text.replace(".(", "(") if language == "julia" else text  # for each item
    scanner, place, text = _scanner(language), 0, text[:_MAX_CHARS]
    while place < len(text):
        match = scanner.match(text, place)
        if match is None:
            break
        kind, start = match.lastgroup or "", place
        place = match.end()
        if kind in ("comment", "blank"):
            continue
        if kind == "sign" and match.group() == "/" and language in _WORDS.has_patterns and _starts_operand(found):
            place = match.end() if (end := _RE.pattern.match(text, start)) is None else end.end()
            found.append(Token("number" if end else "sign", text[start:place], start))
            continue
        if kind == "open":
            kind = "quote"
        if kind == "quote":
            place, token = _quoted(text, match, start)
            found.append(token)
        elif kind == "string":
            quote = '"' if match.group()[0] == '"' and language in _WORDS.fills_strings else "'"
            found.append(Token("string", unescape(match.group()[1:-1]), start, quote))
        elif kind == "tick":
            runs = language in ("perl", "ruby", "php", "julia", "other") or text[start - 1 : start] == "$"  # Bun.$`..`
            found.append(Token("command" if runs else "string", unescape(match.group()[1:-1]), start, '"'))
        else:
            found.append(Token(kind, match.group(), start))
    return found


def _starts_operand(found: Sequence[Token]) -> bool:
    """Whether a value comes next, so that a slash begins a pattern."""
    last = found[-1] if found else None
    return last is None or last.kind == "end" or (last.kind == "sign" and last.text not in ")]}")


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
    quote = '"' if runs or match.group().startswith(("qq", "%Q", "%(", "%{", "%[")) else "'"
    return place + len(closing) - 1, Token("command" if runs else "string", body, start, quote)


def unescape(text: str) -> str:
    return _RE.escape.sub(_unescaped, text) if "\\" in text else text


def _unescaped(match: re.Match[str]) -> str:
    code = match[1]
    if code[0] == "x" and len(code) > 1:
        return chr(int(code[1:], 16))
    if code[0] == "u" and len(code) > 1:
        return chr(min(int(code[1:].strip("{}"), 16), 0x10FFFF))
    if len(code) == 3 and code.isdigit():
        return chr(int(code, 8) & 0xFF)
    return _ESCAPES.get(code, code)


def with_homes(text: str) -> str:
    """The same program with `~` for what stands for the home directory, and lists of words as lists of strings."""
    if _RE.mentions.search(text):
        text = _RE.picked.sub(lambda match: f"{match['name'] or match['go'] or 'HOME'}='~'", text)
        text = _RE.template.sub(r"'\1'", _RE.home.sub("'~'", _IN_TEXT.sub("~", text)))
    return _RE.lists_added.sub(",", _RE.words.sub(_listed, text))


def _listed(match: re.Match[str]) -> str:
    """`%w[a b]` and `qw(a b)` as a list of strings."""
    return "[" + ",".join(f"'{word}'" for word in match[1].split()) + "]"


def arguments(
    language: str, tokens: Sequence[Token], place: int, *, objects: bool = False
) -> tuple[list[str | None] | None, bool]:
    """The arguments after a function's name, None when it is not a call; and whether they are in parentheses.

    `objects`: what is in objects (`{args: [..]}`) counts too.
    """
    if place >= len(tokens):
        return None, False
    block = None
    if language == "perl" and tokens[place].text == "{":  # system {"program"} "name", "argument"
        end = next((at for at in range(place, len(tokens)) if tokens[at].text == "}"), len(tokens) - 1)
        block, place = tokens[place + 1 : end], min(end + 1, len(tokens) - 1)
    first = tokens[place]
    parenthesised = first.kind == "sign" and first.text == "("
    bare = language in _WORDS.without_parentheses and (
        first.kind in ("string", "name", "number", "command") or first.text in ("[", "<")
    )
    if not parenthesised and not bare:
        return None, False
    start = place + parenthesised
    found = _arguments(language, _inside(tokens, start, parenthesised=parenthesised, keep=objects))
    if block is not None:
        found[:1] = [_folded([token.text if token.kind == "string" else None for token in block])]
    return found, parenthesised


def _arguments(language: str, inside: Iterator[tuple[Token, str, int]]) -> list[str | None]:
    found: list[str | None] = []
    pieces: list[str | None] = []
    called, computes = "", False
    for count, (token, after, depth) in enumerate(inside):
        if count >= _MAX_TOKENS:
            return [None]
        if token.text == "," and token.kind == "sign":
            if not depth or called not in _WORDS.makes_one:
                found.append(_folded(pieces, computes=computes))
                pieces, computes = [], False
        elif token.kind == "number" and pieces and pieces[-1] in (None, _CALLED):  # an index
            continue
        elif token.kind in ("string", "number") or (token.kind == "command" and language == "julia"):
            pieces.append(token.text)
        elif token.kind == "name" and after in ("(", ""):
            owner, _, called = token.text.rpartition(".")
            if called in _WORDS.changes_text:
                pieces = [None]
            elif called not in _WORDS.puts_together:
                pieces.append(_CALLED)
                computes |= called not in _WORDS.keeps_text or (owner[:1].islower() and owner not in _WORDS.modules)
        elif token.kind in ("name", "command") and after != ":":
            pieces.append("~" if token.text in _WORDS.home_names else None)
    return [*found, _folded(pieces, computes=computes)] if pieces else found


def _inside(
    tokens: Sequence[Token], place: int, *, parenthesised: bool, keep: bool
) -> Iterator[tuple[Token, str, int]]:
    """The tokens of one argument list, each with the sign that comes after it and with how many calls it is inside of.

    Brackets of lists do not count, objects (`{..}`) only if they are kept. A string that comes after counts as no sign.
    """
    depth = objects = 0
    for token, after in itertools.pairwise([*tokens[place : place + _MAX_TOKENS + 100], _END]):
        if token.kind == "sign" and token.text in "([{":
            depth += token.text != "["
            objects += token.text == "{"
        elif token.kind == "sign" and token.text in ")]}":
            if token.text != "]" and depth == 0:
                return
            depth -= token.text != "]"
            objects -= token.text == "}"
        elif token.text == ";" or (token.kind == "end" and depth == 0 and not parenthesised):
            return
        elif keep or not objects:
            yield token, "" if after.kind == "string" else after.text, depth


def series(found: Sequence[Token], near: int) -> Iterator[list[str]]:
    """Strings that follow one another with little but commas and brackets between (`near` tokens): argument lists."""
    series: list[str] = []
    gap = 0
    for token in found:
        if token.kind == "string":
            series.append(token.text)
            gap = 0
        elif token.kind == "end" or (gap := gap + 1) > near:
            if len(series) > 1:
                yield series
            series, gap = [], 0
    if len(series) > 1:
        yield series


def _folded(pieces: list[str | None], *, computes: bool = False) -> str | None:
    strings = [piece for piece in pieces if piece is not None and piece is not _CALLED]
    if not strings:
        return None
    if len(pieces) == 2 and pieces[0] is _CALLED:  # one function of one string: a decoder, `glob`, ...
        whole = _from_base64(strings[0]) or strings[0]
    else:
        whole = "".join(UNKNOWN if piece is None else piece for piece in pieces).replace(_CALLED, UNKNOWN)
    return Given(whole) if computes else whole


def _from_base64(text: str) -> str | None:
    try:
        is_encoded = len(text) >= 8 and len(text) % 4 == 0 and re.fullmatch(r"[A-Za-z0-9+/]+={0,2}", text)
        decoded = base64.b64decode(text).decode() if is_encoded else ""
    except (binascii.Error, UnicodeDecodeError):
        return None
    return decoded if decoded.isprintable() and decoded else None
