"""What the names of a program stand for, read from its tokens.

A name has a value only if every place at which it stands is understood: it is assigned a constant there, or only read. At any
other place (a parameter, the variable of a loop, a reference, an argument of a function that is not known to leave it as it
is) it may become something that is not known. A name that is assigned several constants may be each of them.
"""

import itertools
import re
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet

from ..values.data_files import Patterns, Words
from .tokens import Token

_RE = Patterns(__file__)
_WORDS = Words(__file__)
_Value = str | tuple[str, ...] | None
_OPENING, _CLOSING = "([{", ")]}"
_OPERATORS = "=+-.*/%&|<>!~?:^"
_MAX_VARIANTS = 16
_MAX_ROUNDS = 4
_MAX_DEPTH = 16
_MAX_TEXT = 30_000
_BY_DOT = frozenset("perl php raku".split())
"""Languages in which a dot puts strings together."""


def variants(language: str, text: str, found: list[Token], readers: AbstractSet[str]) -> Iterator[list[Token]]:
    """The tokens of a program with strings in the place of names and of what is put together, for all that names may stand for.

    `readers`: the functions that leave their arguments as they are.
    """
    if len(text) > _MAX_TEXT:
        yield found
        return
    names = _Names(language, found, readers)
    possible = names.possible()
    if _RE.sets_by_name.search(text):
        possible = {name: (*values, None) for name, values in possible.items()}
    count = 1
    for values in possible.values():
        count *= len(values)
    if count > _MAX_VARIANTS:  # those that may be a home stay
        possible = {
            name: [one for one in values if one and one[0] == "~"][:1] or [None] for name, values in possible.items()
        }
    for chosen in itertools.product(*possible.values()):
        yield names.replaced({name: value for name, value in zip(possible, chosen, strict=True) if value is not None})


