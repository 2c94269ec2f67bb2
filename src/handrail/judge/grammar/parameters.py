"""Parse `${..}`, indexes and arithmetic."""

from __future__ import annotations

import re

from . import lexical
from .scanner import MAX_PARTS, Budget
from .syntax import Literal, Parameter, Part, Quoted, ShellSyntaxError, Substitution, TooLarge, Word
from .words import WordParser, merged

_ENDS_COMMAND = re.compile(r"[;&|<>\n]")
_ENDS_EXPANSION = re.compile(r"\}")
_PLAIN_HASH = re.compile(r"#(?:[-}=?+%/:#]|\Z)")
_LENGTH_OF_SPECIAL = re.compile(r"#[#@*?$!\-]\}")
_PREFIX_END = re.compile(r"[*@]\}")


class ParameterParser(WordParser):
    """Parses parameters and arithmetic."""

    def __init__(self, text: str, depth: int = 0, budget: Budget | None = None) -> None:
        super().__init__(text, depth, budget)
        self._no_arithmetic: set[int] = set()
        """Where `((` was found to be two parentheses: nobody looks again, so nesting stays cheap."""
        self._no_end_ahead = False

    def arithmetic(self, start: int) -> list[Part] | None:
        begin, waiting = self.position, len(self.waiting)
        if self._no_end_ahead or begin in self._no_arithmetic:
            return None
        self.position = start
        self.enter()
        try:
            parts = self._arithmetic_parts()
        except TooLarge:
            raise
        except ShellSyntaxError:
            parts = None
        finally:
            self.leave()
        if parts is None:
            self._no_arithmetic.add(begin)
            self.position = begin
            del self.waiting[waiting:]
        return parts

    def _arithmetic_parts(self) -> list[Part] | None:
        parts: list[Part] = []
        level = 0
        while True:
            match = lexical.IN_ARITHMETIC.match(self.text, self.position)
            if match:
                parts.append(Literal(match.group()))
                self.position = match.end()
            if self.position >= self.size:
                self._no_end_ahead = True
                return None
            if len(parts) > MAX_PARTS:
                raise TooLarge("arithmetic of more parts than is judged", self.position)
            char = self.text[self.position]
            if char == ")" and not level:
                if not self.at("))"):
                    return None
                self.position += 2
                return merged(parts)
            if char in "()":
                level += 1 if char == "(" else -1
                parts.append(Literal(char))
                self.position += 1
            else:
                self.special(parts)

    def index(self, forbidden: re.Pattern[str] | None = _ENDS_COMMAND) -> list[Part]:
        """What stands in brackets, the last of which is consumed.

        Whether bash takes `a[x; y]` for an index or for the end of a command depends on what came before, and `}` ends an
        expansion whatever is open in it: both are refused, lest commands hide there.
        """
        parts: list[Part] = []
        level = 0
        while True:
            if self.position >= self.size:
                raise self.fail("unterminated [")
            if len(parts) > MAX_PARTS:
                raise TooLarge("an index of more parts than is judged", self.position)
            char = self.text[self.position]
            if char == "]" and not level:
                self.position += 1
                return merged(parts)
            level += (char == "[") - (char == "]")
            match = lexical.IN_INDEX.match(self.text, self.position)
            if forbidden is not None and forbidden.search(match.group() if match else char):
                raise self.fail("an index with what may end it")
            if match:
                parts.append(Literal(match.group()))
                self.position = match.end()
            elif char in "[]" or not self.special(parts):
                parts.append(Literal(char))
                self.position += 1

    def braced(self, in_double: bool) -> Part:
        self.enter()
        self.position += 2
        if self.peek() in (" ", "\t", "\n", "|"):
            return self._function_substitution()
        length, indirect = self._prefix()
        match = lexical.IN_BRACES.match(self.text, self.position)
        if match is None:
            raise self.fail("bad substitution")
        name, index = match.group(), None
        self.position = match.end()
        if self.at("["):
            start = self.position = self.position + 1
            index = Word(self.index(_ENDS_EXPANSION), start, self.position - 1)
        part = Parameter(name, index, "length" if length else "", None, None, indirect)
        if indirect and _PREFIX_END.match(self.text, self.position):
            part.operator = "prefix"
            self.position += 1
        elif not self.at("}"):
            self._operation(part, in_double)
        if not self.at("}"):
            raise self.fail("expected }")
        self.position += 1
        self.leave()
        return part

    def _function_substitution(self) -> Substitution:
        """`${ command; }`, which newer shells know."""
        if self.peek() == "|":
            self.position += 1
        outer, self.waiting = self.waiting, []  # the text of a document outside begins after the line that ends it
        script = self.script("}")
        if not self.at("}"):
            raise self.fail("expected }")
        if self.waiting:
            raise self.fail("a here-document without its text")
        self.waiting = outer
        self.position += 1
        self.leave()
        return Substitution(script)

    def _prefix(self) -> tuple[bool, bool]:
        """Whether `#` (the length of) or `!` (the one that it names) comes before the name; consumed."""
        char = self.peek()
        if char == "#":
            special = _LENGTH_OF_SPECIAL.match(self.text, self.position)
            length = bool(special) or not _PLAIN_HASH.match(self.text, self.position)
            self.position += length
            return length, False
        following = self.text[self.position + 1 : self.position + 2]
        indirect = char == "!" and following not in ("}", ":", "-", "=", "?", "+", "#", "%", "/", "")
        self.position += indirect
        return False, indirect

    def _operation(self, part: Parameter, in_double: bool) -> None:
        match = lexical.PARAMETER_OPERATOR.match(self.text, self.position)
        if match is None or part.operator == "length":
            raise self.fail("bad substitution")
        operator = match.group()
        self.position = match.end()
        if operator[0] == "/":
            if operator == "/" and self.peek() in ("#", "%"):
                operator += self.peek()
                self.position += 1
            part.argument = self._operand(in_double, stop="/", pattern=True)
            if self.at("/"):
                self.position += 1
                part.second = self._operand(in_double, pattern=True)
        elif operator == ":":
            part.argument = self._operand(in_double, stop=":")
            if self.at(":"):
                self.position += 1
                part.second = self._operand(in_double)
        else:
            part.argument = self._operand(in_double, pattern=operator[0] in "#%^,@")
        part.operator = operator

    def _operand(self, in_double: bool, *, stop: str = "", pattern: bool = False) -> Word:
        """The word after an operator, up to `}` or `stop`. Quotes in a pattern are quotes, also inside double quotes."""
        parts: list[Part] = []
        start = self.position
        while True:
            if self.position >= self.size:
                raise self.fail("unterminated ${")
            if len(parts) > MAX_PARTS:
                raise TooLarge("a parameter of more parts than is judged", self.position)
            char = self.text[self.position]
            if char == "}" or (char == stop and (char != "/" or self.position > start)):
                return Word(merged(parts), start, self.position)
            match = lexical.IN_PARAMETER.match(self.text, self.position)
            if match:
                self._plain_operand(parts, match.group(), start, stop, in_double and not pattern)
            elif in_double and char == "'":
                self._single_quote_in_double(parts, pattern)
            elif (
                in_double
                and char == "\\"
                and not self.text.startswith(("$", "`", '"', "\\", "\n", "}"), self.position + 1)
            ):
                parts.append(Quoted(self.text[self.position : self.position + 2]))
                self.position += 2
            elif not self.special(parts):
                parts.append(Literal(char))
                self.position += 1

    def _plain_operand(self, parts: list[Part], text: str, start: int, stop: str, quoted: bool) -> None:
        if stop:
            cut = text.find(stop, 1 if stop == "/" and self.position == start else 0)
            text = text if cut < 0 else text[:cut]
        parts.append(Quoted(text) if quoted else Literal(text))
        self.position += len(text)

    def _single_quote_in_double(self, parts: list[Part], pattern: bool) -> None:
        """Bash pairs single quotes up even inside `"${x:-'..'}"`; there they stay, in a pattern they quote."""
        end = self.text.find("'", self.position + 1)
        if end < 0:
            raise self.fail("unterminated '")
        inside = self.text[self.position + 1 : end]
        if pattern:
            parts.append(Quoted(inside))
        else:
            parts += [Quoted("'"), *self.inside(inside).quoted_parts(lexical.IN_HERE, ""), Quoted("'")]
        self.position = end + 1
