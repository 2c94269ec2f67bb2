"""Read the text of here-documents, once the line that asks for them has ended."""

from __future__ import annotations

from . import lexical
from .parameters import ParameterParser
from .syntax import DoubleQuoted, Part, Quoted, Redirect, TextMap, TooLarge, Word


class DocumentParser(ParameterParser):
    """Parses here-documents."""

    def read_document(self, redirect: Redirect) -> None:
        self.budget.documents -= 1
        if self.budget.documents < 0:
            raise TooLarge("more here-documents than are judged", self.position)
        start = self.position
        body, kept, verbatim = self._plain_document(redirect) or self._document_by_lines(redirect)
        if redirect.quoted:
            parts: list[Part] = [Quoted(body, start if verbatim else -1)]
        else:
            inner = self.inside(body)
            parts = [DoubleQuoted(inner.quoted_parts(lexical.IN_HERE, ""))]
        redirect.body = Word(parts, start, self.position)
        redirect.origin = TextMap(kept)

    def _plain_document(self, redirect: Redirect) -> tuple[str, list[tuple[int, int]], bool] | None:
        """The same as below, in one go, for a text that is just what stands in the source."""
        if redirect.operator == "<<-":
            return None
        text, start, delimiter = self.text, self.position, redirect.delimiter
        end = start - 1 if text.startswith(delimiter + "\n", start) else text.find(f"\n{delimiter}\n", start - 1)
        if end < 0 or not delimiter or (not redirect.quoted and text.find("\\\n", start, end + 1) >= 0):
            return None
        self.position = end + len(delimiter) + 2
        return text[start : end + 1], [(0, start)], True

    def _document_by_lines(self, redirect: Redirect) -> tuple[str, list[tuple[int, int]], bool]:
        """The text up to the delimiter, where its lines stood, and whether they are as in the source."""
        position, strip = self.position, redirect.operator == "<<-"
        lines: list[str] = []
        kept: list[tuple[int, int]] = []
        length, verbatim = 0, True
        while position < self.size:
            line, end = self._document_line(position, joined=not redirect.quoted)
            stripped = line.lstrip("\t") if strip else line
            source, position = position, min(end + 1, self.size)
            if stripped == redirect.delimiter:
                break
            verbatim = verbatim and len(stripped) == end - source
            kept.append((length, source + len(line) - len(stripped)))
            lines.append(stripped + "\n")
            length += len(stripped) + 1
        self.position = position
        return "".join(lines), kept, verbatim

    def _document_line(self, position: int, *, joined: bool) -> tuple[str, int]:
        """One line from here, without its newline, and where that stands; a backslash at the end joins the next."""
        text = self.text
        end = text.find("\n", position)
        if end < 0:
            return text[position:], self.size
        line = text[position:end]
        if not (joined and _ends_in_lone_backslash(line)):
            return line, end
        pieces = []
        while True:
            if not _ends_in_lone_backslash(line):
                pieces.append(line)
                return "".join(pieces), end
            pieces.append(line[:-1])
            start, end = end + 1, text.find("\n", end + 1)
            if end < 0:
                return "".join(pieces) + text[start:], self.size
            line = text[start:end]


def _ends_in_lone_backslash(line: str) -> bool:
    return line.endswith("\\") and (len(line) - len(line.rstrip("\\"))) % 2 == 1
