"""Names that a module offers and another one defines, imported at their first use."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from types import ModuleType
from typing import Any

Find = Callable[[str], Any]
List = Callable[[], list[str]]


def lazy_face(name: str, file: str) -> tuple[Find, List]:
    """`__getattr__` and `__dir__` for the package `name`. The `__init__.pyi` beside `file` says which module has each name, in
    lines such as `from .app import App as App`; type checkers read the same ones. It is read at the first question."""

    @functools.cache
    def homes() -> dict[str, str]:
        with open(f"{file}i", encoding="utf-8") as stub:
            words = [line.split() for line in stub if line.startswith("from ")]
        return {offered: module for _, module, _, offered, *_ in words}

    def find(attribute: str) -> Any:
        return sorted(homes()) if attribute == "__all__" else _found(name, attribute, homes())

    return find, lambda: sorted(homes())


def lazy_module(name: str, modules: Mapping[str, str]) -> tuple[Find, List, list[str]]:
    """`__getattr__`, `__dir__` and `__all__` for a module without types. `modules` says which names each of them defines, with
    spaces between them; one that begins with a dot is below `name`."""
    homes = {offered: module for module, names in modules.items() for offered in names.split()}
    return lambda attribute: _found(name, attribute, homes), lambda: sorted(homes), sorted(homes)


def _found(name: str, attribute: str, homes: Mapping[str, str]) -> Any:
    if attribute not in homes:
        raise AttributeError(f"module {name!r} has no attribute {attribute!r}")
    return getattr(import_module(homes[attribute], name), attribute)


def named(reference: str) -> Any:
    """What `module:name` names."""
    module, _, name = reference.partition(":")
    return getattr(import_module(module), name)


def extra_module(module: str, extra: str, what: str, error: type[Exception]) -> Any:
    """A module of an optional dependency. Raises `error`, which says what to install."""
    try:
        return import_module(module)
    except ImportError:
        raise error(f"{what} needs more packages: pip install 'handrail[{extra}]'") from None


def module_at(name: str, path: str | os.PathLike[str]) -> ModuleType:
    """Import a file as a module of that name. Raises whatever its code does."""
    from importlib.util import module_from_spec, spec_from_file_location  # few programs have such files

    spec = spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is not a Python module")
    module = sys.modules[name] = module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


class _LazyImport:
    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        return getattr(import_module(self._name), attribute)


def lazy_import(name: str) -> Any:
    """Use it in the `else` of `if TYPE_CHECKING:`, where the real import is for type checkers."""
    return _LazyImport(name)
