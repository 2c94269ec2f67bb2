"""Names that a module offers and another one defines, imported at their first use."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def lazy_module(name: str, homes: Mapping[str, str]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` for the module `name`; `homes` says which module defines each name."""

    def find(attribute: str) -> Any:
        home = homes.get(attribute)
        if home is None:
            raise AttributeError(f"module {name!r} has no attribute {attribute!r}")
        return getattr(import_module(home), attribute)

    def names() -> list[str]:
        return sorted(homes)

    return find, names


def by_name(modules: Mapping[str, str]) -> dict[str, str]:
    """The `homes` for `lazy_module`, from the names that each module defines, with spaces between them."""
    return {name: module for module, names in modules.items() for name in names.split()}


class _LazyImport:
    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        return getattr(import_module(self._name), attribute)


def lazy_import(name: str) -> Any:
    """Use it in the `else` of `if TYPE_CHECKING:`, where the real import is for type checkers."""
    return _LazyImport(name)
