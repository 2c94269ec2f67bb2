"""Follow Python programs on the disk: scripts, modules, tests, and what they import from the work tree."""

from __future__ import annotations

import ast
import functools
import posixpath
import re
import sys
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ..programs.tables import read_program
from ..values.data_files import Patterns, Words
from ..values.disk import Source, absolute
from ..values.word_values import UNKNOWN, Arg, Value
from .script_files import entry, here, judge_code, lookup, names_in
from .walk import Call, Walk

_RE = Patterns(__file__)
_WORDS = Words(__file__)
_MAX_MODULES = 48
_MAX_IMPORTED = 150_000
_MAX_TEXT = 200_000
_MAX_ADDED = 8


def follow_python(walk: Walk, call: Call) -> None:
    assert walk.sources is not None
    cwd = absolute(".", here(walk))
    if not cwd:
        return
    codes, module, rest = read_program("python", call.args)
    is_file = rest and not codes and module is None
    _shadowing(walk, call, posixpath.dirname(absolute(str(rest[0]), cwd)) if is_file else cwd)
    for path, content in list(walk.state.files.items()):
        if path.endswith(".pth"):  # its lines with an import are run
            judge_code(walk, call, Source(path, content.text, is_new=True), "python")
    if module is not None:
        _module(walk, call, str(module), rest, cwd)
    elif codes:
        if "import" in codes[0]:
            typed = Source("", str(codes[0]), is_new=False)
            follow(walk, call, [typed], [cwd, *_python_path(walk)])
    elif rest:
        path = rest[0]
        found = entry(walk, path)
        if found is not None and found.is_dir:
            path = path.like(f"{path}/__main__.py")
        source = lookup(walk, path)
        if source is not None and source.is_binary and source.is_new:
            walk.report("dynamic.script", call.argv)
        elif source is not None:
            folder = posixpath.dirname(absolute(path, here(walk)))
            follow(walk, call, [source], [folder, *_python_path(walk)])


def _shadowing(walk: Walk, call: Call, folder: str) -> None:
    """Files of this session that have the name of a module of Python itself: whatever imports that gets them."""
    for name in names_in(walk, folder):
        if name.endswith(".py") and name[:-3] in sys.stdlib_module_names:
            source = lookup(walk, f"{folder}/{name}")
            if source is not None and source.is_new:
                judge_code(walk, call, source, "python")


def _python_path(walk: Walk) -> list[str]:
    value = walk.lookup("PYTHONPATH")
    parts = value.text.split(":") if isinstance(value, Value) and value.known else []
    return [place for part in parts[:8] if part and (place := absolute(part, here(walk)))]


def follow_customised(walk: Walk, call: Call) -> None:
    """Python runs these modules at every start, wherever PYTHONPATH has them; whatever is run may start Python."""
    for folder in _python_path(walk):
        for name in ("sitecustomize", "usercustomize"):
            for end in (".py", "/__init__.py"):
                source = lookup(walk, f"{folder}/{name}{end}")
                if source is not None and not source.is_binary:
                    follow(walk, call, [source], [folder])


def _module(walk: Walk, call: Call, name: str, args: Sequence[Arg], cwd: str) -> None:
    assert walk.sources is not None
    if UNKNOWN in name:
        return
    folders = [cwd, *_python_path(walk)]
    path = name.replace(".", "/")
    for folder in folders:
        for place in (f"{folder}/{path}.py", f"{folder}/{path}/__main__.py"):
            source = lookup(walk, place)
            if source is not None and not source.is_binary:
                first = walk.sources.read(f"{folder}/{path.partition('/')[0]}/__init__.py")
                entries = [source] if first is None or first.path == source.path else [source, first]
                follow(walk, call, entries, folders)
                return
    if name in ("runpy", "pydoc"):
        named = [arg for arg in args if arg[:1] != "-"]
        follow_python(walk, Call("python", [Arg("-m"), *named], call.stdin, Arg("python")))
    if name == "timeit":
        follow_python(walk, Call("python", [Arg("-c"), Arg("\n".join(args))], None, Arg("python")))
    if name in _WORDS.run_files:
        for file in [arg for arg in args if arg.endswith((".py", ".md", ".rst", ".txt"))][:1]:
            follow_python(walk, Call("python", [file], call.stdin, Arg("python")))
            if name == "doctest" and (source := lookup(walk, file)) is not None:
                judge_examples(walk, call, source)
    follower = walk.programs.follower_of(name)
    if follower is not None and not walk.judgement.rulebook.knows(name):  # else it is run as the program of that name
        follower(walk, Call(name, args, call.stdin, Arg(name)))


def judge_examples(walk: Walk, call: Call, source: Source) -> None:
    """The examples in a documentation, which doctest runs."""
    examples = "\n".join(re.findall(r"(?m)^\s*(?:>>>|\.\.\.) (.*)$", source.text))
    judge_code(walk, call, source, "python", examples)


def follow(walk: Walk, call: Call, entries: Sequence[Source], folders: Sequence[str]) -> None:
    """Judge these programs, and what they import from these folders as far as they use it."""
    assert walk.sources is not None
    added = [match[1] for source in entries for match in _RE.added_folder.finditer(source.text)]
    modules = _Modules(walk, [*folders, *filter(None, (absolute(place, here(walk)) for place in added[:_MAX_ADDED]))])
    for source in entries:
        modules.add(source, whole=True)
    modules.import_all()
    names = modules.reached()
    for source, module, whole in modules.found.values():
        if whole or source.is_new or module is None:
            judge_code(walk, call, source, "python")
        else:
            judge_code(walk, call, source, "python", running_text(source.text, module, names))


