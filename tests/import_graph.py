"""Which module of the package imports which, as its source says, and from where in the file."""

from __future__ import annotations

import ast
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


def imports(name: str, path: Path) -> Iterator[Import]:
    """What a module imports, type-only imports included. `from x import y` is of `x.y` if that may be a module."""
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    tree = ast.parse(path.read_text())
    late = {id(inner) for node in ast.walk(tree) if isinstance(node, _FUNCTIONS) for inner in ast.walk(node)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (Import(alias.name, node.lineno, id(node) in late) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            yield from (Import(f"{base}.{alias.name}", node.lineno, id(node) in late) for alias in node.names)


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
