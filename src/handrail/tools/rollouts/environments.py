"""Find the environments for rollouts without running any of their code."""

from __future__ import annotations

import ast
import os
from pathlib import Path
from typing import NamedTuple

from ...base.suggest import did_you_mean
from ...config.paths import config_path, entry_points
from ...errors import InvalidArguments
from ...settings.schema import Config

GROUP = "handrail.rl_environments"
_FOLDER = "rl_environments"


class Found(NamedTuple):
    """`path` is the user's file, `target` what a package offers as an entry point; `problem` why it cannot be used."""

    name: str
    about: str = ""
    path: str = ""
    target: str = ""
    problem: str = ""

    @property
    def place(self) -> str:
        return self.path or self.target


def folder_of(config: Config) -> Path:
    named = config.rollouts.folder
    return Path(os.path.expanduser(named)) if named else config_path().parent / _FOLDER


def find(config: Config) -> dict[str, Found]:
    """By name. The user's own go before those of packages."""
    found = {name: Found(name, "from a package", target=target) for name, target in entry_points(GROUP)}
    folder = folder_of(config)
    for path in sorted(folder.glob("*.py")) if folder.is_dir() else ():
        if path.stem.isidentifier() and not path.stem.startswith("_"):
            found[path.stem] = _read(path)
    return found


def named(name: str, config: Config) -> Found:
    """Raises InvalidArguments for an environment that is unknown or cannot be used."""
    found = find(config)
    if name not in found:
        known = did_you_mean(name, found) if found else f"there is none yet: put a Python file into {folder_of(config)}"
        raise InvalidArguments(f"unknown environment {name!r}; {known}", argument="environment")
    if found[name].problem:
        raise InvalidArguments(
            f"the environment {name!r} cannot be used: {found[name].problem}", argument="environment"
        )
    return found[name]


def _read(path: Path) -> Found:
    try:
        tree = ast.parse(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, SyntaxError, RecursionError) as error:
        return Found(path.stem, path=str(path), problem=f"it cannot be read: {error}")
    defined = {name for node in tree.body for name in _defined(node)}
    lacks = [what for what, names in _NEEDED.items() if not names & defined]
    about = (ast.get_docstring(tree) or "").partition("\n")[0]
    return Found(path.stem, about, str(path), problem=f"it lacks {' and '.join(lacks)}" if lacks else "")


_NEEDED = {"TASKS (or a function tasks)": {"TASKS", "tasks"}, "a function reward": {"reward"}}


def _defined(node: ast.stmt) -> list[str]:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return [node.name]
    if isinstance(node, ast.Import | ast.ImportFrom):
        return [alias.asname or alias.name for alias in node.names]
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    return [target.id for target in targets if isinstance(target, ast.Name)]