def module_file(walk: Walk, name: str, folders: Iterable[str]) -> Source | None:
    """The file of a module, if it lies in one of these folders."""
    path = name.replace(".", "/")
    for folder in folders:
        for place in (f"{folder}/{path}.py", f"{folder}/{path}/__init__.py"):
            if (found := lookup(walk, place)) is not None:
                return found
    return None


class _Modules:
    def __init__(self, walk: Walk, folders: Sequence[str]) -> None:
        self.found: dict[str, tuple[Source, Module | None, bool]] = {}
        self._walk = walk
        self._folders = folders
        self._left = _MAX_IMPORTED
        self._tops: dict[str, bool] = {}
        self._waiting: list[tuple[str, str]] = []
        self._asked: set[tuple[str, str]] = set()

    def add(self, source: Source, *, whole: bool) -> None:
        if source.path in self.found:
            return
        read = read_whole_module if whole or source.is_new else read_module
        module = read(source.text) if source.is_whole else None
        self.found[source.path] = (source, module, whole)
        if module is not None:
            self._waiting += [(name, source.path) for name in module.imports]
        text = _RE.joined.sub("", source.text)
        for match in _RE.loaded.finditer(text):  # runpy.run_path("x.py"), exec(open("x").read())
            name = match[1] or match[2]
            if "/" not in name and not name.endswith((".py", ".txt")):
                self._waiting.append((name, source.path))
                continue
            found = lookup(self._walk, name if name.startswith("/") else f"{self._folders[0]}/{name}")
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
                    names |= reached(module, names, everything=whole or source.is_new)
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
        files = [module_file(self._walk, ".".join(parts[: end + 1]), folders) for end in range(len(parts))]
        return [source for source in files if source is not None and not source.is_binary]

    def _is_here(self, top: str) -> bool:
        """Whether a package or module of this name is in the work tree at all."""
        if top not in self._tops:
            places = [f"{folder}/{top}{end}" for folder in self._folders for end in ("", ".py")]
            is_there = any(entry(self._walk, place) is not None for place in places)
            self._tops[top] = is_there or any(self._walk.known_file(place) is not None for place in places)
        return self._tops[top]


class Part(NamedTuple):
    """A function or method: where its body is, and the names that it uses."""

    name: str
    first: int
    last: int
    names: frozenset[str]


class Module(NamedTuple):
    """A module as far as it matters for what runs."""

    imports: tuple[str, ...]
    """Modules that it imports, relative ones with their dots; `a.b` also for `from a import b`."""
    names: frozenset[str]
    """Names that are used outside of functions."""
    parts: tuple[Part, ...]


@functools.lru_cache(512)
def read_whole_module(text: str) -> Module:
    """The same for a module of which everything counts as running: by its words, without reading its grammar."""
    imports: dict[str, None] = {}
    for match in _RE.imports.finditer(text):
        if match[3]:
            imports.update((name.split()[0], None) for name in match[3].split(",") if name.strip())
            continue
        module = match[1]
        imports[module] = None
        joined = module if module.endswith(".") else f"{module}."
        imports.update((joined + name, None) for name in re.findall(r"(?:^|[,(])\s*(\w+)", match[2]))
    return Module(tuple(imports), frozenset(_RE.word.findall(text)), ())


@functools.lru_cache(512)
def read_module(text: str) -> Module | None:
    """None when it is no Python."""
    if len(text) > _MAX_TEXT:
        return None
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    imports: dict[str, None] = {}
    parts: list[Part] = []
    outside: set[str] = set()
    _visit(tree, imports, parts, outside)
    return Module(tuple(imports), frozenset(outside), tuple(parts))


def _visit(node: ast.AST, imports: dict[str, None], parts: list[Part], names: set[str]) -> None:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            for decorator in child.decorator_list:
                _visit(ast.Expression(decorator), imports, parts, names)
            inner: set[str] = set()
            for statement in child.body:
                _visit(ast.Module([statement], []), imports, parts, inner)
            parts.append(Part(child.name, child.body[0].lineno, child.end_lineno or child.lineno, frozenset(inner)))
            if child.decorator_list:  # whoever decorates it may call it
                names.add(child.name)
            continue
        if isinstance(child, ast.Import):
            imports.update((alias.name, None) for alias in child.names)
        elif isinstance(child, ast.ImportFrom):
            module = "." * child.level + (child.module or "")
            imports[module] = None
            joined = module if module.endswith(".") or not module else f"{module}."
            imports.update((joined + alias.name, None) for alias in child.names)
        elif isinstance(child, ast.Name):
            names.add(child.id)
        elif isinstance(child, ast.Attribute):
            names.add(child.attr)
        _visit(child, imports, parts, names)


def reached(module: Module, names: set[str], *, everything: bool = False) -> set[str]:
    """Every name that the parts of a module use which these names reach."""
    found = set(module.names)
    left = list(module.parts)
    while True:
        run = [part for part in left if everything or part.name in found or part.name in names or _is_special(part)]
        if not run:
            return found
        left = [part for part in left if part not in run]
        for part in run:
            found |= part.names


def running_text(text: str, module: Module, names: set[str]) -> str:
    """The text without the functions that nothing reaches."""
    inner = reached(module, names) | names
    lines = text.split("\n")
    for part in module.parts:
        if part.name in inner or _is_special(part) or part.first > len(lines):
            continue
        first = lines[part.first - 1]
        indent = first[: len(first) - len(first.lstrip())]
        if not indent:  # on the line of its `def`
            continue
        lines[part.first - 1] = f"{indent}pass"
        for number in range(part.first, min(part.last, len(lines))):
            lines[number] = ""
    return "\n".join(lines)


def _is_special(part: Part) -> bool:
    """Called by the language itself."""
    return part.name.startswith("__") and part.name.endswith("__")
