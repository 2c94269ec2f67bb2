"""Expand words: what the shell makes of them before a command gets them, as far as that can be known."""

import itertools
import re
from collections.abc import Sequence
from typing import Protocol

from ..grammar import syntax
from ..values.taints import NO_TAINTS, Taints, secret_taints, taints_of
from ..values.word_values import EMPTY, MAX_TEXT, UNKNOWN, Arg, Array, Either, Stored, Value, make_arg, unknown
from . import operators
from .fields import BREAK, LITERAL, MAX_FIELDS, QUOTED, SPLIT, Piece, Splitter, expand_braces
from .judgement import Limit
from .state import Held

_MAX_ARGS = 100_000
_FIELD_COST = 400
_OPERATOR_COST = 8
_PLAIN = re.compile(r"[^{~*?\[(]*\Z")
_TILDE = re.compile(r"~(?:([\w.-]+)|(\+|-)|)(?=[/:]|\Z)")
_NAME = re.compile(r"[A-Za-z_]\w*|\d+")
_DEFAULTS = frozenset((":-", "-", ":=", "=", ":+", "+", ":?", "?"))
_MAX_CHAIN = 8
# Their values are placeholders for directories: a part of one is not known.
_PLACES = frozenset(("HOME", "PWD", "OLDPWD"))


class Shell(Protocol):
    """What expansion needs from the shell that it happens in."""

    def lookup(self, name: str) -> Stored | None: ...
    def assign(self, name: str, value: Stored | None) -> None: ...
    def pick(self, key: object, value: Either) -> Value | None:
        """One of several possible values; the command is walked again for the others."""

    def substitute(self, part: syntax.Substitution) -> Value: ...
    def process(self, part: syntax.ProcessSubstitution) -> str:
        """The path of the file that a process substitution stands for."""

    def prompt(self, text: Value) -> Value:
        """A text in which substitutions are still to be made."""

    def spend(self, chars: int) -> None:
        """Raises `Limit` when expansion has made more text than is followed."""


