"""The tree of a shell script: words made of parts, simple commands, pipelines, lists and compound commands.

Positions (`start`, `end`) count characters of the text that was parsed. A backquoted script was unescaped before it was
parsed, and its positions count in that text: its node has the map back (`origin`).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Literal as Choice

from ..values.assessment import Span
from ..values.word_values import SourceWord


class ShellSyntaxError(Exception):
    """The text is not a shell script that can be parsed."""

    def __init__(self, why: str, position: int = 0) -> None:
        super().__init__(f"{why} at character {position + 1}")
        self.why = why
        self.position = position


class TooLarge(ShellSyntaxError):
    """The text is longer, more deeply nested or more complex than is followed."""


@dataclass(slots=True, eq=False, repr=False)
class Literal:
    """Text outside quotes: open to tilde, brace and file name expansion."""

    text: str


@dataclass(slots=True, eq=False, repr=False)
class Quoted:
    """Text that stands for itself: from `'..'`, `$'..'` (decoded), `\\c`, or inside double quotes."""

    text: str
    start: int = -1
    """Where its characters are verbatim in the source; -1 when they are not."""


@dataclass(slots=True, eq=False, repr=False)
class DoubleQuoted:
    """`".."`: what is expanded inside is not split into fields."""

    parts: list[Part]


@dataclass(slots=True, eq=False, repr=False)
class Parameter:
    """`$x`, `${x}`, `${x:-word}`, `${x//a/b}`, `${!x}`, `${#x}`.

    `operator` is as written (`:-`, `##`, `/`, `//`, `/#`, `:` for a substring, `@` with the letter in `argument`), ``
    for none, `length` for `${#x}`, `prefix` for `${!x*}`.
    """

    name: str
    index: Word | None = None
    operator: str = ""
    argument: Word | None = None
    second: Word | None = None
    indirect: bool = False


@dataclass(slots=True, eq=False, repr=False)
class Substitution:
    """`$(..)`, `` `..` `` or `${ ..; }`."""

    script: Script
    origin: TextMap | None = None


@dataclass(slots=True, eq=False, repr=False)
class ProcessSubstitution:
    """`<(..)` or `>(..)`."""

    script: Script
    direction: str


@dataclass(slots=True, eq=False, repr=False)
class Arithmetic:
    """`$((..))` or `$[..]`: its text, with the expansions in it as parts."""

    parts: list[Part]


Part = Literal | Quoted | DoubleQuoted | Parameter | Substitution | ProcessSubstitution | Arithmetic


@dataclass(slots=True, eq=False, repr=False)
class Word:
    """Adjacent parts."""

    _parts: list[Part] | None
    start: int = 0
    end: int = 0
    plain: str = ""
    """Its text, if the parser has seen that nothing in it can be expanded; its parts are then made on demand."""

    @property
    def parts(self) -> list[Part]:
        if self._parts is None:  # plain words are many, and their parts are rarely needed
            self._parts = [Literal(self.plain)]
        return self._parts

    def literal(self) -> str | None:
        """Its text when it is nothing but unquoted text, as names and reserved words are."""
        if self.plain:
            return self.plain
        if len(self.parts) != 1:
            return None
        part = self.parts[0]
        return part.text if type(part) is Literal else None


@dataclass(slots=True, eq=False, repr=False)
class Assignment:
    """`name=value`, `name+=value`, `name[index]=value`, `name=(..)`."""

    name: str
    index: Word | None
    appends: bool
    value: Word
    elements: list[tuple[Word | None, Word]] | None = None
    """The elements of an array, each with its index if one is written; None for a plain value."""
    start: int = 0
    end: int = 0


@dataclass(slots=True, eq=False, repr=False)
class Redirect:
    """`2> file`, `<<EOF`, `<<< word`, `{fd}>&1`. A here-document's text is `body`."""

    descriptor: str
    operator: str
    target: Word
    body: Word | None = None
    origin: TextMap | None = None
    delimiter: str = ""
    quoted: bool = False


@dataclass(slots=True, eq=False, repr=False)
class Simple:
    """Assignments, words and redirections of one command. After `declare` and the like, assignments are among the words."""

    assignments: list[Assignment]
    words: Sequence[Word | Assignment]
    redirects: list[Redirect]
    start: int
    end: int
    declares: bool = False
    """Whether assignments are among the words."""


@dataclass(slots=True, eq=False, repr=False)
class Compound:
    """What all compound commands share: their position, and the redirections after them."""

    start: int = field(default=0, kw_only=True)
    end: int = field(default=0, kw_only=True)
    redirects: list[Redirect] = field(default_factory=list, kw_only=True)


