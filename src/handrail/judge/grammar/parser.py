"""Parse a whole script: `parse(text)`. What cannot be read raises, and the one who asked has to ask a person.

One pass, nothing is run. No region is read more than twice, and nesting is bounded, so time grows with the text.
"""

from __future__ import annotations

from .compounds import CompoundParser
from .lexical import RESERVED
from .syntax import (
    AndOr,
    Command,
    Compound,
    Function,
    Literal,
    Pipeline,
    Redirect,
    Script,
    ShellSyntaxError,
    TextMap,
    Word,
)


class Parser(CompoundParser):
    """Parses scripts."""

    def whole(self) -> Script:
        script = self.script()
        if self.position < self.size:
            raise self.fail(f"unexpected {self.peek()!r}")
        return script

    def script(self, until: str = "", words: tuple[str, ...] = ()) -> Script:
        items: list[AndOr] = []
        while True:
            self.newlines()
            if self._ended(until, words):
                return Script(items)
            item = self._and_or()
            items.append(item)
            char = self.blanks()
            if char == "&":
                item.background = True
                self.position += 1
            elif char == ";":
                if self.text.startswith((";;", ";&"), self.position):
                    if ";;" in words:
                        return Script(items)
                    raise self.fail("unexpected ;;")
                self.position += 1
            elif not (char in ("", "\n") or char == until or self._closed_by_word(item, words)):
                raise self.fail(f"unexpected {char!r}")

    def _ended(self, until: str, words: tuple[str, ...]) -> bool:
        if self.position >= self.size or (until and self.at(until)):
            return True
        if not words:
            return False
        return (";;" in words and self.text.startswith((";;", ";&"), self.position)) or bool(self.reserved(words))

    def _closed_by_word(self, item: AndOr, words: tuple[str, ...]) -> bool:
        """`( .. ) done`: after a compound command a reserved word needs no separator."""
        return bool(words and self.reserved(words) and isinstance(item.items[-1][1].commands[-1], Compound))

    def _and_or(self) -> AndOr:
        items = [("", self._pipeline())]
        while True:
            self.blanks()
            if self.continued:
                self.join_token()
            operator = self.text[self.position : self.position + 2]
            if operator != "&&" and operator != "||":
                return AndOr(items)
            self.position += 2
            self.newlines()
            items.append((operator, self._pipeline()))

    def _pipeline(self) -> Pipeline:
        negated = timed = False
        first = self.lone_word()
        while (first is None or first in RESERVED) and (
            word := self.reserved(("!", "time")) or (self.at("!(") and "!")
        ):
            self.position += len(word)
            self.blanks()
            if word == "!":
                negated = not negated
            else:
                timed = True
                while self.reserved(("-p", "--")):
                    self.position += 2
                    self.blanks()
            if self.blanks() in ("", "\n", ";", "&", ")") and not self.at("&>"):
                return Pipeline([], negated, timed)
        commands = [self._command()]
        while True:
            if self.blanks() != "|" or self.at("||"):
                return Pipeline(commands, negated, timed)
            if self.at("|&"):
                last = commands[-1]
                joined = Redirect("2", ">&", Word([Literal("1")], self.position, self.position))
                (last.body if isinstance(last, Function) else last).redirects.append(joined)
                self.position += 1
            self.position += 1
            self.newlines()
            commands.append(self._command())

    def _command(self) -> Command:
        """Most commands begin with a plain word that is not reserved."""
        word = self.lone_word()
        return self.command() if word is None or word in RESERVED else self.simple()


def parse(text: str, depth: int = 0) -> tuple[Script, TextMap | None]:
    """The tree of a script; and, where joined lines were taken out of it, how to get back to the text's places."""
    if "\0" in text:
        raise ShellSyntaxError("a NUL character", text.index("\0"))
    parser = Parser(text, depth)
    script = parser.whole()
    return script, _joined(parser.cuts)


def _joined(cuts: list[int]) -> TextMap | None:
    if not cuts:
        return None
    kept = [(0, 0)]
    for count, cut in enumerate(sorted(cuts), 1):
        kept.append((cut, cut + 2 * count))
    return TextMap(kept)
