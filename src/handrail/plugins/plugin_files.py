"""A plugin's files, read once: what was checked is what is imported.

Python's own importer would read a file again after its content was found trusted, and prefer a compiled copy next to it.
"""

import importlib.abc
import importlib.machinery
import importlib.util
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from stat import S_ISLNK, S_ISREG
from string import Template
from types import ModuleType
from typing import NamedTuple

from ..config.trust import digest
from ..errors import RegistrationError

PREFIX = "handrail_plugins"
_MAX_FILES = 2_000
_MAX_BYTES = 20_000_000
# By the name of a written file; `$name` stands for the plugin's name.
_FILES = {"plugin.yaml": "plugin.yaml", "__init__.py": "plugin.py.txt", "test_$name.py": "test.py.txt"}


class PluginFiles(NamedTuple):
    """One plugin: a file `name.py`, or a package `name/` with an `__init__.py`."""

    name: str
    root: Path  # the file, or the package's folder
    content: Mapping[str, bytes]  # by the path inside the package; a single file is its own `__init__.py`
    package: str = ""  # its own module name, if pip installed it

    @property
    def digest(self) -> str:
        return digest(self.content)

    @property
    def module_name(self) -> str:
        return self.package or module_of(self.name)

    def place(self, inner: str) -> Path:
        return self.root / inner if self.root.is_dir() else self.root


def module_of(name: str) -> str:
    """The module of a plugin that is a file or a folder."""
    return f"{PREFIX}.{name.replace('-', '_')}"


def read_plugin(root: Path) -> PluginFiles:
    """Raises RegistrationError for what is not a plugin, or is too large."""
    name = root.stem if root.suffix == ".py" else root.name
    if not name.replace("-", "_").isidentifier():
        raise RegistrationError(f"plugin {name!r}: the name must be letters, digits, _ and -")
    try:
        content = {"__init__.py": root.read_bytes()} if root.suffix == ".py" else _read_folder(root)
    except OSError as error:
        raise RegistrationError(f"plugin {name!r}: {error.filename} cannot be read: {error.strerror}") from None
    if "__init__.py" not in content:
        raise RegistrationError(f"plugin {name!r}: the folder has no __init__.py")
    return PluginFiles(name, root, content)


def read_package(target: str) -> PluginFiles:
    """The package that an entry point (`pkg.mod:attr`) leads to, without importing it. Raises RegistrationError."""
    parts = target.partition(":")[0].split(".")
    spec = None
    for count in range(1, len(parts) + 1):
        name = ".".join(parts[:count])
        try:
            if spec is None:
                spec = importlib.util.find_spec(name)
            else:  # inside of a folder that several packages share
                spec = importlib.machinery.PathFinder.find_spec(name, spec.submodule_search_locations)
        except (ImportError, ValueError):
            spec = None
        if spec is None:
            raise RegistrationError(f"plugin {target!r}: there is no module {name}")
        if spec.origin is not None and spec.has_location:
            file = Path(spec.origin)
            if spec.submodule_search_locations is None:
                return PluginFiles(parts[count - 1], file, {"__init__.py": file.read_bytes()}, name)
            return PluginFiles(parts[count - 1], file.parent, _read_folder(file.parent), name)
    raise RegistrationError(f"plugin {target!r}: {'.'.join(parts)} has no code")


def serve_from_memory(files: PluginFiles) -> None:
    """Let the modules of a package be imported from what was read. Other files of it, such as compiled ones, from the disk."""
    if files.module_name not in sys.modules:
        _finder().plugins[files.module_name] = files


def _read_folder(root: Path) -> dict[str, bytes]:
    content: dict[str, bytes] = {}
    size = 0
    for folder, folders, names in os.walk(root):
        folders[:] = [each for each in folders if each != "__pycache__" and not each.startswith(".")]
        for name in [*names, *folders]:
            path = Path(folder, name)
            mode = path.lstat().st_mode
            if S_ISLNK(mode):
                raise RegistrationError(f"plugin {root.name!r}: {path} is a link, whose target could change unseen")
            if not S_ISREG(mode) or name.endswith(".pyc"):
                continue
            content[path.relative_to(root).as_posix()] = data = path.read_bytes()
            size += len(data)
            if len(content) > _MAX_FILES or size > _MAX_BYTES:
                limits = f"{_MAX_FILES:,} files or {_MAX_BYTES // 1_000_000} MB"
                raise RegistrationError(f"plugin {root.name!r} has more than {limits}; keep data elsewhere")
    return content


def import_plugin(files: PluginFiles) -> ModuleType:
    """Import it from what was read. Its modules are `handrail_plugins.NAME...`."""
    finder = _finder()
    forget_plugin(files.name)
    finder.plugins[files.module_name] = files
    return importlib.import_module(files.module_name)


def forget_plugin(name: str) -> None:
    """Not one that pip installed: others may have imported that."""
    module = module_of(name)
    for each in [each for each in sys.modules if each == module or each.startswith(f"{module}.")]:
        del sys.modules[each]


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds and loads the modules of the plugins that were read."""

    def __init__(self) -> None:
        self.plugins: dict[str, PluginFiles] = {}

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        _ = path, target
        if fullname == PREFIX:
            return importlib.machinery.ModuleSpec(fullname, self, is_package=True)
        if (inner := self._inner(fullname)) is None:
            return None
        files, name = inner
        is_package = name.endswith("__init__.py")
        place = files.place(name)
        spec = importlib.machinery.ModuleSpec(fullname, self, origin=str(place), is_package=is_package)
        spec.has_location = True  # so that `__file__` is there, for data files next to it
        if is_package:
            spec.submodule_search_locations = [str(place.parent)]
        return spec

    def exec_module(self, module: ModuleType) -> None:
        if (found := self._inner(module.__name__)) is not None:
            files, name = found
            code = compile(files.content[name], str(files.place(name)), "exec", dont_inherit=True)
            exec(code, module.__dict__)  # noqa: S102  this is what importing is

    def _inner(self, fullname: str) -> tuple[PluginFiles, str] | None:
        """The plugin that a module belongs to, and its file in it."""
        parts = fullname.split(".")
        for count in range(len(parts), 0, -1):
            if (files := self.plugins.get(".".join(parts[:count]))) is not None:
                base = "/".join(parts[count:])
                names = (f"{base}/__init__.py".lstrip("/"), f"{base}.py")
                return next(((files, name) for name in names if name in files.content), None)
        return None


def _finder() -> _Finder:
    finder = next((each for each in sys.meta_path if isinstance(each, _Finder)), None)
    if finder is None:
        finder = _Finder()
        sys.meta_path.insert(0, finder)  # before Python's own, which would read the files again
    return finder


def write_template(name: str, folder: Path) -> list[Path]:
    """The files that were written. Raises RegistrationError for a name that is invalid or taken."""
    if not name.isidentifier() or not name.isascii() or name.startswith("_"):
        raise RegistrationError(f"plugin {name!r}: use letters, digits and _, with a letter first")
    root = folder / name
    if root.exists():
        raise RegistrationError(f"{root} is there already; choose another name, or remove it")
    root.mkdir(parents=True)
    written = []
    for file, template in _FILES.items():
        written.append(root / Template(file).substitute(name=name))
        text = Path(__file__).with_name("new_plugin").joinpath(template).read_text("utf-8")
        written[-1].write_text(Template(text).substitute(name=name), encoding="utf-8")
    return written
