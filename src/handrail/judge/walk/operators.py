"""What the operators of `${..}` make of a text that is known."""

from __future__ import annotations

import re

from ..grammar.lexical import decode_escapes

_MAX_TEXT = 65_536
# How long a text may be for a pattern with that many stars: each star is one more loop over the text.
_MAX_BY_STARS = (4_000, 1_000, 100, 40)
_CLASSES = {
    "alpha": "a-zA-Z", "digit": "0-9", "alnum": "a-zA-Z0-9", "upper": "A-Z", "lower": "a-z", "space": r"\s", "blank": r" \t",
    "punct": r"!-/:-@\[-`{-~", "word": r"\w", "xdigit": "0-9a-fA-F", "print": " -~", "graph": "!-~", "cntrl": r"\x00-\x1f\x7f",
}  # fmt: skip


class NotComputed(Exception):
    """The result is not computed here: it counts as unknown."""


def apply(text: str, operator: str, argument: str, second: str) -> str:
    """`${text<operator><argument>/<second>}`."""
    if len(text) > _MAX_TEXT:
        raise NotComputed
    if operator in ("#", "##", "%", "%%"):
        return _stripped(text, argument, operator)
    if operator[0] == "/":
        return _replaced(text, argument, second, operator)
    if operator[0] in "^,":
        return _cased(text, argument, operator)
    if operator == "@":
        return _transformed(text, argument)
    raise NotComputed


def substring(text: str, offset: int, length: int | None) -> str:
    """`${text:offset:length}`; both may count from the end."""
    if offset < 0:
        offset += len(text)
        if offset < 0:
            return ""
    if length is None:
        return text[offset:]
    return text[offset : length if length < 0 else offset + length]


def shell_quoted(text: str) -> str:
    """As `${x@Q}` writes it: a single word when it is read again."""
    return "'" + text.replace("'", "'\\''") + "'"


def escaped(text: str) -> str:
    """As `printf %q` writes it."""
    return re.sub(r"([^\w@%+=:,./-])", r"\\\1", text) if text else "''"


def pattern_regex(pattern: str) -> str:
    """A shell pattern as a regular expression without anchors. The caller decides whether its `*` is lazy or greedy."""
    out: list[str] = []
    place = 0
    while place < len(pattern):
        char = pattern[place]
        place += 1
        if char == "*":
            if not out or out[-1] != ".*":
                out.append(".*")
        elif char == "?":
            out.append(".")
        elif char == "\\" and place < len(pattern):
            out.append(re.escape(pattern[place]))
            place += 1
        elif char == "[":
            found, place = _bracket(pattern, place)
            out.append(found)
        else:
            out.append(re.escape(char))
    return "".join(out)


def _bracket(pattern: str, place: int) -> tuple[str, int]:
    match = re.compile(r"([!^]?)(\]?(?:\[:\w+:\]|[^\]])*)\]").match(pattern, place)
    if match is None:
        return r"\[", place
    inside = re.sub(r"\[:(\w+):\]", lambda found: "\0" + found[1] + "\0", match[2])
    inside = re.sub(r"([\\\[\]^&~|])", r"\\\1", inside)
    inside = re.sub("\0(\\w+)\0", lambda found: _CLASSES.get(found[1], ""), inside)
    return f"[{'^' if match[1] else ''}{inside}]", match.end()


def _stripped(text: str, pattern: str, operator: str) -> str:
    if not re.search(r"[*?\[\\]", pattern):
        if operator[0] == "#":
            return text.removeprefix(pattern)
        return text.removesuffix(pattern)
    _check_cost(text, pattern)
    whole = _compiled(pattern)
    places = range(len(text) + 1)
    if operator[0] == "#":
        for place in places if operator == "#" else reversed(places):
            if whole.fullmatch(text, 0, place):
                return text[place:]
    else:
        for place in reversed(places) if operator == "%" else places:
            if whole.fullmatch(text, place):
                return text[:place]
    return text


def _replaced(text: str, pattern: str, new: str, operator: str) -> str:
    if not pattern:
        return text
    _check_cost(text, pattern)
    before, after = (r"\A" if operator == "/#" else ""), (r"\Z" if operator == "/%" else "")
    try:
        found = re.compile(f"(?s:{before}{pattern_regex(pattern)}{after})")
    except re.error as error:
        raise NotComputed from error
    if len(new) * (len(text) + 1) > _MAX_TEXT and len(new) * len(found.findall(text)) > _MAX_TEXT:
        raise NotComputed
    return found.sub(lambda _: new, text, count=0 if operator == "//" else 1)


def _cased(text: str, pattern: str, operator: str) -> str:
    change = str.upper if operator[0] == "^" else str.lower
    if not pattern and len(operator) > 1:
        return change(text)
    one = _compiled(pattern or "?")
    if len(operator) == 1:
        return (change(text[0]) if text and one.fullmatch(text[0]) else text[:1]) + text[1:]
    return "".join(change(char) if one.fullmatch(char) else char for char in text)


def _transformed(text: str, letter: str) -> str:
    if letter == "U":
        return text.upper()
    if letter == "L":
        return text.lower()
    if letter == "u":
        return text[:1].upper() + text[1:]
    if letter == "E":
        return decode_escapes(text, dollar=True)
    if letter in ("Q", "K", "k"):
        return shell_quoted(text)
    raise NotComputed


def _check_cost(text: str, pattern: str) -> None:
    stars = pattern.count("*")
    if stars >= len(_MAX_BY_STARS) or len(text) > _MAX_BY_STARS[stars] or len(pattern) > 1_000:
        raise NotComputed


def _compiled(pattern: str) -> re.Pattern[str]:
    try:
        return re.compile(f"(?s:{pattern_regex(pattern)})")
    except re.error as error:
        raise NotComputed from error
