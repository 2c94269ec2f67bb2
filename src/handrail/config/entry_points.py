"""The entry points of a group, over everything that pip installed, found without importing any of it."""

from __future__ import annotations

import os
from collections.abc import Iterator

from ..base.own_process import import_folders
from .paths import remember, remembered

_CACHE = "entry_points.json"


def entry_points(group: str) -> list[tuple[str, str]]:
    """Names and targets of an entry point group, over everything that is installed. The current folder is not looked at.

    `importlib.metadata` would import forty modules and read every package's files at each start. What a folder of packages
    holds is remembered by its time, and for nearly everyone it is nothing.
    """
    known = remembered(_CACHE)
    found: dict[str, str] = {}
    changed = False
    for folder in import_folders():
        try:
            stamp = os.stat(folder).st_mtime_ns
        except OSError:
            continue
        key = f"{group} {folder}"
        there = known.get(key)
        if not (isinstance(there, list) and there[0] == stamp):
            there = known[key] = [stamp, _entry_points_in(folder, group)]
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
