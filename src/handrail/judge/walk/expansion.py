"""Expand words: what the shell makes of them before a command gets them, as far as that can be known."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Sequence
from typing import Protocol

from ..grammar.syntax import (
    Arithmetic,
    DoubleQuoted,
    Literal,
    Parameter,
    Part,
    ProcessSubstitution,
    Quoted,
    Substitution,
    Word,
)
from ..values.word_values import EMPTY, NO_TAINTS, UNKNOWN, Arg, Either, Stored, Taints, Value, make_arg
from .braces import MAX_FIELDS, expand_braces
from .parameter_values import ParameterValues

_MAX_ARGS = 100_000
_PLAIN = re.compile(r"[^{~*?\[]*\Z")
_GLOB = re.compile(r"[*?]|\[.")
_TILDE = re.compile(r"~(?:([\w.-]+)|(\+|-)|)(?=[/:]|\Z)")

LITERAL, QUOTED, SPLIT, BREAK = "literal", "quoted", "split", "break"
Piece = tuple[str, Taints, str]
"""A stretch of text, where it came from, and what may still happen to it: `split` by IFS, or `break` between fields."""


class Shell(Protocol):
    """What expansion needs from the shell that it happens in."""

    def lookup(self, name: str) -> Stored | None: ...
    def assign(self, name: str, value: Stored | None) -> None: ...
    def pick(self, key: object, value: Either) -> Value | None:
        """One of several possible values; the command is looked at again for the others."""

    def substitute(self, part: Substitution) -> Value: ...
    def process(self, part: ProcessSubstitution) -> str:
        """The path of the file that a process substitution stands for."""

    def prompt(self, text: Value) -> Value:
        """A text in which substitutions are still to be made."""


class Expander:
    """Expands words in a shell."""

    def __init__(self, shell: Shell) -> None:
        self._shell = shell
        self.parameters = ParameterValues(shell, self)

    def args(self, words: Sequence[Word]) -> list[Arg]:
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
                break
        return out

    def one(self, word: Word | None) -> Value:
        """A word as one value, not split: an assignment's, a here-string's, a pattern's."""
        if word is None or not word.parts:
            return EMPTY
        if len(word.parts) == 1:
            part = word.parts[0]
            if isinstance(part, Quoted) or (isinstance(part, Literal) and part.text[:1] != "~"):
                return Value(part.text, NO_TAINTS, word)
        texts: list[str] = []
        taints: Taints = NO_TAINTS
        for number, part in enumerate(word.parts):
            for text, piece_taints, _ in self.pieces(part, first=number == 0, quoted=True):
                texts.append(text)
                taints |= piece_taints
        return Value("".join(texts), taints, word)

    def text(self, parts: Sequence[Part]) -> Value:
        """Parts as one value: the text of arithmetic."""
        return self.one(Word(list(parts)))

    def fields(self, word: Word) -> list[Arg]:
        """The fields that a word becomes; one that becomes too many ends in an unknown one."""
        if len(word.parts) == 1 and (single := self._single(word.parts[0], word)) is not None:
            return [single]
        fields: list[Arg] = []
        for parts in expand_braces(word.parts):
            fields += _Splitter(self, self._separators(), word).fields(parts)
            if len(fields) > MAX_FIELDS:
                return [*fields[:MAX_FIELDS], make_arg(UNKNOWN, word=word)]
        return fields

    def _single(self, part: Part, word: Word) -> Arg | None:
        """What a word of one part becomes, when that is clear at once: one field."""
        if type(part) is Literal:
            return make_arg(part.text, word=word) if _PLAIN.match(part.text) else None
        if type(part) is Quoted:
            return make_arg(part.text, quoted=True, word=word)
        if type(part) is not DoubleQuoted or any(_may_be_many(inner) for inner in part.parts):
            return None
        texts: list[str] = []
        taints: Taints = NO_TAINTS
        for text, piece_taints, _ in self.pieces(part, first=False, quoted=True):
            texts.append(text)
            taints |= piece_taints
        return make_arg("".join(texts), taints=taints, quoted=True, word=word)

    def _separators(self) -> str:
        value = self._shell.lookup("IFS")
        return value.text if isinstance(value, Value) and value.known else " \t\n"

    def pieces(self, part: Part, *, first: bool, quoted: bool) -> list[Piece]:
        kind = type(part)
        if kind is Literal:
            return self._literal(part.text, first)  # type: ignore[union-attr]
        if kind is Quoted:
            return [(part.text, NO_TAINTS, QUOTED)]  # type: ignore[union-attr]
        if isinstance(part, DoubleQuoted):
            out: list[Piece] = [("", NO_TAINTS, QUOTED)]
            for inner in part.parts:
                for text, taints, mode in self.pieces(inner, first=False, quoted=True):
                    out.append((text, taints, mode if mode == BREAK else QUOTED))
            return out
        mode = QUOTED if quoted else SPLIT
        if isinstance(part, Parameter):
            return self.parameters.pieces(part, mode)
        if isinstance(part, Substitution):
            value = self._shell.substitute(part)
            if isinstance(value, Either):
                value = self._shell.pick((id(part), "substitution"), value) or EMPTY
            return [(value.text.rstrip("\n"), value.taints, mode)]
        if isinstance(part, ProcessSubstitution):
            return [(self._shell.process(part), NO_TAINTS, QUOTED)]
        assert isinstance(part, Arithmetic)
        return [(self.parameters.arithmetic(part.parts), NO_TAINTS, mode)]

    def _literal(self, text: str, first: bool) -> list[Piece]:
        if not first or text[:1] != "~":
            return [(text, NO_TAINTS, LITERAL)]
        match = _TILDE.match(text)
        if match is None:
            return [(text, NO_TAINTS, LITERAL)]
        user, special = match.groups()
        home = "~" if not user else "/root" if user == "root" else f"/home/{user}"
        if special:
            home = "." if special == "+" else UNKNOWN
        rest = text[match.end() :]
        return [(home, NO_TAINTS, LITERAL if rest else QUOTED), (rest, NO_TAINTS, LITERAL)]


