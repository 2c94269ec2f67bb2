"""Move over the text of a script: blanks, comments, newlines, reserved words, and the limits."""

from __future__ import annotations

from . import lexical
from .syntax import Redirect, Script, ShellSyntaxError, TooLarge

MAX_DEPTH = 48
MAX_COMMANDS = 20_000
MAX_WORDS = 100_000
MAX_PARTS = 20_000
MAX_HERE_DOCUMENTS = 1_000
MAX_CUTS = 500


class Budget:
    """What the parsers of one text may still use up together."""

    __slots__ = ("commands", "cuts", "documents")

    def __init__(self) -> None:
        self.commands = MAX_COMMANDS
        self.documents = MAX_HERE_DOCUMENTS
        self.cuts = MAX_CUTS


class Scanner:
    """A place in a text, and what has been opened before it."""

    def __init__(self, text: str, depth: int = 0, budget: Budget | None = None) -> None:
        self.text = text
        self.size = len(text)
        self.position = 0
        self.depth = depth
        self.budget = Budget() if budget is None else budget
        self.waiting: list[Redirect] = []
        """Here-documents whose text begins after the next newline."""
        self.continued = "\\\n" in text
        self.cuts: list[int] = []
        """Where a backslash and newline inside a token were taken out, in places of the text as it is now."""
        self._peeked: tuple[int, str | None] = (-1, None)

    def script(self, until: str = "", words: tuple[str, ...] = ()) -> Script:
        """Lists up to a closing character or one of the reserved words; neither is consumed."""
        raise NotImplementedError

    def read_document(self, redirect: Redirect) -> None:
        """The text of a here-document, which begins here."""
        raise NotImplementedError

    def fail(self, why: str) -> ShellSyntaxError:
        return ShellSyntaxError(why, self.position)

    def enter(self) -> None:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise TooLarge("nested too deeply", self.position)

    def leave(self) -> None:
        self.depth -= 1

    def count_command(self) -> None:
        self.budget.commands -= 1
        if self.budget.commands < 0:
            raise TooLarge("more commands than are judged", self.position)

    def peek(self) -> str:
        return self.text[self.position : self.position + 1]

    def at(self, prefix: str) -> bool:
        return self.text.startswith(prefix, self.position)

    def blanks(self, *, comments: bool = True) -> str:
        """Skip blanks, joined lines and a comment; the character that is next."""
        text = self.text
        while True:
            char = text[self.position : self.position + 1]
            if char == " " or char == "\t" or (char == "\\" and text.startswith("\\\n", self.position)):
                match = lexical.BLANKS.match(text, self.position)
                self.position = match.end() if match else self.position
            elif char == "#" and comments:
                match = lexical.COMMENT.match(text, self.position)
                self.position = match.end() if match else self.position
            else:
                return char

    def newlines(self) -> None:
        """Skip blanks, comments and newlines; here-documents that wait are read."""
        while self.blanks() == "\n":
            self.newline()

    def newline(self) -> None:
        self.position += 1
        if self.waiting:
            waiting, self.waiting = self.waiting, []
            for redirect in waiting:
                self.read_document(redirect)

    def join_token(self) -> None:
        """Bash takes a backslash and newline out before it looks for tokens: so do we where one would be cut in two.

        Elsewhere they are skipped in passing, which costs nothing.
        """
        while match := lexical.CUT_TOKEN.match(self.text, self.position):
            self.budget.cuts -= 1
            if self.budget.cuts < 0:
                raise TooLarge("more joined lines than are judged", self.position)
            cut = match.end() - 2
            self.text = self.text[:cut] + self.text[cut + 2 :]
            self.size -= 2
            self.cuts.append(cut)
            self._peeked = (-1, None)

    def reserved(self, words: tuple[str, ...] | frozenset[str]) -> str | None:
        """The unquoted word here, if it stands alone and is one of these. It is not consumed."""
        word = self.lone_word()
        return word if word in words else None

    def lone_word(self) -> str | None:
        """The unquoted word here, if it stands alone."""
        if self._peeked[0] != self.position:
            self._peeked = (self.position, self._lone_word())
        return self._peeked[1]

    def _lone_word(self) -> str | None:
        if self.continued:
            self.join_token()
        match = lexical.LITERAL.match(self.text, self.position)
        if match is None:
            return None
        end = match.end()
        if end < self.size:
            sign = self.text[end]
            if sign not in lexical.WORD_ENDS or (sign in "<>" and self.text[end + 1 : end + 2] == "("):  # time<(x)
                return None
        return match.group()

    def expect(self, word: str) -> None:
        self.newlines()
        if not self.reserved((word,)):
            raise self.fail(f"expected {word}")
        self.position += len(word)
