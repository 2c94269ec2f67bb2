"""Follow Python programs on the disk: scripts, modules, tests, and what they import from the work tree."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Sequence

from ..scripts import python_parts
from .script_files import judge_code
from .sources import Source, Sources
from .walk import Call, Walk

_MAX_MODULES = 48
_MAX_IMPORTED = 150_000


def follow(walk: Walk, call: Call, entries: Sequence[Source], folders: Sequence[str]) -> None:
    """Judge these programs, and what they import from these folders as far as they use it."""
    assert walk.sources is not None
    modules = _Modules(walk.sources, folders)
    for source in entries:
        modules.add(source, whole=True)
    modules.import_all()
    names = modules.reached()
    for source, module, whole in modules.found.values():
        if whole or source.is_new or module is None:
            judge_code(walk, call, source, "python")
        else:
            judge_code(walk, call, source, "python", python_parts.running_text(source.text, module, names))


def module_file(sources: Sources, name: str, folders: Iterable[str]) -> Source | None:
    """The file of a module, if it lies in one of these folders."""
    path = name.replace(".", "/")
    for folder in folders:
        for place in (f"{folder}/{path}.py", f"{folder}/{path}/__init__.py"):
            if (found := sources.read(place)) is not None:
                return found
    return None


class _Modules:
    def __init__(self, sources: Sources, folders: Sequence[str]) -> None:
        self.found: dict[str, tuple[Source, python_parts.Module | None, bool]] = {}
        self._sources = sources
        self._folders = folders
        self._left = _MAX_IMPORTED
        self._tops: dict[str, bool] = {}
        self._waiting: list[tuple[str, str]] = []
        self._asked: set[tuple[str, str]] = set()

    def add(self, source: Source, *, whole: bool) -> None:
        if source.path in self.found:
            return
        read = python_parts.read_whole if whole or source.is_new else python_parts.read
        module = read(source.text) if source.is_whole else None
        self.found[source.path] = (source, module, whole)
        if module is not None:
            self._waiting += [(name, source.path) for name in module.imports]
        for name in python_parts.loaded(source.text):
            if "/" in name or name.endswith((".py", ".txt")):
                self._add_file(name)
            else:
                self._waiting.append((name, source.path))

    def _add_file(self, name: str) -> None:
        for folder in self._folders[:1]:
            found = self._sources.read(name if name.startswith("/") else f"{folder}/{name}")
            if found is not None and not found.is_binary:
                self.add(found, whole=True)

    def import_all(self) -> None:
        """Breadth first, so that what is near comes before the budget ends."""
        while self._waiting and len(self.found) < _MAX_MODULES and self._left > 0:
            waiting, self._waiting = self._waiting, []
            for name, importer in waiting:
                for source in self._sources_of(name, importer):
                    self._left -= len(source.text)
                    self.add(source, whole=False)

    def reached(self) -> set[str]:
        names: set[str] = set()
        for _ in range(8):
            before = len(names)
            for source, module, whole in self.found.values():
                if module is not None:
                    names |= python_parts.reached(module, names, everything=whole or source.is_new)
            if len(names) == before:
                break
        return names

    def _sources_of(self, name: str, importer: str) -> list[Source]:
        """The module and the packages around it: importing `a.b` runs `a` first."""
        dots = len(name) - len(name.lstrip("."))
        if dots:
            folder = importer
            for _ in range(dots):
                folder = posixpath.dirname(folder)
            folders: Sequence[str] = (folder,)
            name = name.lstrip(".")
        else:
            folders = self._folders
            if not self._is_here(name.partition(".")[0]):
                return []
        key = (name, folders[0] if dots else "")
        if not name or key in self._asked:
            return []
        self._asked.add(key)
        parts = name.split(".")
        files = [module_file(self._sources, ".".join(parts[: end + 1]), folders) for end in range(len(parts))]
        return [source for source in files if source is not None and not source.is_binary]

    def _is_here(self, top: str) -> bool:
        """Whether a package or module of this name is in the work tree at all."""
        if top not in self._tops:
            self._tops[top] = any(
                self._sources.entry(f"{folder}/{top}{end}") is not None
                for folder in self._folders
                for end in ("", ".py")
            )
        return self._tops[top]