class _Names:
    def __init__(self, language: str, found: list[Token], readers: AbstractSet[str]) -> None:
        self._language = language
        self._found = found
        self._readers = readers
        self._around: list[int] = []
        """For each token the innermost bracket that it is inside of, -1 for none."""
        self._closing: dict[int, int] = {}
        stack = [-1]
        for place, token in enumerate(found):
            if token.kind == "sign" and token.text in _CLOSING and len(stack) > 1:
                self._closing[stack.pop()] = place
            self._around.append(stack[-1])
            if token.kind == "sign" and token.text in _OPENING:
                stack.append(place)

    def possible(self) -> dict[str, Sequence[_Value]]:
        """What each name that is assigned a constant may stand for; None is something that is not known."""
        assigned: dict[str, list[int]] = {}
        unclear: set[str] = set()
        read: set[str] = set()
        for place, token in enumerate(self._found):
            if token.kind in ("string", "command"):
                read.update(name for match in _RE.inside.finditer(token.text) for name in _inside(match))
            if token.kind != "name" or self._is_property(place):
                continue
            name = self._name(place)
            if self._is_assigned(place):
                assigned.setdefault(name, []).append(place)
                if self._around[place] >= 0 or name in read:  # it may run later or not at all, or be used before
                    unclear.add(name)
            elif self._is_read(place):
                read.add(name)
            else:
                unclear.add(name)
        return self._folded(assigned, unclear) if assigned else {}

    def _folded(self, assigned: dict[str, list[int]], unclear: AbstractSet[str]) -> dict[str, Sequence[_Value]]:
        values: dict[str, list[_Value]] = {}
        known: dict[str, _Value] = {}
        for _ in range(_MAX_ROUNDS):
            values = {name: [self._right(place, known) for place in places] for name, places in assigned.items()}
            known = {name: found[0] for name, found in values.items() if len(set(found)) == 1 and name not in unclear}
        for name in unclear & values.keys():
            values[name].append(None)
        return {name: list(dict.fromkeys(found)) for name, found in values.items() if any(found)}

    def replaced(self, values: dict[str, _Value]) -> list[Token]:
        made: list[Token] = []
        skipped = -1
        for place, token in enumerate(self._found):
            if place <= skipped:
                continue
            if token.kind in ("string", "command"):
                made.append(token._replace(text=self._filled(token, values)))
                continue
            value = None if token.kind != "name" or self._is_property(place) else values.get(self._name(place))
            if value is None or self._is_assigned(place):
                made.append(token)
                continue
            if isinstance(value, tuple) and self._sign(place + 1) == "[":
                index = self._found[place + 2].text if self._sign(place + 3) == "]" else ""
                if not index.isdigit() or int(index) >= len(value):
                    made.append(token)
                    continue
                value, skipped = value[int(index)], place + 3
            for item in (value,) if isinstance(value, str) else value:
                made += [Token("string", item, token.start), Token("sign", ",", token.start)]
            made.pop()
            if "." in token.text:  # a method of it
                made += [Token("sign", ".", token.start), Token("name", token.text.rpartition(".")[2], token.start)]
        return _joined(made)

    def _filled(self, token: Token, values: dict[str, _Value]) -> str:
        """A string with the values of the names in it."""

        def value(match: re.Match[str]) -> str:
            found = next((values[name] for name in _inside(match) if name in values), None)
            return match[0] if found is None else found if isinstance(found, str) else " ".join(found)

        return token.text if token.quote == "'" or not values else _RE.inside.sub(value, token.text)

    def _name(self, place: int) -> str:
        name = _RE.chain.split(self._found[place].text)[0]
        if name[:1] == "$" and self._language == "perl" and self._sign(place + 1) in ("[", "{"):  # of a list or a table
            return f"{'@' if self._sign(place + 1) == '[' else '%'}{name[1:]}"
        return name

    def _sign(self, place: int) -> str:
        token = self._found[place] if 0 <= place < len(self._found) else None
        return token.text if token is not None and token.kind in ("sign", "end") else ""

    def _operator(self, place: int) -> str:
        """The signs at a place that belong to one operator."""
        signs = itertools.takewhile(lambda sign: sign and sign in _OPERATORS, map(self._sign, range(place, place + 4)))
        return "".join(signs)

    def _is_property(self, place: int) -> bool:
        return self._sign(place - 1) == "." and self._language not in _BY_DOT and self._sign(place - 2) != "."

    def _is_assigned(self, place: int) -> bool:
        operator = self._operator(place + 1)
        if operator == ":=" or (operator == "<-" and self._language == "r"):
            operator = "="
        before = self._found[place - 1] if place else None
        starts = before is None or before.kind == "end" or before.text in ("{", "}", *_WORDS.declares)
        starts = starts or self._is_next(place)
        starts = starts or (self._language == "javascript" and self._sign(place - 1) == "," and self._around[place] < 0)
        sets = operator[:1] == "=" and operator[1:2] not in ("=", "~", ">")
        return sets and starts and re.fullmatch(r"\W?(?!_$)\w+", self._found[place].text) is not None

    def _is_read(self, place: int) -> bool:
        token, before = self._found[place], self._found[place - 1] if place else None
        chain = _RE.chain.split(token.text)
        if len(chain) > 1 and (len(chain) > 2 or chain[1] not in _WORDS.pure_methods):
            return False
        if before is None or before.kind == "end" or (before.kind == "name" and before.text not in self._readers):
            return False
        if before.kind == "sign":
            operator = _before(self._found, place)
            if operator not in ("(", "[", ",") and not _RE.operator_before.fullmatch(operator):
                return False
            if operator == "=" and self._language not in _BY_DOT and self._ends(place + 1):  # another name for the same
                return False
        return self._is_left_alone(place) and (len(chain) > 1 or self._is_read_before(place + 1))

    def _ends(self, place: int) -> bool:
        return place >= len(self._found) or self._found[place].kind == "end" or self._sign(place) == "}"

    def _is_read_before(self, place: int) -> bool:
        """Whether what comes after a name does not change it."""
        if self._ends(place) or self._sign(place) in (")", "]", ","):
            return True
        if self._sign(place) == "[":
            after = self._operator(self._closing.get(place, place) + 1)
            return place in self._closing and (after[-1:] != "=" or after in ("==", "!=", "===")) and after[:1] != "."
        if self._found[place].kind == "name":
            return self._found[place].text in _WORDS.after
        return _RE.operator_after.fullmatch(self._operator(place)) is not None

    def _is_left_alone(self, place: int) -> bool:
        """Whether no function that it is given to may change it, and nothing is assigned to the brackets around it."""
        around = self._around[place]
        for _ in range(_MAX_DEPTH):
            if around < 0 or self._found[around].text == "{":
                return True
            before = self._found[around - 1] if around else None
            if self._found[around].text == "(" and before is not None and before.kind == "name":
                called = _RE.chain.split(before.text)[-1].rstrip("!?")
                first = self._language != "php" or all(
                    self._around[at] != around or self._sign(at) != "," for at in range(around, place)
                )
                if called not in self._readers or not first:  # exec($command, $output)
                    return False
            after = self._operator(self._closing.get(around, len(self._found)) + 1)
            if after[:1] == "=" and after[:2] != "==":
                return False
            around = self._around[around]
        return False

    def _is_next(self, place: int) -> bool:
        """Whether a statement begins after a value without a sign between: `a = "x" b = "y"`."""
        is_lua = self._language == "lua" and place > 0 and self._found[place].kind == "name"
        return is_lua and (self._found[place - 1].kind in ("string", "number") or self._sign(place - 1) in _CLOSING[:1])

    def _right(self, place: int, known: dict[str, _Value]) -> _Value:
        """The constant that is assigned at a place."""
        start = next(at for at in range(place + 1, place + 4) if self._sign(at) in ("=", "-")) + 1
        end = start
        while end < len(self._found) and self._around[end] == self._around[place]:
            if self._found[end].kind == "end" or self._sign(end) == "," or self._is_next(end):
                break
            end += 1 if end not in self._closing else self._closing[end] - end + 1
        inside = self._found[start:end]
        if not inside or self._closing.get(start) != end - 1:
            return self._constant(inside, known)
        items = [
            list(items) for comma, items in itertools.groupby(inside[1:-1], lambda one: one.text == ",") if not comma
        ]
        values = [self._constant(item, known) for item in items]
        if len(values) == 1 and inside[0].text == "(" and self._found[place].text[0] != "@":
            return values[0]
        texts = tuple(value for value in values if isinstance(value, str))
        return texts if texts and len(texts) == len(values) else None

    def _constant(self, inside: Sequence[Token], known: dict[str, _Value]) -> _Value:
        """What strings and names make, put together."""
        if len(inside) == 1 and inside[0].kind == "name":
            return known.get(inside[0].text)
        put: list[Token] = []
        for token in inside:
            value = known.get(token.text) if token.kind == "name" else None
            put.append(token if not isinstance(value, str) else Token("string", value, token.start, "'"))
        joined = _joined([token._replace(text=self._filled(token, known)) for token in put])
        whole = joined[0] if len(joined) == 1 else None
        if whole is None or whole.kind != "string" or (whole.quote != "'" and _RE.inside.search(whole.text)):
            return None
        return whole.text


