"""Parse words: quotes, escapes, and what a dollar or a backquote begins."""

from __future__ import annotations

import re
from typing import Self

from . import lexical
from .scanner import MAX_PARTS, Scanner
from .syntax import (
    Arithmetic,
    DoubleQuoted,
    Literal,
    Parameter,
    Part,
    ProcessSubstitution,
    Quoted,
    Script,
    Substitution,
    TextMap,
    TooLarge,
    Word,
)


class WordParser(Scanner):
    """Parses words."""

    def inside(self, text: str) -> Self:
        """A parser of a text that was taken out of this one, under the same limits."""
        return type(self)(text, self.depth, self.budget)

    def whole(self) -> Script:
        """The whole text as a script."""
        raise NotImplementedError

    def braced(self, in_double: bool) -> Part:
        """`${..}`, from its dollar."""
        raise NotImplementedError

    def arithmetic(self, start: int) -> list[Part] | None:
        """The inside of `((..))` from `start`, or None when it turns out to be two parentheses."""
        raise NotImplementedError

    def index(self, forbidden: re.Pattern[str] | None = ...) -> list[Part]:
        """Everything up to the matching `]`, which is consumed."""
        raise NotImplementedError

    def word(self) -> Word | None:
        text, start = self.text, self.position
        parts: list[Part] = []
        while self.position < self.size:
            match = lexical.LITERAL.match(text, self.position)
            if match is None:
                if not self.special(parts):
                    break
                text = self.text  # joined lines may have been taken out of it
                if len(parts) > MAX_PARTS:
                    raise TooLarge("a word of more parts than are judged", self.position)
                continue
            literal = match.group()
            self.position = match.end()
            parts.append(Literal(literal))
            if literal[-1] in "@?*+!" and self.at("("):
                self._pattern_list(parts)
                text = self.text
        return Word(merged(parts), start, self.position) if parts or self.position > start else None

    def special(self, parts: list[Part]) -> bool:
        """A quote or an expansion here, outside quotes; False when there is none."""
        char = self.text[self.position]
        if char == "\\":
            following = self.text[self.position + 1 : self.position + 2]
            if following != "\n":
                parts.append(Quoted(following or "\\", self.position + 1 if following else -1))
            self.position += 2 if following else 1
        elif char == "'":
            end = self.text.find("'", self.position + 1)
            if end < 0:
                raise self.fail("unterminated '")
            parts.append(Quoted(self.text[self.position + 1 : end], self.position + 1))
            self.position = end + 1
        elif char == '"':
            parts.append(self.double())
        elif char == "$":
            parts.append(self.dollar(in_double=False))
        elif char == "`":
            parts.append(self.backquote(in_double=False))
        elif char in "<>" and self.text.startswith("(", self.position + 1):
            self.position += 2
            parts.append(ProcessSubstitution(self.substituted(), char))
        else:
            return False
        return True

    def _pattern_list(self, parts: list[Part]) -> None:
        """`@(a|b)` and its kin, kept as they are written."""
        self.enter()
        level = 0
        while True:
            if self.position >= self.size:
                raise self.fail("unterminated pattern")
            char = self.text[self.position]
            level += (char == "(") - (char == ")")
            match = lexical.LITERAL.match(self.text, self.position)
            if match:
                parts.append(Literal(match.group()))
                self.position = match.end()
            elif char in "()|;&<> \t\n" and not (char in "<>" and self.text.startswith("(", self.position + 1)):
                parts.append(Literal(char))
                self.position += 1
            else:
                self.special(parts)
            if level == 0:
                break
        self.leave()

    def double(self) -> DoubleQuoted:
        self.position += 1
        self.enter()
        parts = self.quoted_parts(lexical.IN_DOUBLE, '"')
        self.leave()
        return DoubleQuoted(parts)

    def quoted_parts(self, literal: re.Pattern[str], end: str) -> list[Part]:
        """The inside of `".."` up to its end, which is consumed; with no `end`, a here-document's whole text."""
        parts: list[Part] = []
        while True:
            match = literal.match(self.text, self.position)
            if match:
                parts.append(Quoted(match.group(), self.position))
                self.position = match.end()
            if self.position >= self.size:
                if end:
                    raise self.fail(f"unterminated {end}")
                return parts
            char = self.text[self.position]
            if char == end:
                self.position += 1
                return parts
            if len(parts) > MAX_PARTS:
                raise TooLarge("a text of more parts than are judged", self.position)
            if char == "\\":
                self._escape_in_quotes(parts, end)
            elif char == "$":
                parts.append(self.dollar(in_double=True))
            elif char == "`":
                parts.append(self.backquote(in_double=bool(end)))
            else:
                parts.append(Quoted(char, self.position))
                self.position += 1

    def _escape_in_quotes(self, parts: list[Part], end: str) -> None:
        following = self.text[self.position + 1 : self.position + 2]
        if following in ("$", "`", "\\") or (following == '"' and end == '"'):
            parts.append(Quoted(following, self.position + 1))
        elif following != "\n":
            parts.append(Quoted("\\" + following, self.position))
        self.position = min(self.position + 2, self.size)

    def backquote(self, *, in_double: bool) -> Substitution:
        text, start = self.text, self.position + 1
        pieces, kept, length, last, place = [], [(0, start)], 0, start, start
        escapable = '`\\$\n"' if in_double else "`\\$\n"
        stop = re.compile(r"[`\\]")
        while True:
            found = stop.search(text, place)
            if found is None:
                raise self.fail("unterminated `")
            place = found.start()
            if text[place] == "`":
                break
            following = text[place + 1 : place + 2]
            if following in tuple(escapable):
                pieces.append(text[last:place])
                length += place - last
                last = place + 1 + (following == "\n")  # gone, even inside single quotes and comments
                kept.append((length, last))
            place += 2
        pieces.append(text[last:place])
        self.position = place + 1
        self.enter()
        self.count_command()
        inner = self.inside("".join(pieces))
        script = inner.whole()
        self.leave()
        return Substitution(script, TextMap(kept))

    def until_parenthesis(self) -> Script:
        """A script up to its closing parenthesis, from just after the opening one."""
        self.enter()
        script = self.script(")")
        if not self.at(")"):
            raise self.fail("expected )")
        self.position += 1
        self.leave()
        return script

    def substituted(self) -> Script:
        """The script of `$(..)` and its kin. A here-document that it asks for must end inside."""
        outer, self.waiting = self.waiting, []
        script = self.until_parenthesis()
        if self.waiting:
            raise self.fail("a here-document without its text")
        self.waiting = outer
        return script

    def dollar(self, *, in_double: bool) -> Part:
        if self.continued:
            self.join_token()
        text, start = self.text, self.position
        following = text[start + 1 : start + 2]
        if following == "(":
            if text.startswith("((", start + 1):
                inside = self.arithmetic(start + 3)
                if inside is not None:
                    return Arithmetic(inside)
            self.position = start + 2
            return Substitution(self.substituted())
        if following == "{":
            return self.braced(in_double)
        if following == "[":
            self.position += 2
            self.enter()
            inside = self.index(None)
            self.leave()
            return Arithmetic(inside)
        if following == "'" and not in_double:
            return self._decoded_quote()
        if following == '"' and not in_double:
            self.position += 1
            return self.double()
        match = lexical.AFTER_DOLLAR.match(text, start + 1)
        if match:
            self.position = match.end()
            return Parameter(match.group())
        self.position += 1
        return Quoted("$", start) if in_double else Literal("$")

    def _decoded_quote(self) -> Quoted:
        start = place = self.position + 2
        stop = re.compile(r"['\\]")
        while True:
            found = stop.search(self.text, place)
            if found is None:
                raise self.fail("unterminated $'")
            place = found.start()
            if self.text[place] == "'":
                break
            place += 2
        self.position = place + 1
        return Quoted(lexical.decode_escapes(self.text[start:place], dollar=True))


def merged(parts: list[Part]) -> list[Part]:
    """The same with neighbouring plain parts of one kind joined."""
    if len(parts) < 2:
        return parts
    out: list[Part] = []
    run: list[str] = []
    for part in parts:
        last = out[-1] if out else None
        if isinstance(part, Literal | Quoted) and type(last) is type(part):
            if not run:
                run.append(last.text)
            run.append(part.text)
            continue
        if run:
            _close(out, run)
        out.append(part)
    if run:
        _close(out, run)
    return out


def _close(parts: list[Part], run: list[str]) -> None:
    """Give the last part the text of the run that it began."""
    text = "".join(run)
    parts[-1] = Literal(text) if isinstance(parts[-1], Literal) else Quoted(text)
    run.clear()
