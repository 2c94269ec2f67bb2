"""What the operators of `${..}` make of a text that is known."""

import re
from collections.abc import Callable

from ..grammar.lexical import decode_escapes
from ..values.word_values import UNKNOWN
from .state import Held

_MAX_TEXT = 65_536
# How long a text may be for a pattern with that many stars: each star is one more loop over the text.
_MAX_BY_STARS = (4_000, 1_000, 100, 40)
_CLASSES = {
    "alpha": "a-zA-Z", "digit": "0-9", "alnum": "a-zA-Z0-9", "upper": "A-Z", "lower": "a-z", "space": r"\s", "blank": r" \t",
    "punct": r"!-/:-@\[-`{-~", "word": r"\w", "xdigit": "0-9a-fA-F", "print": " -~", "graph": "!-~", "cntrl": r"\x00-\x1f\x7f",
}  # fmt: skip
_TOKEN = re.compile(
    r"\s*(?:(\ue000|0[xX][0-9a-fA-F]+|\d+#[0-9a-zA-Z@_]+|\d+)|([A-Za-z_]\w*(?:\[[^\]]*\])?)"
    r"|(\*\*|<<=|>>=|<<|>>|<=|>=|==|!=|&&|\|\||\+\+|--|[-+*/%&|^]=|[-+*/%&|^<>=!~?:(),]))"
)
_BINARY = (",", "?", "||", "&&", "|", "^", "&", "== !=", "< > <= >=", "<< >>", "+ -", "* / %", "**")
_LEVEL = {sign: level for level, signs in enumerate(_BINARY) for sign in signs.split()}
_ASSIGNING = frozenset(("=", "+=", "-=", "*=", "/=", "%=", "<<=", ">>=", "&=", "^=", "|="))
_ASSIGNED = re.compile(r"([A-Za-z_]\w*)\s*(?:(?:[-+*/%&|^]|<<|>>)?=(?!=)|\+\+|--)")
_STEPPED = re.compile(r"(?:\+\+|--)\s*([A-Za-z_]\w*)")
_STEPS = {"++": 1, "--": -1}
_UNARY: dict[str, Callable[[int], int]] = {"+": int, "-": int.__neg__, "!": lambda a: int(not a), "~": int.__invert__}
_MAX_EXPRESSION = 2_000
_MAX_DEPTH = 40

Lookup = Callable[[str], "int | None"]
Assign = Callable[[str, "int | None"], None]


class NotComputed(Exception):
    """The result is not computed here: it counts as unknown."""


def apply(text: str, operator: str, argument: str, second: str) -> str:
    """`${text<operator><argument>/<second>}`."""
    if len(text) > _MAX_TEXT:
        raise NotComputed
    if operator[0] in "#%":
        return _stripped(text, argument, operator)
    if operator[0] == "/":
        return _replaced(text, argument, second, operator)
    if operator[0] in "^,":
        return _cased(text, argument, operator)
    changed = {"U": text.upper(), "L": text.lower(), "u": text[:1].upper() + text[1:]}
    if operator != "@" or argument not in (*changed, "E", "Q", "K", "k"):
        raise NotComputed
    if argument in changed:
        return changed[argument]
    return decode_escapes(text, dollar=True) if argument == "E" else shell_quoted(text)


def substring(text: str, offset: int, length: int | None) -> str:
    """`${text:offset:length}`; both may count from the end."""
    offset += len(text) if offset < 0 else 0
    end = length if length is None or length < 0 else offset + length
    return text[offset:end] if offset >= 0 else ""


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
        return text.removeprefix(pattern) if operator[0] == "#" else text.removesuffix(pattern)
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
    found = _compiled(pattern, r"\A" if operator == "/#" else "", r"\Z" if operator == "/%" else "")
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


def _check_cost(text: str, pattern: str) -> None:
    stars = pattern.count("*")
    if stars >= len(_MAX_BY_STARS) or len(text) > _MAX_BY_STARS[stars] or len(pattern) > 1_000:
        raise NotComputed


def _compiled(pattern: str, before: str = "", after: str = "") -> re.Pattern[str]:
    try:
        return re.compile(f"(?s:{before}{pattern_regex(pattern)}{after})")
    except re.error as error:
        raise NotComputed from error


class _Failed(Exception):
    pass


def evaluate(text: str, lookup: Lookup, assign: Assign) -> int | None:
    """The value of an expression; variables are read and set through the two functions."""
    if len(text) > _MAX_EXPRESSION:
        _given_up(text, assign)
        return None
    if re.fullmatch(r"\s*\d{1,18}\s*", text) and not text.strip().startswith("0"):
        return int(text)
    try:
        tokens = _tokens(text)[::-1]
        value = _Evaluation(tokens, lookup, assign).expression() if tokens else 0
        return None if tokens else value
    except (_Failed, RecursionError):
        _given_up(text, assign)
        return None


def _given_up(text: str, assign: Assign) -> None:
    """Whatever it would assign is not known."""
    for name in dict.fromkeys([*_ASSIGNED.findall(text), *_STEPPED.findall(text)]):
        assign(name, None)


