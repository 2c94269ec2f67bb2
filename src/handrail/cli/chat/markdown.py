"""Markdown as a chat shows it: every heading at the left edge, where the answer begins."""

from typing import Any, ClassVar

import rich.markdown


class _Heading(rich.markdown.Heading):
    LEVEL_ALIGN: ClassVar = {**rich.markdown.Heading.LEVEL_ALIGN, "h1": "left"}


class Markdown(rich.markdown.Markdown):
    """A bare address is shown once; rich would add it in brackets to itself."""

    elements: ClassVar = {**rich.markdown.Markdown.elements, "heading_open": _Heading}

    def __init__(self, markup: str, **options: Any) -> None:
        super().__init__(markup, **options)
        for token in self.parsed:
            token.children = [each for each in token.children or () if each.markup != "autolink"] or token.children
