"""Names that a module offers and another one defines, imported at their first use."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

Face = tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]


def lazy_face(name: str, file: str) -> Face:
    """`__getattr__`, `__dir__` and `__all__` for the package `name`. The `__init__.pyi` beside `file` says which module has each
    name, in lines such as `from .app import App as App`; type checkers read the same ones."""
    with open(f"{file}i", encoding="utf-8") as stub:
        words = [line.split() for line in stub if line.startswith("from ")]
    return _lazy(name, {offered: module for _, module, _, offered, *_ in words})


def lazy_module(name: str, modules: Mapping[str, str]) -> Face:
    """The same for a module without types. `modules` says which names each of them defines, with spaces between them; one that
    begins with a dot is below `name`."""
    return _lazy(name, {offered: module for module, names in modules.items() for offered in names.split()})


def _lazy(name: str, homes: Mapping[str, str]) -> Face:
    offered = sorted(homes)

    def find(attribute: str) -> Any:
        if attribute not in homes:
            raise AttributeError(f"module {name!r} has no attribute {attribute!r}")
        return getattr(import_module(homes[attribute], name), attribute)

    return find, lambda: sorted(offered), offered


class _LazyImport:
    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        return getattr(import_module(self._name), attribute)


def lazy_import(name: str) -> Any:
    """Use it in the `else` of `if TYPE_CHECKING:`, where the real import is for type checkers."""
    return _LazyImport(name)
