"""Find skills: in the user's folders, in installed packages, in the project. Nothing of theirs is run."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from enum import Enum
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from ...config.entry_points import entry_points
from ...config.paths import config_path, folders_above
from .content import FILE

GROUP = "handrail.skills"
# The first is ours; projects keep skills for any agent in the others.
PROJECT_FOLDERS = (".handrail/skills", ".agents/skills", ".claude/skills")
_MAX_DEPTH = 3
_MAX_FOLDERS = 5_000


class Source(Enum):
    USER = "user"
    FOLDER = "folder"  # one that `skills.folders` names, where others may write
    PIP = "pip"
    PROJECT = "project"


class Place(NamedTuple):
    """A folder with a SKILL.md. `category` is the folder between it and its source, if there is one."""

    source: Source
    folder: str
    category: str


def user_folder() -> Path:
    return config_path().parent / "skills"


def find(folders: Sequence[str] = ()) -> Iterator[Place]:
    """Every skill. Of two with the same name the earlier one is used."""
    yield from _below(user_folder(), Source.USER)
    for folder in folders:
        yield from _below(Path(os.path.expanduser(folder)), Source.FOLDER)
    for _, target in sorted(entry_points(GROUP)):
        inside = _of_package(target)
        if inside is not None:
            yield from _below(inside, Source.PIP)
    for above in folders_above():
        for name in PROJECT_FOLDERS:
            yield from _below(above / name, Source.PROJECT)


def _below(root: Path, source: Source) -> Iterator[Place]:
    left = [(str(root), 0)]
    looked = 0
    while left and looked < _MAX_FOLDERS:
        folder, depth = left.pop()
        looked += 1
        if os.path.isfile(os.path.join(folder, FILE)):
            category = os.path.relpath(os.path.dirname(folder), root) if depth else "."
            yield Place(source, folder, "" if category == "." else category)
            continue
        if depth < _MAX_DEPTH:
            left += [(path, depth + 1) for path in reversed(_folders_in(folder))]


def _folders_in(folder: str) -> list[str]:
    try:
        names = sorted(os.listdir(folder))
    except OSError:
        return []
    paths = [os.path.join(folder, name) for name in names if not name.startswith((".", "_"))]
    return [path for path in paths if os.path.isdir(path)]


def _of_package(target: str) -> Path | None:
    """The folder that an entry point means: `package.inner:skills` is the folder `inner/skills` of that package.

    Only the package at the top is looked up, which imports nothing of it.
    """
    module, _, inner = target.partition(":")
    top, *parts = [*module.split("."), *filter(None, inner.split("."))]
    try:
        spec = find_spec(top)
    except (ImportError, ValueError):
        return None
    places = spec.submodule_search_locations if spec is not None else None
    return Path(places[0], *parts) if places else None
