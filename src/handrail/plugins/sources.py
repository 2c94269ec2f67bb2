"""Where plugins are: in the user's folder, a project's, and installed by pip. Finding them runs none of their code."""

from __future__ import annotations

import os
from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from typing import NamedTuple

from ..config.entry_points import entry_points
from ..config.paths import config_path, project_folder

GROUP, ORIGINAL_GROUP = "handrail", "hermes_agent.plugins"


class Source(Enum):
    USER = "user"
    PIP = "pip"
    PROJECT = "project"


class Found(NamedTuple):
    """A plugin that exists. `place` is its file or folder, or the object that pip's entry point names (`pkg.mod:attr`)."""

    name: str
    source: Source
    place: str


def find_plugins(project: Path | None = None, *, home: str = "") -> Iterator[Found]:
    """Every plugin, in the order in which they are loaded: the first with a name keeps it."""
    yield from _in_folder(config_path(home).parent / "plugins", Source.USER)
    for group in (GROUP, ORIGINAL_GROUP):
        for name, target in sorted(entry_points(group)):
            yield Found(name, Source.PIP, target)
    folder = project or project_folder()
    if folder is not None:
        yield from _in_folder(folder / "plugins", Source.PROJECT)


def _in_folder(folder: Path, source: Source, *, is_top: bool = True) -> Iterator[Found]:
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
        elif is_top and path.is_dir():  # a category, as Hermes Agent has them
            yield from _in_folder(path, source, is_top=False)
