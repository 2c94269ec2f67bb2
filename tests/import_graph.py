"""Which module of the package imports which, as its source says, and from where in the file."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

SOURCE = Path(__file__).parent.parent / "src" / "handrail"
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


class Import(NamedTuple):
    """`imported` is a module's full name. `in_function`: it happens when a function runs."""

    imported: str
    line: int
    in_function: bool


def modules() -> dict[str, Path]:
    """The file of every module, by its full name."""
    found = {}
    for path in sorted(SOURCE.rglob("*.py")):
        parts = ("handrail", *path.relative_to(SOURCE).with_suffix("").parts)
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


@functools.cache
def imports(name: str, path: Path) -> tuple[Import, ...]:
    """What a module imports, type-only imports included. `from x import y` is of `x.y` if that may be a module."""
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    return tuple(_imports_in(ast.parse(path.read_text()), package.split("."), in_function=False))


def _imports_in(node: ast.AST, package: list[str], *, in_function: bool) -> Iterator[Import]:
    for inner in ast.iter_child_nodes(node):
        if isinstance(inner, ast.Import):
            yield from (Import(alias.name, inner.lineno, in_function) for alias in inner.names)
        elif isinstance(inner, ast.ImportFrom):
            above = package[: len(package) - inner.level + 1] if inner.level else []
            base = ".".join([*above, *([inner.module] if inner.module else [])])
            yield from (Import(f"{base}.{alias.name}", inner.lineno, in_function) for alias in inner.names)
        elif not isinstance(inner, ast.expr):  # an expression has no statements in it
            yield from _imports_in(inner, package, in_function=in_function or isinstance(inner, _FUNCTIONS))


def graph() -> dict[str, set[str]]:
    """The modules that each one imports when it is imported, or names in a type."""
    known = modules()
    edges: dict[str, set[str]] = {name: set() for name in known}
    for name, path in known.items():
        for each in imports(name, path):
            target = each.imported if each.imported in known else each.imported.rpartition(".")[0]
            if target in known and target != name and not each.in_function:
                edges[name].add(target)
    return edges


def cycles(edges: dict[str, set[str]]) -> list[str]:
    """Modules that reach themselves: what is left when those that import nothing left are taken out, again and again."""
    left = {name: set(targets) for name, targets in edges.items()}
    while True:
        free = {name for name, targets in left.items() if not targets}
        if not free:
            break
        left = {name: targets - free for name, targets in left.items() if name not in free}
    # And those that nobody left imports: they lead to a cycle, but are not in one.
    while True:
        imported = {target for targets in left.values() for target in targets}
        kept = {name: targets for name, targets in left.items() if name in imported}
        if len(kept) == len(left):
            return sorted(left)
        left = kept
