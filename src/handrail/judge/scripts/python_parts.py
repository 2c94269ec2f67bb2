"""Which parts of a Python module run: its own statements, and the functions that something names."""

from __future__ import annotations

import ast
import functools
import re
from typing import NamedTuple

_MAX_TEXT = 200_000
_IMPORT = re.compile(r"(?m)(?:^|[;:])[ \t]*(?:from\s+([\w.]+)\s+import\s+(\([^)]*\)|[^\n#]*)|import\s+([\w., \t]+))")
_LOADED = re.compile(
    r"\b(?:run_path|execfile|import_module|run_module|__import__|spec_from_file_location|SourceFileLoader)\b[^(\n]*\([^)\n]*?['\"]([\w./-]+)['\"]|"
    r"\bexec\s*\([^\n]*?(?:open|Path)\s*\(\s*['\"]([\w./-]+)['\"]"
)
_WORD = re.compile(r"[A-Za-z_]\w*")


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
def read_whole(text: str) -> Module:
    """The same for a module of which everything counts as running: by its words, without reading its grammar."""
    imports: dict[str, None] = {}
    for match in _IMPORT.finditer(text):
        if match[3]:
            imports.update((name.split()[0], None) for name in match[3].split(",") if name.strip())
            continue
        module = match[1]
        imports[module] = None
        joined = module if module.endswith(".") else f"{module}."
        imports.update((joined + name, None) for name in re.findall(r"(?:^|[,(])\s*(\w+)", match[2]))
    return Module(tuple(imports), frozenset(_WORD.findall(text)), ())


@functools.lru_cache(512)
def read(text: str) -> Module | None:
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


def loaded(text: str) -> list[str]:
    """Files and modules that it runs by a name in quotes: `runpy.run_path("x.py")`, `exec(open("x").read())`."""
    return [match[1] or match[2] for match in _LOADED.finditer(text)]


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
