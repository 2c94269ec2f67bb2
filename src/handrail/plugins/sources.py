"""Where plugins lie: the user's folder, a project's, and what pip installed. Looking runs nothing of theirs."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from typing import NamedTuple

from ..config.cache import remember, remembered
from ..config.paths import config_path

GROUP = "handrail"
PROJECT_FOLDER = ".handrail"
_CACHE = "entry_points.json"


class Source(Enum):
    USER = "user"
    PIP = "pip"
    PROJECT = "project"


class Found(NamedTuple):
    """A plugin that is there. `place` is its file or folder, or the object that pip's entry point names (`pkg.mod:attr`)."""

    name: str
    source: Source
    place: str


def find_plugins(project: Path | None = None) -> Iterator[Found]:
    """Every plugin, in the order in which they are loaded: an earlier one keeps its name from a later one."""
    yield from _in_folder(config_path().parent / "plugins", Source.USER)
    for name, target in sorted(entry_points(GROUP)):
        yield Found(name, Source.PIP, target)
    folder = project or project_folder()
    if folder is not None:
        yield from _in_folder(folder / "plugins", Source.PROJECT)


def project_folder(start: Path | None = None) -> Path | None:
    """The `.handrail` of the project that we are in: of this directory, or of the nearest one above."""
    here = start or Path(os.getcwd())
    for folder in (here, *here.parents):
        if folder in (Path.home(), Path(folder.anchor)):
            return None
        if (folder / PROJECT_FOLDER).is_dir():
            return folder / PROJECT_FOLDER
    return None


def _in_folder(folder: Path, source: Source) -> Iterator[Found]:
    try:
        names = sorted(os.listdir(folder))
    except OSError:
        return
    for name in names:
        path = folder / name
        if name.startswith((".", "_")):
            continue
        if name.endswith(".py") and path.is_file():
            yield Found(path.stem, source, str(path))
        elif (path / "__init__.py").exists() or (path / "plugin.yaml").exists():
            yield Found(name, source, str(path))


def entry_points(group: str) -> list[tuple[str, str]]:
    """Names and targets of an entry point group, over everything that is installed.

    `importlib.metadata` would import forty modules and read every package's files at each start. What a folder of packages
    holds is remembered by its time, and for nearly everyone it is nothing.
    """
    known = remembered(_CACHE)
    found: dict[str, str] = {}
    changed = False
    for folder in dict.fromkeys(sys.path):
        try:
            stamp = os.stat(folder or ".").st_mtime_ns
        except OSError:
            continue
        key = f"{group} {os.path.abspath(folder)}"
        there = known.get(key)
        if not (isinstance(there, list) and there[0] == stamp):
            there = known[key] = [stamp, _entry_points_in(folder or ".", group)]
            changed = True
        for name, target in dict(there[1]).items():
            found.setdefault(name, target)  # as with modules, the first folder wins
    if changed:
        remember(_CACHE, known)
    return list(found.items())


def _entry_points_in(folder: str, group: str) -> dict[str, str]:
    found: dict[str, str] = {}
    try:
        names = [name for name in os.listdir(folder) if name.endswith((".dist-info", ".egg-info"))]
    except OSError:
        return found
    for name in sorted(names):
        try:
            with open(os.path.join(folder, name, "entry_points.txt"), encoding="utf-8") as file:
                text = file.read()
        except (OSError, UnicodeDecodeError):
            continue
        found.update(_section(text, group))
    return found


def _section(text: str, group: str) -> Iterator[tuple[str, str]]:
    inside = False
    for raw in text.splitlines():
        line = raw.strip()
        if line.startswith("["):
            inside = line == f"[{group}]"
        elif inside and "=" in line and not line.startswith(("#", ";")):
            name, _, target = line.partition("=")
            yield name.strip(), target.partition("[")[0].strip()  # without the extras, which are long obsolete