class Expander:
    """Expands words in a shell."""

    def __init__(self, shell: Shell) -> None:
        self._shell = shell
        self._chain = 0
        """How many variables in arithmetic refer to one another up to the current one."""

    def args(self, words: Sequence[syntax.Word]) -> list[Arg]:
        """The fields that a command gets."""
        out: list[Arg] = []
        for word in words:
            if word.plain:
                arg = Arg(word.plain)
                arg.word = word
                out.append(arg)
                continue
            out += self.fields(word)
            if len(out) > _MAX_ARGS:
                raise Limit("a command line with too many words")
        return out

    def one(self, word: syntax.Word | None) -> Value:
        """A word as one value, not split: an assignment's, a here-string's, a pattern's."""
        if word is None or not word.parts:
            return EMPTY
        if len(word.parts) == 1:
            part = word.parts[0]
            if isinstance(part, syntax.Quoted) or (isinstance(part, syntax.Literal) and part.text[:1] != "~"):
                return Value(part.text, NO_TAINTS, word)
        return Value(*self._joined(word.parts), word)

    def _joined(self, parts: Sequence[syntax.Part]) -> tuple[str, Taints]:
        """The parts as one text, unknown when it would be too long to follow, and where it comes from."""
        texts: list[str] = []
        taints: Taints = NO_TAINTS
        for number, part in enumerate(parts):
            for text, piece_taints, _ in self.pieces(part, first=number == 0, quoted=True):
                texts.append(text)
                taints |= piece_taints
        length = sum(map(len, texts))
        self._shell.spend(length)
        return "".join(texts) if length <= MAX_TEXT else UNKNOWN, taints

    def text(self, parts: Sequence[syntax.Part]) -> Value:
        """Parts as one value: the text of arithmetic."""
        return self.one(syntax.Word(list(parts)))

    def fields(self, word: syntax.Word) -> list[Arg]:
        """The fields that a word becomes; one that becomes too many ends in an unknown one."""
        if len(word.parts) == 1 and (single := self._single(word.parts[0], word)) is not None:
            return [single]
        fields: list[Arg] = []
        words = expand_braces(word.parts)
        if len(words) > 1:
            self._shell.spend(_FIELD_COST * len(words))
        for parts in words:
            if len(parts) == 1 and (single := self._single(parts[0], word)) is not None:  # `{1..99}`
                self._shell.spend(len(single))
                fields.append(single)
                continue
            made = (self.pieces(part, first=number == 0, quoted=False) for number, part in enumerate(parts))
            found = Splitter(self._separators(), word).fields(itertools.chain.from_iterable(made))
            fields += found
            if len(found) > 1:
                self._shell.spend(_FIELD_COST * len(found))
            elif found:
                self._shell.spend(len(found[0]))
            if len(fields) > MAX_FIELDS:
                break
        return fields if len(fields) <= MAX_FIELDS else [*fields[:MAX_FIELDS], make_arg(UNKNOWN, word=word)]

    def _single(self, part: syntax.Part, word: syntax.Word) -> Arg | None:
        """What a word of one part becomes, when that is plainly one field."""
        if type(part) is syntax.Literal:
            return make_arg(part.text, word=word) if _PLAIN.match(part.text) else None
        if type(part) is syntax.Quoted:
            return make_arg(part.text, quoted=True, word=word)
        if type(part) is not syntax.DoubleQuoted or any(map(_may_be_many, part.parts)):
            return None
        text, taints = self._joined((part,))
        return make_arg(text, taints=taints, quoted=True, word=word)

    def _separators(self) -> str:
        value = self._scalar("IFS")
        return " \t\n" if value is None else value.text

    def pieces(self, part: syntax.Part, *, first: bool, quoted: bool) -> list[Piece]:
        kind = type(part)
        if kind is syntax.Literal:
            return self._literal(part.text, first)  # type: ignore[union-attr]
        if kind is syntax.Quoted:
            return [(part.text, NO_TAINTS, QUOTED)]  # type: ignore[union-attr]
        if isinstance(part, syntax.DoubleQuoted):
            out: list[Piece] = [("", NO_TAINTS, QUOTED)]
            for inner in part.parts:
                for text, taints, mode in self.pieces(inner, first=False, quoted=True):
                    out.append((text, taints, mode if mode == BREAK else QUOTED))
            return out
        mode = QUOTED if quoted else SPLIT
        if isinstance(part, syntax.Parameter):
            return self._parameter(part, mode)
        if isinstance(part, syntax.Substitution):
            value = self._shell.substitute(part)
            if isinstance(value, Either):
                value = self._shell.pick(part, value) or EMPTY
            return [(value.text.replace("\0", "").rstrip("\n"), value.taints, mode)]
        if isinstance(part, syntax.ProcessSubstitution):
            return [(self._shell.process(part), NO_TAINTS, QUOTED)]
        assert isinstance(part, syntax.Arithmetic)
        return [(self.arithmetic(part.parts), NO_TAINTS, mode)]

    def _literal(self, text: str, first: bool) -> list[Piece]:
        match = _TILDE.match(text) if first and text[:1] == "~" else None
        if match is None:
            return [(text, NO_TAINTS, LITERAL)]
        user, special = match.groups()
        home = "~" if not user else "/root" if user == "root" else f"/home/{user}"
        if special:
            home = "." if special == "+" else UNKNOWN
        rest = text[match.end() :]
        return [(home, NO_TAINTS, LITERAL if rest else QUOTED), (rest, NO_TAINTS, LITERAL)]

    # Parameters: `$x`, `${x:-d}`, `${a[1]}`, `"$@"`, `${!x}`, `$((x + 1))`

    def _parameter(self, part: syntax.Parameter, mode: str) -> list[Piece]:
        if part.operator == "prefix":
            return [(UNKNOWN, NO_TAINTS, mode)]
        if not part.operator and part.index is None and not part.indirect and part.name not in ("@", "*"):
            value = self._scalar(part.name)
            return [(UNKNOWN, secret_taints(part.name), mode) if value is None else (value.text, value.taints, mode)]
        name = self._target(part)
        if name is None:
            return [(UNKNOWN, NO_TAINTS, mode)]
        index = self.one(part.index).text if part.index is not None else None
        every = index if index in ("@", "*") else name if name in ("@", "*") else None
        if every is not None:
            return self._all(name, every, part, mode)
        value = self._modified(self._element(name, index), part, name, index)
        return [(value.text, value.taints, mode)]

    def arithmetic(self, parts: Sequence[syntax.Part]) -> str:
        """The result of an expression as text; unknown when it cannot be computed."""
        value = self.number(self.text(parts))
        return UNKNOWN if value is None else str(value)

    def number(self, text: Value) -> int | None:
        if "$(" in text.text or "`" in text.text:
            text = self._shell.prompt(text)
        return operators.evaluate(text.text, self._number_of, self._assign_number)

    def _assign_number(self, name: str, value: int | None) -> None:
        if "[" not in name:
            self._shell.assign(name, unknown() if value is None else Value(str(value)))

    def _number_of(self, name: str) -> int | None:
        """A variable in an expression: its own text is an expression again."""
        base, bracket, index = name.partition("[")
        if bracket and ("$" in index or "`" in index):
            self._shell.prompt(Value(index[:-1]))
            return None
        value = self._element(base, index[:-1] if bracket else None)
        if value is None or self._chain > _MAX_CHAIN:
            return None
        text = value.text
        if "$(" in text or "`" in text:
            text = self._shell.prompt(value).text
        if UNKNOWN in text:
            return None
        with Held(self, _chain=self._chain + 1):
            return 0 if not text.strip() else operators.evaluate(text, self._number_of, self._assign_number)

    def _target(self, part: syntax.Parameter) -> str | None:
        """The name that is meant, after `${!name}`; None when it is not known."""
        if not part.indirect:
            return part.name
        if part.index is not None:
            return None  # ${!array[@]} gives the indexes
        named = self._scalar(part.name)
        if named is not None and "[" in named.text and named.known:
            base, _, index = named.text.partition("[")
            self._number_of(f"{base}[{index.rstrip(']')}]")
        return named.text if named is not None and _NAME.fullmatch(named.text) else None

    def _scalar(self, name: str) -> Value | None:
        stored = self._shell.lookup(name)
        return self._picked(stored.items.get("0") if isinstance(stored, Array) else stored)

    def _picked(self, value: Value | None) -> Value | None:
        """The value, or the one of several that counts on the path at hand."""
        return self._shell.pick(id(value), value) if isinstance(value, Either) else value

    def _element(self, name: str, index: str | None) -> Value | None:
        stored = self._shell.lookup(name)
        if index is None or not isinstance(stored, Array):
            value = self._scalar(name)
            if index in (None, "", "0"):
                return value
            self._index(index)
            return value if value is None else unknown(value.taints)
        number = None if stored.associative else self._index(index)
        if stored.associative and UNKNOWN not in index:
            return self._picked(stored.items.get(index))
        if number is None:
            return unknown(taints_of(stored.items.values()))
        if number < 0:
            keys = list(stored.items)
            return self._picked(stored.items[keys[number]]) if -number <= len(keys) else None
        return self._picked(stored.items.get(str(number)))

    def _index(self, text: str | None) -> int | None:
        """The index of an element, which is an expression; None when it is not known."""
        return self.number(Value(text)) if text else None

    def _all(self, name: str, every: str, part: syntax.Parameter, mode: str) -> list[Piece]:
        """`"$@"`, `${array[*]}` and the like."""
        stored = self._shell.lookup(name)
        if stored is None:
            return [(UNKNOWN, NO_TAINTS, mode)]
        items = map(self._picked, stored.items.values() if isinstance(stored, Array) else [stored])
        values = [item for item in items if item is not None]
        if part.operator == "length":
            return [(str(len(values)), NO_TAINTS, mode)]
        if part.operator == ":":
            values = self._slice(values, part, name)
        elif part.operator:
            each: list[Value | None] = [*values] or [None]
            values = [self._modified(value, part, "", None) for value in each]
        if every == "*" and mode == QUOTED:
            separators = self._shell.lookup("IFS")
            between = separators.text[:1] if isinstance(separators, Value) and separators.known else " "
            return [(between.join(value.text for value in values), taints_of(values), mode)]
        between_fields: Piece = ("", NO_TAINTS, BREAK)
        return [piece for value in values for piece in (between_fields, (value.text, value.taints, mode))][1:]

    def _slice(self, values: list[Value], part: syntax.Parameter, name: str) -> list[Value]:
        start = self.number(self.one(part.argument))
        length = None if part.second is None else self.number(self.one(part.second))
        if start is None or (part.second is not None and length is None):
            return [unknown(taints_of(values))]
        if name in ("@", "*"):
            start = max(start - 1, 0) if start >= 0 else start
        return values[start:][:length]

    def _modified(self, value: Value | None, part: syntax.Parameter, name: str, index: str | None) -> Value:
        """Apply the operator. None is a variable that the command has not set: unknown, but for a default."""
        operator = part.operator
        if not operator:
            return unknown(secret_taints(name)) if value is None else value
        if operator in _DEFAULTS:
            return self._defaulted(value, part, name, index)
        if value is None:
            value = unknown()
        if operator == "length":
            return Value(str(len(value.text))) if value.known else unknown()
        if operator == ":":
            return self._substring(value, part)
        argument, second = self.one(part.argument), self.one(part.second)
        if operator == "@" and argument.text == "P":
            return self._shell.prompt(value)
        if operator == "@" and argument.text == "A" and value.known:
            return Value(f"{name}={operators.shell_quoted(value.text)}", value.taints)
        if name in _PLACES or not (value.known and argument.known and second.known):
            return unknown(value.taints | argument.taints | second.taints)
        pattern, parts = argument.text, part.argument.parts if part.argument is not None else ()
        if len(parts) == 1 and isinstance(parts[0], syntax.Quoted | syntax.DoubleQuoted):  # quoted, so it is literal
            pattern = re.sub(r"([*?\[\\])", r"\\\1", pattern)
        self._shell.spend(_OPERATOR_COST * len(value.text))
        try:
            return Value(operators.apply(value.text, operator, pattern, second.text), value.taints | second.taints)
        except operators.NotComputed:
            return unknown(value.taints)

    def _defaulted(self, value: Value | None, part: syntax.Parameter, name: str, index: str | None) -> Value:
        operator = part.operator
        missing = value is None or (len(operator) == 2 and value.text == "")
        if operator[-1] == "+" and value is None:  # it may have been set before this command
            both = Either((EMPTY, self.one(part.argument)))
            return self._shell.pick((id(part), "alternative"), both) or EMPTY
        if operator[-1] == "+":
            return EMPTY if missing else self.one(part.argument)
        if not missing and value is not None:
            return value
        if operator[-1] == "?":
            return unknown()
        default = self.one(part.argument)
        if operator[-1] == "=" and name and index is None:
            self._shell.assign(name, default)
        return default

    def _substring(self, value: Value, part: syntax.Parameter) -> Value:
        offset = self.number(self.one(part.argument))
        length = None if part.second is None else self.number(self.one(part.second))
        if part.name in _PLACES or not value.known or offset is None or (part.second is not None and length is None):
            return unknown(value.taints)
        return Value(operators.substring(value.text, offset, length), value.taints)


def _may_be_many(part: syntax.Part) -> bool:
    """`"$@"`, `"${a[@]}"`, `"${!x}"`: several fields even inside quotes."""
    return type(part) is syntax.Parameter and (part.name == "@" or part.index is not None or part.indirect)