def _inside(match: re.Match[str]) -> tuple[str, ...]:
    """The names that a name in a string may mean."""
    return (match["bare"],) if match["bare"] else (match["braced"], f"${match['braced']}")


def _before(found: Sequence[Token], place: int) -> str:
    """The operator or bracket before a place."""
    signs = ""
    while place and found[place - 1].kind == "sign" and (not signs or found[place - 1].text in _OPERATORS):
        signs = found[place - 1].text + signs
        place -= 1
    return signs


def _join_list(made: list[Token]) -> None:
    """`["~", ".ssh"].join("/")` at the end of the tokens: as one string."""
    start = next((at for at in range(len(made) - 7, -1, -1) if made[at].text == "["), 0)
    items = [one for one in made[start + 1 : -6] if one.kind != "sign"]
    if items and {one.kind for one in (*items, made[-2])} == {"string"}:
        made[start:] = [items[0]._replace(text=made[-2].text.join(one.text for one in items))]


def _joined(found: Sequence[Token]) -> list[Token]:
    """Strings that are put together become one, and so does a path that is joined to a home."""
    made: list[Token] = []
    for token in found:
        made.append(token)
        if token.kind == "string":
            first = len(made) - 2
            while first > 0 and made[first].kind == "sign" and len(made) - first < 4:
                first -= 1
            operator = "".join(one.text for one in made[first + 1 : -1])
            if first >= 0 and made[first].kind == "string" and operator in _WORDS.puts_together:
                quote = min(token.quote, made[first].quote)
                made[first:] = [made[first]._replace(text=made[first].text + token.text, quote=quote)]
        elif token.text == "(" and [one.text for one in made[-4:-1:2]] == ["[", "]"] and made[-3].text.isidentifier():
            made[-4:] = [made[-3]._replace(kind="name"), token]  # x["system"](..)
        elif token.text == ")" and [one.text for one in made[-6:-2]] == ["]", ".", "join", "("]:
            _join_list(made)
        elif token.text == ")" and [one.text for one in made[-5:-2:2]] == ["(", ","]:
            call, home, path = made[-6:-3:2][0], made[-4], made[-2]
            if _RE.chain.split(call.text)[-1] in ("join", "resolve") and home.text[:1] == "~" and path.kind == "string":
                made[-6:] = [home._replace(text=f"{home.text}/{path.text}")]
    return made