def number(text: str) -> int | None:
    """A number as the shell writes them: decimal, 0x.., 0.., base#.."""
    text = text.strip()
    sign = -1 if text.startswith("-") else 1
    text = text.lstrip("+-")
    try:
        if "#" in text:
            base, _, digits = text.partition("#")
            return sign * int(digits, int(base)) if 2 <= int(base) <= 36 else None
        if text[:2].lower() == "0x":
            return sign * int(text, 16)
        return sign * int(text, 8 if text.startswith("0") and len(text) > 1 else 10)
    except ValueError:
        return None


def _tokens(text: str) -> list[str]:
    tokens, place, end = [], 0, len(text.rstrip())
    while place < end:
        match = _TOKEN.match(text, place)
        if match is None:
            raise _Failed
        tokens.append(match.group().strip())
        place = match.end()
    return tokens


class _Evaluation:
    """Reads an expression by the levels of its operators, and computes it on the way."""

    def __init__(self, tokens: list[str], lookup: Lookup, assign: Assign) -> None:
        self._tokens = tokens
        self._lookup = lookup
        self._set = assign
        self._depth = 0
        self._perhaps = False
        """Whether the part at hand is evaluated only if an unknown condition holds."""
        self._skipped = False
        """Whether it is not evaluated at all: `0 && (x=1)`."""

    def _assign(self, name: str, value: int | None) -> int | None:
        if not self._skipped:
            self._set(name, None if self._perhaps else value)
        return value

    def _guarded(self, runs: bool | None, least: int) -> int | None:
        """A part that runs, does not run, or may run (None)."""
        with Held(self, _perhaps=self._perhaps or runs is None, _skipped=self._skipped or runs is False):
            return self.expression(least)

    def _next(self) -> str:
        return self._tokens.pop() if self._tokens else ""

    def expression(self, least: int = 0) -> int | None:
        """Up to an operator of a lower level than this."""
        left = self._operand()
        while self._tokens and (level := _LEVEL.get(self._tokens[-1], -1)) >= least:
            operator = self._next()
            if operator in ("&&", "||"):  # the right side counts only when the left one leaves the result open
                runs = None if left is None else bool(left) is (operator == "&&")
                right = self._guarded(runs, level + 1)
                known = left if runs is False else None if left is None else right
                left = None if known is None else int(bool(known))
            elif operator == "?":
                left = self._choice(left)
            else:
                right = self.expression(level + (operator != "**"))
                left = right if operator == "," else _computed(operator, left, right)
        return left

    def _choice(self, test: int | None) -> int | None:
        runs = None if test is None else bool(test)
        yes = self._guarded(runs, 0)
        if self._next() != ":":
            raise _Failed
        no = self._guarded(None if runs is None else not runs, _LEVEL["?"])
        return (yes if yes == no else None) if test is None else yes if test else no

    def _operand(self) -> int | None:
        self._depth += 1
        token = self._next()
        if self._depth > _MAX_DEPTH:
            raise _Failed
        if token in _UNARY:
            inner = self._operand()
            value = None if inner is None else _UNARY[token](inner)
        elif token in _STEPS:
            value = self._stepped(self._next(), token)
        elif token == "(":
            value = self.expression()
            if self._next() != ")":
                raise _Failed
        elif token[:1].isdigit() or token == UNKNOWN:
            value = number(token)
        else:
            value = self._variable(token)
        self._depth -= 1
        return value

    def _variable(self, name: str) -> int | None:
        if not (name[:1].isalpha() or name[:1] == "_"):
            raise _Failed
        operator = self._tokens[-1] if self._tokens else ""
        value = self._lookup(name) if operator != "=" else None
        if operator in _ASSIGNING:
            self._next()
            right = self.expression(_LEVEL["?"])
            return self._assign(name, right if operator == "=" else _computed(operator[:-1], value, right))
        if operator in _STEPS:
            self._stepped(name, self._next())
        return value

    def _stepped(self, name: str, operator: str) -> int | None:
        old = self._lookup(name)
        return self._assign(name, None if old is None else old + _STEPS[operator])


def _computed(operator: str, left: int | None, right: int | None) -> int | None:
    if left is None or right is None:
        return None
    if operator in ("/", "%") and right == 0:
        raise _Failed
    if operator in ("<<", ">>", "**") and not 0 <= right < 64:
        raise _Failed
    value = _OPERATIONS[operator](left, right)
    return (value + (1 << 63)) % (1 << 64) - (1 << 63)


def _divided(left: int, right: int) -> int:
    quotient = abs(left) // abs(right)
    return quotient if (left < 0) == (right < 0) else -quotient


_OPERATIONS: dict[str, Callable[[int, int], int]] = {
    "|": lambda a, b: a | b, "^": lambda a, b: a ^ b, "&": lambda a, b: a & b, "==": lambda a, b: int(a == b),
    "!=": lambda a, b: int(a != b), "<": lambda a, b: int(a < b), ">": lambda a, b: int(a > b), "<=": lambda a, b: int(a <= b),
    ">=": lambda a, b: int(a >= b), "<<": lambda a, b: a << b, ">>": lambda a, b: a >> b, "+": lambda a, b: a + b,
    "-": lambda a, b: a - b, "*": lambda a, b: a * b, "/": _divided, "%": lambda a, b: a - b * _divided(a, b),
    "**": lambda a, b: a**b,
}  # fmt: skip
