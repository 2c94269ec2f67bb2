"""Find the position in the judged text that a part of a nested text comes from."""

from __future__ import annotations

from dataclasses import dataclass

from ..values.assessment import Span
from ..values.word_values import SourceWord
from .syntax import DoubleQuoted, Literal, Quoted, TextMap


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
