"""Which files are Handrail's own: its configuration, its state, itself. An agent that could write them would be its own judge."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from ...protocols import Action
from .assessment import Finding, Reach, Severity

_WHY_OWN = "these are Handrail's own files: an agent cannot change the rules that it is held to"
_WHY_CODE = "this is Handrail's own program: a change of it changes the gate"
_PACKAGE = str(Path(__file__).resolve().parents[2])


class Own:
    """`folders` and what is below them may never be written; where they are is looked up once."""

    def __init__(self, folders: Iterable[str | os.PathLike[str]]) -> None:
        named = {os.path.abspath(folder) for folder in folders}
        self._folders = sorted({*named, *map(os.path.realpath, named)})

    def of_file(self, action: Action) -> Finding | None:
        """What is to be said of writing this path, wherever a link leads."""
        path = os.path.join(action.cwd or os.getcwd(), os.path.expanduser(action.text))
        places = {os.path.normpath(path), os.path.realpath(path)}
        span = (0, len(action.text))
        if any(_is_in(place, folder) for place in places for folder in self._folders):
            return Finding("own.files", Severity.BLOCK, _WHY_OWN, span, (), Reach.HOME)
        if any(_is_in(place, _PACKAGE) for place in places):
            return Finding("own.program", Severity.ASK, _WHY_CODE, span, (), Reach.SYSTEM)
        return None

    def in_command(self, command: str) -> Finding | None:
        """A command that names one of the folders, or the variable that says where they are. The rules know the usual
        places in every spelling; this is for a home that was put elsewhere."""
        for name in (*self._folders, "HANDRAIL_HOME"):
            start = command.find(name)
            if start >= 0:
                return Finding("own.files", Severity.BLOCK, _WHY_OWN, (start, start + len(name)), (), Reach.HOME)
        return None


def own_folders() -> list[Path]:
    """Where this user's configuration, state and cache are, and what their links point to."""
    from ...config.paths import cache_dir, config_path, state_dir

    config = config_path()
    places = [config.parent, state_dir(), cache_dir()]
    if config.is_symlink():
        places.append(Path(os.path.realpath(config)))
    return places


def _is_in(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")
