"""The arguments of a call in a tokenized program: strings and numbers folded, None for what is not known."""

from __future__ import annotations

import base64
import binascii
import itertools
import re
from collections.abc import Iterator, Sequence

from ..values.word_values import UNKNOWN
from .tokens import Token

_WITHOUT_PARENTHESES = frozenset(("perl", "ruby", "lua", "haskell", "scheme"))
_HOME_NAMES = frozenset(("os.homedir", "process.env.HOME", "Dir.home"))
_MAX_TOKENS = 300


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
    bare = language in _WITHOUT_PARENTHESES and (
        first.kind in ("string", "name", "number", "command") or first.text in ("[", "<")
    )
    if not parenthesised and not bare:
        return None, False
    found: list[str | None] = []
    pieces: list[str | None] = []
    start = place + parenthesised
    for count, token in enumerate(_inside(tokens, start, parenthesised=parenthesised, keep=objects)):
        if count >= _MAX_TOKENS:
            return [None], parenthesised
        if token.text == "," and token.kind == "sign":
            found.append(_folded(pieces))
            pieces = []
        elif token.kind == "number" and pieces and pieces[-1] is None:  # an index
            continue
        elif token.kind in ("string", "number"):
            pieces.append(token.text)
        elif token.kind in ("name", "command"):
            pieces.append("~" if token.text in _HOME_NAMES else None)
    if pieces:
        found.append(_folded(pieces))
    if block is not None:
        found[:1] = [_folded([token.text if token.kind == "string" else None for token in block])]
    return found, parenthesised


def _inside(tokens: Sequence[Token], place: int, *, parenthesised: bool, keep: bool) -> Iterator[Token]:
    """The tokens of one argument list; brackets of lists inside it do not count, objects (`{..}`) only if they are kept."""
    depth = objects = 0
    for token in itertools.islice(tokens, place, place + _MAX_TOKENS + 100):
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
            yield token


def _folded(pieces: list[str | None]) -> str | None:
    strings = [piece for piece in pieces if piece is not None]
    if not strings:
        return None
    if len(pieces) == 2 and pieces[0] is None:  # one function of one string: a decoder, `glob`, ...
        return _from_base64(strings[0]) or strings[0]
    return "".join(UNKNOWN if piece is None else piece for piece in pieces)


def _from_base64(text: str) -> str | None:
    if len(text) < 8 or len(text) % 4 or not re.fullmatch(r"[A-Za-z0-9+/]+={0,2}", text):
        return None
    try:
        decoded = base64.b64decode(text).decode()
    except (binascii.Error, UnicodeDecodeError):
        return None
    return decoded if decoded.isprintable() else None
