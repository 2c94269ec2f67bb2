"""The tree of a shell script: words made of parts, simple commands, pipelines, lists and compound commands.

Positions (`start`, `end`) count characters of the text that was parsed. A backquoted script was unescaped before it was
parsed, and its positions count in that text: its node has the map back (`origin`).
"""

from __future__ import annotations

from typing import Literal as Choice


class ShellSyntaxError(Exception):
    """The text is not a shell script that can be parsed."""

    def __init__(self, why: str, position: int = 0) -> None:
        super().__init__(f"{why} at character {position + 1}")
        self.why = why
        self.position = position


class TooLarge(ShellSyntaxError):
    """The text is longer, more deeply nested or more complex than is followed."""


class Node:
    """Anything in the tree."""

    __slots__: tuple[str, ...] = ()

    def __repr__(self) -> str:
        fields = ", ".join(repr(getattr(self, name)) for name in self.__slots__)
        return f"{type(self).__name__}({fields})"


class Literal(Node):
    """Text outside quotes: open to tilde, brace and file name expansion."""

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text


class Quoted(Node):
    """Text that stands for itself: from `'..'`, `$'..'` (decoded), `\\c`, or inside double quotes."""

    __slots__ = ("start", "text")

    def __init__(self, text: str, start: int = -1) -> None:
        self.text = text
        self.start = start
        """Where its characters are verbatim in the source; -1 when they are not."""


class DoubleQuoted(Node):
    """`".."`: what is expanded inside is not split into fields."""

    __slots__ = ("parts",)

    def __init__(self, parts: list[Part]) -> None:
        self.parts = parts


class Parameter(Node):
    """`$x`, `${x}`, `${x:-word}`, `${x//a/b}`, `${!x}`, `${#x}`.

    `operator` is as written (`:-`, `##`, `/`, `//`, `/#`, `:` for a substring, `@` with the letter in `argument`), ``
    for none, `length` for `${#x}`, `prefix` for `${!x*}`.
    """

    __slots__ = ("argument", "index", "indirect", "name", "operator", "second")

    def __init__(
        self,
        name: str,
        index: Word | None = None,
        operator: str = "",
        argument: Word | None = None,
        second: Word | None = None,
        indirect: bool = False,
    ) -> None:
        self.name = name
        self.index = index
        self.operator = operator
        self.argument = argument
        self.second = second
        self.indirect = indirect


class Substitution(Node):
    """`$(..)`, `` `..` `` or `${ ..; }`."""

    __slots__ = ("origin", "script")

    def __init__(self, script: Script, origin: TextMap | None = None) -> None:
        self.script = script
        self.origin = origin


class ProcessSubstitution(Node):
    """`<(..)` or `>(..)`."""

    __slots__ = ("direction", "script")

    def __init__(self, script: Script, direction: str) -> None:
        self.script = script
        self.direction = direction


class Arithmetic(Node):
    """`$((..))` or `$[..]`: its text, with the expansions in it as parts."""

    __slots__ = ("parts",)

    def __init__(self, parts: list[Part]) -> None:
        self.parts = parts


Part = Literal | Quoted | DoubleQuoted | Parameter | Substitution | ProcessSubstitution | Arithmetic


class Word(Node):
    """Adjacent parts."""

    __slots__ = ("_parts", "end", "plain", "start")

    def __init__(self, parts: list[Part] | None, start: int = 0, end: int = 0, plain: str = "") -> None:
        self._parts = parts
        self.start = start
        self.end = end
        self.plain = plain
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


class Assignment(Node):
    """`name=value`, `name+=value`, `name[index]=value`, `name=(..)`."""

    __slots__ = ("appends", "elements", "end", "index", "name", "start", "value")

    def __init__(
        self,
        name: str,
        index: Word | None,
        appends: bool,
        value: Word,
        elements: list[tuple[Word | None, Word]] | None = None,
    ) -> None:
        self.name = name
        self.index = index
        self.appends = appends
        self.value = value
        self.elements = elements
        """The elements of an array, each with its index if one is written; None for a plain value."""
        self.start = self.end = 0


class Redirect(Node):
    """`2> file`, `<<EOF`, `<<< word`, `{fd}>&1`. A here-document's text is `body`."""

    __slots__ = ("body", "delimiter", "descriptor", "operator", "origin", "quoted", "target")

    def __init__(self, descriptor: str, operator: str, target: Word) -> None:
        self.descriptor = descriptor
        self.operator = operator
        self.target = target
        self.body: Word | None = None
        self.origin: TextMap | None = None
        self.delimiter = ""
        self.quoted = False


