"""A module that is imported when one of its attributes is first read: for heavy or optional libraries."""

from __future__ import annotations

from importlib import import_module
from typing import Any


class _LazyImport:
    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        return getattr(import_module(self._name), attribute)


def lazy_import(name: str) -> Any:
    """Use it in the `else` of `if TYPE_CHECKING:`, where the real import is for type checkers."""
    return _LazyImport(name)
