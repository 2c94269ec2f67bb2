"""Parse simple commands: assignments, words and redirections."""

from __future__ import annotations

from . import lexical
from .documents import DocumentParser
from .scanner import MAX_HERE_DOCUMENTS, MAX_WORDS
from .syntax import Assignment, Command, DoubleQuoted, Function, Literal, Part, Quoted, Redirect, Simple, TooLarge, Word


class SimpleParser(DocumentParser):
    """Parses simple commands."""

    def function(self, name: Word) -> Function:
        """A function's definition, from the parenthesis after its name."""
        raise NotImplementedError

    def simple(self) -> Command:
        self.count_command()
        start, text = self.position, self.text
        assignments: list[Assignment] = []
        words: list[Word | Assignment] = []
        redirects: list[Redirect] = []
        declaring = False
        match_plain = lexical.PLAIN.match
        while True:
            plain = match_plain(text, self.position)
            if plain:
                found = plain[1]
                self.position = end = plain.end()
                words.append(Word(None, end - len(found), end, found))
            else:
                char = self.blanks()
                if not char or char in "\n;)|" or (char == "&" and not self.at("&>")):
                    break
                if self.continued:
                    self.join_token()
                if (char in "<>&{" or char.isdigit()) and (redirect := self.redirect()):
                    redirects.append(redirect)
                elif char == "(":
                    if len(words) == 1 and isinstance(words[0], Word) and not assignments and not redirects:
                        return self.function(words[0])
                    raise self.fail("unexpected (")
                elif not words or declaring:
                    self._word_or_assignment(assignments, words, declaring)
                else:
                    words.append(self._argument())
                text = self.text
            if len(words) == 1 and not declaring:
                first = words[0]
                declaring = isinstance(first, Word) and first.literal() in lexical.DECLARATIONS
            elif len(words) > MAX_WORDS:
                raise TooLarge("more words than are judged", self.position)
        if not (words or assignments or redirects):
            raise self.fail("expected a command")
        node = Simple(assignments, words, redirects, start, self.position)
        node.declares = declaring
        return node

    def _argument(self) -> Word:
        word = self.word()
        if word is None:
            raise self.fail(f"unexpected {self.peek()!r}")
        return word

    def _word_or_assignment(
        self, assignments: list[Assignment], words: list[Word | Assignment], declaring: bool
    ) -> None:
        match = lexical.ASSIGNMENT.match(self.text, self.position)
        if match is None:
            words.append(self._argument())
            return
        found = self._assignment(match.group(1), match.group(2), match.end())
        if isinstance(found, Assignment) and not declaring:
            assignments.append(found)
        else:
            words.append(found)

    def _assignment(self, name: str, operator: str, end: int) -> Assignment | Word:
        """An assignment, or the word that merely began like one (`a[1]x`)."""
        start, index = self.position, None
        self.position = end
        if operator == "[":
            parts = self.index()
            match = lexical.EQUALS.match(self.text, self.position)
            if match is None:
                rest = self.word()
                whole: list[Part] = [Literal(name + "["), *parts, Literal("]"), *(rest.parts if rest else ())]
                return Word(whole, start, self.position)
            index, operator = Word(parts, end, self.position - 1), match.group().replace("\\\n", "")
            self.position = match.end()
        elements = None
        value: Word | None = None
        if self.at("("):
            self.position += 1
            elements = self._array()
        else:
            value = self.word()
        value = value or Word([], self.position, self.position)
        assignment = Assignment(name, index, operator == "+=", value, elements)
        assignment.start, assignment.end = start, self.position
        return assignment

    def _array(self) -> list[tuple[Word | None, Word]]:
        self.enter()
        elements: list[tuple[Word | None, Word]] = []
        while True:
            self.newlines()
            if self.position >= self.size:
                raise self.fail("unterminated array")
            if self.at(")"):
                break
            if self.continued:
                self.join_token()
            index = self._element_index() if self.at("[") else None
            word = self.word()
            if word is None and index is None:
                raise self.fail(f"unexpected {self.peek()!r} in an array")
            elements.append((index, word or Word([], self.position, self.position)))
            if len(elements) > MAX_WORDS:
                raise TooLarge("more elements than are judged", self.position)
        self.position += 1
        self.leave()
        return elements

    def _element_index(self) -> Word | None:
        start = self.position
        self.position += 1
        parts = self.index()
        match = lexical.EQUALS.match(self.text, self.position)
        if match is None:
            self.position = start
            return None
        word = Word(parts, start + 1, self.position - 1)
        self.position = match.end()
        return word

    def redirect(self) -> Redirect | None:
        match = lexical.REDIRECT.match(self.text, self.position)
        if match is None:
            return None
        descriptor, operator, both = match.groups()
        operator = operator or both
        if operator in ("<", ">") and not descriptor and self.text.startswith("(", match.end()):
            return None  # a process substitution
        self.position = match.end()
        if self.blanks(comments=False) in ("#", "\n", ""):
            raise self.fail("expected a target")
        if operator in (">&", "<&") and self.at("-"):  # what follows the dash is a word of its own
            self.position += 1
            return Redirect(descriptor or "", operator, Word([Literal("-")], self.position - 1, self.position))
        target = self.word()
        if target is None:
            raise self.fail("expected a target")
        redirect = Redirect(descriptor or "", operator, target)
        if operator in ("<<", "<<-"):
            delimiter = _delimiter(target)
            if delimiter is None:
                raise self.fail("a delimiter that is not plain")
            redirect.delimiter = delimiter
            redirect.quoted = target.literal() is None
            self.waiting.append(redirect)
            if len(self.waiting) > MAX_HERE_DOCUMENTS:
                raise TooLarge("more here-documents than are judged", self.position)
        return redirect

    def redirects(self) -> list[Redirect]:
        """The redirections after a compound command."""
        found: list[Redirect] = []
        while True:
            self.blanks()
            if self.continued:
                self.join_token()
            redirect = self.redirect()
            if redirect is None:
                return found
            found.append(redirect)


def _delimiter(word: Word) -> str | None:
    """A here-document's delimiter: quotes are removed, nothing is expanded. None for one that is not plain text."""
    texts: list[str] = []
    for part in word.parts:
        inside = part.parts if isinstance(part, DoubleQuoted) else [part]
        for piece in inside:
            if not isinstance(piece, Literal | Quoted):
                return None
            texts.append(piece.text)
    text = "".join(texts)
    return None if "\n" in text else text