class Simple(Node):
    """Assignments, words and redirections of one command. After `declare` and the like, assignments are among the words."""

    __slots__ = ("assignments", "declares", "end", "redirects", "start", "words")

    def __init__(
        self,
        assignments: list[Assignment],
        words: list[Word | Assignment],
        redirects: list[Redirect],
        start: int,
        end: int,
    ) -> None:
        self.assignments = assignments
        self.words = words
        self.redirects = redirects
        self.start = start
        self.end = end
        self.declares = False
        """Whether assignments are among the words."""


class Compound(Node):
    """What all compound commands share: their position, and the redirections after them."""

    __slots__ = ("end", "redirects", "start")

    def __init__(self) -> None:
        self.start = self.end = 0
        self.redirects: list[Redirect] = []


class Block(Compound):
    """`{ ..; }` or `( .. )`."""

    __slots__ = ("body", "subshell")

    def __init__(self, body: Script, *, subshell: bool) -> None:
        super().__init__()
        self.body = body
        self.subshell = subshell


class If(Compound):
    """`if`, its `elif`s and `else`: conditions with what they lead to."""

    __slots__ = ("branches", "otherwise")

    def __init__(self, branches: list[tuple[Script, Script]], otherwise: Script | None) -> None:
        super().__init__()
        self.branches = branches
        self.otherwise = otherwise


class While(Compound):
    """`while` or `until`."""

    __slots__ = ("body", "condition", "until")

    def __init__(self, condition: Script, body: Script, *, until: bool) -> None:
        super().__init__()
        self.condition = condition
        self.body = body
        self.until = until


class For(Compound):
    """`for` or `select` over words; `words` is None for the positional parameters."""

    __slots__ = ("body", "name", "select", "words")

    def __init__(self, name: str, words: list[Word] | None, body: Script, *, select: bool) -> None:
        super().__init__()
        self.name = name
        self.words = words
        self.body = body
        self.select = select


class ArithmeticFor(Compound):
    """`for ((a; b; c))`."""

    __slots__ = ("body", "parts")

    def __init__(self, parts: list[Part], body: Script) -> None:
        super().__init__()
        self.parts = parts
        self.body = body


class Clause(Node):
    """One arm of a `case`."""

    __slots__ = ("body", "patterns", "terminator")

    def __init__(self, patterns: list[Word], body: Script, terminator: Choice[";;", ";&", ";;&", ""]) -> None:
        self.patterns = patterns
        self.body = body
        self.terminator = terminator


class Case(Compound):
    """`case word in pattern) .. ;; esac`."""

    __slots__ = ("clauses", "subject")

    def __init__(self, subject: Word, clauses: list[Clause]) -> None:
        super().__init__()
        self.subject = subject
        self.clauses = clauses


class ArithmeticCommand(Compound):
    """`((..))`."""

    __slots__ = ("parts",)

    def __init__(self, parts: list[Part]) -> None:
        super().__init__()
        self.parts = parts


class Condition(Compound):
    """`[[ .. ]]`: its words and operators in order; operators are words of one literal."""

    __slots__ = ("words",)

    def __init__(self, words: list[Word]) -> None:
        super().__init__()
        self.words = words


class Function(Compound):
    """The definition of a function."""

    __slots__ = ("body", "name")

    def __init__(self, name: Word, body: Command) -> None:
        super().__init__()
        self.name = name
        self.body = body


class Coprocess(Compound):
    """`coproc NAME command`."""

    __slots__ = ("body", "name")

    def __init__(self, name: str, body: Command) -> None:
        super().__init__()
        self.name = name
        self.body = body


Command = Simple | Compound


class Pipeline(Node):
    """Commands joined by `|`; without commands for a lone `!` or `time`."""

    __slots__ = ("commands", "negated", "timed")

    def __init__(self, commands: list[Command], negated: bool, timed: bool) -> None:
        self.commands = commands
        self.negated = negated
        self.timed = timed


class AndOr(Node):
    """Pipelines joined by `&&` and `||`; the first has the operator ``."""

    __slots__ = ("background", "items")

    def __init__(self, items: list[tuple[str, Pipeline]]) -> None:
        self.items = items
        self.background = False


class Script(Node):
    """Lists, one after the other."""

    __slots__ = ("items",)

    def __init__(self, items: list[AndOr]) -> None:
        self.items = items


class TextMap:
    """Maps positions in a derived text to the text around it: the pieces that were kept, and where they were."""

    __slots__ = ("kept",)

    def __init__(self, kept: list[tuple[int, int]]) -> None:
        self.kept = kept
        """(position in the derived text, position in the source), ascending."""

    def source(self, place: int) -> int:
        low, high = 0, len(self.kept)
        while high - low > 1:
            middle = (low + high) // 2
            if self.kept[middle][0] <= place:
                low = middle
            else:
                high = middle
        derived, source = self.kept[low]
        return source + place - derived
