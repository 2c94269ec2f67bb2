"""Markdown as a chat shows it: every heading at the left edge, where the answer begins."""

from __future__ import annotations

from typing import ClassVar

import rich.markdown


class _Heading(rich.markdown.Heading):
    LEVEL_ALIGN: ClassVar = {**rich.markdown.Heading.LEVEL_ALIGN, "h1": "left"}


class Markdown(rich.markdown.Markdown):
    elements: ClassVar = {**rich.markdown.Markdown.elements, "heading_open": _Heading}