def _may_be_many(part: Part) -> bool:
    """`"$@"`, `"${a[@]}"`, `"${!x}"`: several fields even inside quotes."""
    return type(part) is Parameter and (part.name == "@" or part.index is not None or part.indirect)


class _Splitter:
    """Builds the fields of one word."""

    def __init__(self, expander: Expander, separators: str, word: Word) -> None:
        self._expander = expander
        self._separators = separators
        self._word = word
        self._fields: list[Arg] = []
        self._reset()

    def _reset(self) -> None:
        self._texts: list[str] = []
        self._taints: Taints = NO_TAINTS
        self._glob = self._quoted = self._started = False

    def fields(self, parts: list[Part]) -> list[Arg]:
        for number, part in enumerate(parts):
            for text, taints, mode in self._expander.pieces(part, first=number == 0, quoted=False):
                if mode == BREAK:
                    self._flush()
                    self._started = True
                elif mode == SPLIT and text != UNKNOWN:
                    self._split(text, taints)
                else:
                    self._add(text, taints)
                    if mode == QUOTED:
                        self._started = self._quoted = True
                    elif mode == LITERAL and _GLOB.search(text):
                        self._glob = True
        self._flush()
        return self._fields

    def _add(self, text: str, taints: Taints) -> None:
        self._texts.append(text)
        self._taints |= taints
        self._started = self._started or bool(text)

    def _split(self, text: str, taints: Taints) -> None:
        for chunk, cut in cut_by(text, self._separators):
            if chunk:
                self._add(chunk, taints)
                self._glob = self._glob or bool(_GLOB.search(chunk))
            if cut:
                self._started = self._started or not cut.isspace()
                self._flush()

    def _flush(self) -> None:
        if self._started:
            text = "".join(self._texts)
            self._fields.append(
                make_arg(text, taints=self._taints, glob=self._glob, quoted=self._quoted, word=self._word)
            )
        self._reset()


def cut_by(text: str, separators: str) -> Iterator[tuple[str, str]]:
    """The stretches between separators, each with what ends it; the last one ends with nothing."""
    last = 0
    pattern = _separator(separators)
    for match in re.finditer(pattern, text) if pattern else ():
        yield text[last : match.start()], match.group()
        last = match.end()
    yield text[last:], ""


def split_by(text: str, separators: str, most: int = 0) -> list[str]:
    """Cut a text as IFS says: runs of blanks are one cut, every other separator is one of its own."""
    pattern = _separator(separators)
    return re.split(pattern, text, maxsplit=most) if pattern else [text]


@functools.lru_cache(32)
def _separator(separators: str) -> str:
    if not separators:
        return ""
    blanks = "".join(char for char in separators if char in " \t\n")
    others = "".join(char for char in separators if char not in " \t\n")
    space = f"[{blanks}]" if blanks else "(?!)"
    return f"{space}*[{re.escape(others)}]{space}*|{space}+" if others else f"{space}+"
