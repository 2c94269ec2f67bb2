"""What a server offers besides tools: prompts to fill in, and resources to read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ..types import JsonDict

# Takes the name of an argument and what is written of it so far, returns the values that it may become.
Complete = Callable[[str, str], Sequence[str]]


class Prompt(NamedTuple):
    """A prompt by name. `render(arguments, client)` returns its text, or messages `{"role": ..., "content": part}` with parts
    like those of a multimodal result; it may be async. Each argument has a name, and may have a description and `required`."""

    name: str
    description: str
    render: Callable[..., Any]
    arguments: tuple[JsonDict, ...] = ()
    complete: Complete | None = None


class Resource(NamedTuple):
    """Something to read by its address. An address with gaps, such as `notes://{id}`, is a template for many, and
    `read` gets what stands in the gaps by name. It returns text or bytes, and may be async."""

    uri: str
    name: str
    read: Callable[..., Any]
    description: str = ""
    mime_type: str = "text/plain"
    complete: Complete | None = None