@dataclass(slots=True, eq=False, repr=False)
class Block(Compound):
    """`{ ..; }` or `( .. )`."""

    body: Script
    subshell: bool = field(kw_only=True)


@dataclass(slots=True, eq=False, repr=False)
class If(Compound):
    """`if`, its `elif`s and `else`: conditions with what they lead to."""

    branches: list[tuple[Script, Script]]
    otherwise: Script | None


@dataclass(slots=True, eq=False, repr=False)
class While(Compound):
    """`while` or `until`."""

    condition: Script
    body: Script
    until: bool = field(kw_only=True)


@dataclass(slots=True, eq=False, repr=False)
class For(Compound):
    """`for` or `select` over words; `words` is None for the positional parameters."""

    name: str
    words: list[Word] | None
    body: Script
    select: bool = field(kw_only=True)


@dataclass(slots=True, eq=False, repr=False)
class ArithmeticFor(Compound):
    """`for ((a; b; c))`."""

    parts: list[Part]
    body: Script


@dataclass(slots=True, eq=False, repr=False)
class Clause:
    """One arm of a `case`."""

    patterns: list[Word]
    body: Script
    terminator: Choice[";;", ";&", ";;&", ""]


@dataclass(slots=True, eq=False, repr=False)
class Case(Compound):
    """`case word in pattern) .. ;; esac`."""

    subject: Word
    clauses: list[Clause]


@dataclass(slots=True, eq=False, repr=False)
class ArithmeticCommand(Compound):
    """`((..))`."""

    parts: list[Part]


@dataclass(slots=True, eq=False, repr=False)
class Condition(Compound):
    """`[[ .. ]]`: its words and operators in order; operators are words of one literal."""

    words: list[Word]


@dataclass(slots=True, eq=False, repr=False)
class Function(Compound):
    """The definition of a function."""

    name: Word
    body: Command


@dataclass(slots=True, eq=False, repr=False)
class Coprocess(Compound):
    """`coproc NAME command`."""

    name: str
    body: Command


Command = Simple | Compound


@dataclass(slots=True, eq=False, repr=False)
class Pipeline:
    """Commands joined by `|`; without commands for a lone `!` or `time`."""

    commands: list[Command]
    negated: bool
    timed: bool


@dataclass(slots=True, eq=False, repr=False)
class AndOr:
    """Pipelines joined by `&&` and `||`; the first has the operator ``."""

    items: list[tuple[str, Pipeline]]
    background: bool = False


@dataclass(slots=True, eq=False, repr=False)
class Script:
    """Lists, one after the other."""

    items: list[AndOr]


@dataclass(slots=True, eq=False, repr=False)
class TextMap:
    """Maps positions in a derived text to the text around it: the pieces that were kept, and where they were."""

    kept: list[tuple[int, int]]
    """(position in the derived text, position in the source), ascending."""

    def source(self, place: int) -> int:
        derived, source = self.kept[max(0, bisect_right(self.kept, place, key=itemgetter(0)) - 1)]
        return source + place - derived


@dataclass(slots=True, eq=False, repr=False)
class SourceMap:
    """A text that is being walked, and how its positions map to the text around it."""

    parent: SourceMap | None = None
    whole: Span = (0, 0)
    """The part of the parent's text that this one was made of."""
    shift: int | None = None
    """How far its positions are shifted in the parent's text; None when they have no exact counterpart there."""
    text_map: TextMap | None = None

    def span(self, start: int, end: int) -> Span:
        """A part of this text as a part of the judged text."""
        if self.text_map is not None:
            start, end = self.text_map.source(start), self.text_map.source(max(start, end - 1)) + 1
        if self.parent is None:
            return start, end
        if self.shift is None:
            return self.parent.span(*self.whole)
        return self.parent.span(start + self.shift, end + self.shift)

    def nested(self, word: SourceWord | None, whole: Span, text_map: TextMap | None) -> SourceMap:
        """The source map of a text that a word of this one holds."""
        if word is None:
            return SourceMap(self, whole=whole, text_map=text_map)
        shift = _verbatim(word)
        return SourceMap(self, whole=(word.start, word.end), shift=shift, text_map=text_map)


def _verbatim(word: SourceWord) -> int | None:
    """Where the characters of a word are verbatim; None when quoting or an expansion changed them."""
    if len(word.parts) != 1:
        return None
    part = word.parts[0]
    if isinstance(part, Literal):
        return word.start
    if isinstance(part, DoubleQuoted) and len(part.parts) == 1:
        part = part.parts[0]
    if isinstance(part, Quoted) and part.start >= 0:
        return part.start
    return None
