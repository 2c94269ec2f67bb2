"""Parse compound commands: blocks, conditions, loops, cases, tests, functions."""

from __future__ import annotations

from collections.abc import Callable

from . import lexical
from .commands import SimpleParser
from .syntax import (
    ArithmeticCommand,
    ArithmeticFor,
    Block,
    Case,
    Clause,
    Command,
    Compound,
    Condition,
    Coprocess,
    For,
    Function,
    If,
    Literal,
    Part,
    Script,
    Simple,
    While,
    Word,
)
from .words import merged

_TEST_OPERATORS = ("&&", "||", "(", ")", "<", ">")


class CompoundParser(SimpleParser):
    """Parses compound commands."""

    def command(self) -> Command:
        if self.continued:
            self.join_token()
        start = self.position
        if self.at("("):
            return self._finished(self._parenthesis(), start)
        word = self.reserved(lexical.OPENERS)
        if word:
            self.enter()
            self.position += len(word)
            reader: Callable[[CompoundParser, str], Command] = _READERS[word]
            node = reader(self, word)
            self.leave()
            return node if isinstance(node, Simple | Function) else self._finished(node, start)
        closer = self.reserved(lexical.CLOSERS)
        if closer:
            raise self.fail(f"unexpected {closer}")
        return self.simple()

    def _finished(self, node: Compound, start: int) -> Compound:
        node.redirects = self.redirects()
        node.start, node.end = start, self.position
        return node

    def _parenthesis(self) -> Compound:
        if self.at("(("):
            parts = self.arithmetic(self.position + 2)
            if parts is not None:
                return ArithmeticCommand(parts)
        self.position += 1
        return Block(self.until_parenthesis(), subshell=True)

    def _body(self, what: str, ends: tuple[str, ...]) -> tuple[Script, str]:
        """A script up to one of these words, which is consumed and given back."""
        script = self.script("", ends)
        end = self.reserved(ends)
        if not end:
            raise self.fail(f"unterminated {what}")
        if not script.items:
            raise self.fail(f"empty {what}")
        self.position += len(end)
        return script, end

    def _group(self, _: str) -> Block:
        return Block(self._body("{", ("}",))[0], subshell=False)

    def _if(self, _: str) -> If:
        branches: list[tuple[Script, Script]] = []
        while True:
            condition, _end = self._body("if", ("then",))
            body, end = self._body("then", ("elif", "else", "fi"))
            branches.append((condition, body))
            if end == "else":
                return If(branches, self._body("else", ("fi",))[0])
            if end == "fi":
                return If(branches, None)

    def _while(self, word: str) -> While:
        condition = self._body(word, ("do",))[0]
        return While(condition, self._body("do", ("done",))[0], until=word == "until")

    def _for(self, word: str) -> Compound:
        self.blanks()
        if self.at("((") and word == "for":
            parts = self.arithmetic(self.position + 2)
            if parts is None:
                raise self.fail("expected ))")
            if self.blanks() == ";":
                self.position += 1
            return ArithmeticFor(parts, self._loop_body())
        if self.continued:
            self.join_token()
        match = lexical.NAME.match(self.text, self.position)
        if match is None:
            raise self.fail("expected a name")
        self.position = match.end()
        self.newlines()
        words = self._loop_words() if self.reserved(("in",)) else None
        if self.blanks() == ";":
            self.position += 1
        return For(match.group(), words, self._loop_body(), select=word == "select")

    def _loop_words(self) -> list[Word]:
        self.position += len("in")
        words: list[Word] = []
        while True:
            char = self.blanks()
            if not char or char in ";\n&|)":
                return words
            words.append(self._argument())

    def _loop_body(self) -> Script:
        self.newlines()
        if self.reserved(("{",)):
            self.position += 1
            return self._body("{", ("}",))[0]
        self.expect("do")
        return self._body("do", ("done",))[0]

    def _case(self, _: str) -> Case:
        self.blanks()
        subject = self._argument()
        self.expect("in")
        clauses: list[Clause] = []
        while True:
            self.newlines()
            if self.reserved(("esac",)):
                self.position += len("esac")
                return Case(subject, clauses)
            clauses.append(self._clause())

    def _clause(self) -> Clause:
        if self.at("("):
            self.position += 1
        patterns: list[Word] = []
        while True:
            self.blanks()
            patterns.append(self._argument())
            char = self.blanks()
            self.position += 1
            if char == ")":
                break
            if char != "|":
                raise self.fail("expected )")
        body = self.script("", ("esac", ";;"))
        for terminator in (";;&", ";;", ";&"):
            if self.at(terminator):
                self.position += len(terminator)
                return Clause(patterns, body, terminator)
        if not self.reserved(("esac",)):
            raise self.fail("expected ;; or esac")
        return Clause(patterns, body, "")

    def _condition(self, _: str) -> Condition:
        words: list[Word] = []
        matching = False
        while True:
            self.newlines()
            if self.position >= self.size:
                raise self.fail("unterminated [[")
            if self.reserved(("]]",)):
                self.position += 2
                return Condition(words)
            operator = next((text for text in _TEST_OPERATORS if self.at(text)), "")
            if matching:
                words.append(self._regular_expression())
                matching = False
            elif operator and not self.at("<(") and not self.at(">("):
                words.append(Word([Literal(operator)], self.position, self.position + len(operator)))
                self.position += len(operator)
            else:
                words.append(self._argument())
                matching = words[-1].literal() == "=~"

    def _regular_expression(self) -> Word:
        parts: list[Part] = []
        level, start = 0, self.position
        while self.position < self.size:
            char = self.text[self.position]
            if not level and (char in " \t\n)" or self.at("&&")):
                break
            if not level and char in "&;":
                raise self.fail(f"unexpected {char!r} in a pattern")
            level += (char == "(") - (char == ")")
            match = lexical.LITERAL.match(self.text, self.position)
            if match:
                parts.append(Literal(match.group()))
                self.position = match.end()
            elif not self.special(parts):
                parts.append(Literal(char))
                self.position += 1
        if not parts:
            raise self.fail("expected a pattern")
        return Word(merged(parts), start, self.position)

    def function(self, name: Word) -> Function:
        match = lexical.EMPTY_PARENTHESES.match(self.text, self.position)
        if match is None:
            raise self.fail("expected )")
        self.position = match.end()
        return self._function_body(name)

    def _function(self, _: str) -> Function:
        self.blanks()
        name = self._argument()
        self.blanks()
        match = lexical.EMPTY_PARENTHESES.match(self.text, self.position)
        if match:
            self.position = match.end()
        return self._function_body(name)

    def _function_body(self, name: Word) -> Function:
        self.newlines()
        self.enter()
        if self.position >= self.size:
            raise self.fail("expected a function's body")
        body = self.command()
        if isinstance(body, Simple | Function):
            raise self.fail("expected a function's body")
        self.leave()
        node = Function(name, body)
        node.start, node.end = name.start, self.position
        return node

    def _coprocess(self, _: str) -> Coprocess:
        self.blanks()
        if self.continued:
            self.join_token()
        match, name = lexical.NAME.match(self.text, self.position), "COPROC"
        if match and not self.reserved(lexical.OPENERS):
            start, self.position = self.position, match.end()
            if self.blanks() == "(" or self.reserved(lexical.OPENERS):
                name = match.group()
            else:
                self.position = start
        return Coprocess(name, self.command())


_READERS: dict[str, Callable[[CompoundParser, str], Command]] = {
    "{": CompoundParser._group,
    "if": CompoundParser._if,
    "while": CompoundParser._while,
    "until": CompoundParser._while,
    "for": CompoundParser._for,
    "select": CompoundParser._for,
    "case": CompoundParser._case,
    "[[": CompoundParser._condition,
    "function": CompoundParser._function,
    "coproc": CompoundParser._coprocess,
}
