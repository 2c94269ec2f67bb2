"""Name a function as "module:attribute" and import it at its first use."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from importlib import import_module
from typing import Any

_FORM = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*")


class Reference:
    """A callable that imports the function it names when it is first called or its signature is read.

    Two references to one function are equal, so a check that several tools name runs once for all of them.
    """

    __slots__ = ("_function", "target")

    def __init__(self, target: str) -> None:
        self.target = target
        self._function: Callable[..., Any] | None = None

    def resolve(self) -> Callable[..., Any]:
        if self._function is None:
            module, _, attribute = self.target.partition(":")
            self._function = getattr(import_module(module), attribute)
        assert self._function is not None
        return self._function

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return (self._function or self.resolve())(*args, **kwargs)

    @property
    def __signature__(self) -> inspect.Signature:
        return inspect.signature(self.resolve())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Reference) and other.target == self.target

    def __hash__(self) -> int:
        return hash(self.target)

    def __repr__(self) -> str:
        return self.target


def dereferenced(value: Any) -> Any:
    """A text of the form "module:attribute" as a `Reference`; any other value unchanged."""
    return Reference(value) if isinstance(value, str) and _FORM.fullmatch(value) else value
