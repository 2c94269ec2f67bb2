"""Names that a module offers and another one defines, imported at their first use."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def lazy_module(
    name: str, modules: Mapping[str, str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """`__getattr__`, `__dir__` and `__all__` for the module `name`. `modules` says which names each of them defines, with spaces
    between them; one that begins with a dot is below `name`."""
    homes = {found: module for module, names in modules.items() for found in names.split()}
    offered = sorted(homes)

    def find(attribute: str) -> Any:
        home = homes.get(attribute)
        if home is None:
            raise AttributeError(f"module {name!r} has no attribute {attribute!r}")
        return getattr(import_module(home, name), attribute)

    return find, lambda: sorted(offered), offered


def stubbed_module(name: str, file: str) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """`lazy_module` for what the stub beside `file` imports, which type checkers read too: `from .app import App as App`."""
    modules: dict[str, str] = {}
    with open(f"{file.removesuffix('c')}i", encoding="utf-8") as stub:
        for line in stub:
            if line.startswith("from "):
                _, module, _, imported, *_ = line.split()
                modules[module] = f"{modules.get(module, '')} {imported}"
    return lazy_module(name, modules)


class _LazyImport:
    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        return getattr(import_module(self._name), attribute)


def lazy_import(name: str) -> Any:
    """Use it in the `else` of `if TYPE_CHECKING:`, where the real import is for type checkers."""
    return _LazyImport(name)
