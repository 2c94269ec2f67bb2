"""Where the Python that runs this, and this package, lie: a sandbox that hides folders leaves them in sight."""

from __future__ import annotations

import os
import sys
from collections.abc import Collection, Iterator
from importlib.resources import files

_PACKAGE = __name__.partition(".")[0]
# What an interpreter needs of its prefix, if the prefix itself is a place to be hidden.
_PARTS = ("bin", "lib", "lib64", "pyvenv.cfg")


def files_below(hidden: Collection[str]) -> list[str]:
    """The folders and files of the interpreter and the package that lie in hidden places, outer ones first."""
    spelled = (sys.prefix, sys.exec_prefix, sys.base_prefix, sys.base_exec_prefix, str(files(_PACKAGE)))
    folders = [place for path in spelled for place in (os.path.abspath(path), os.path.realpath(path))]
    wanted = {part for folder in folders for part in _open_parts(folder, hidden)}
    wanted |= {path for path, target in _way(sys.executable) if target is None}
    found: list[str] = []
    for path in sorted(filter(os.path.exists, wanted), key=len):
        if _is_hidden(path, hidden, found):
            found.append(path)
    return found


def links_below(hidden: Collection[str]) -> dict[str, str]:
    """The links in hidden places that lead to the interpreter, each with what it says."""
    in_sight = files_below(hidden)
    return {path: to for path, to in _way(sys.executable) if to is not None and _is_hidden(path, hidden, in_sight)}


def _is_hidden(path: str, hidden: Collection[str], in_sight: Collection[str]) -> bool:
    """Whether it lies in a hidden place, and not in one inside of that which is in sight."""
    around = [place for place in (*hidden, *in_sight) if path == place or path.startswith(place.rstrip("/") + "/")]
    return bool(around) and max(around, key=len) not in in_sight


def _open_parts(folder: str, hidden: Collection[str]) -> list[str]:
    return [os.path.join(folder, part) for part in _PARTS] if folder in hidden else [folder]


def _way(path: str) -> Iterator[tuple[str, str | None]]:
    """Each link on the way to a file with what it says, and at last the file, with None."""
    seen = set()
    while path not in seen:
        seen.add(path)
        if not os.path.islink(path):
            yield path, None
            yield os.path.realpath(path), None
            return
        target = os.readlink(path)
        yield path, target
        path = os.path.normpath(os.path.join(os.path.dirname(path), target))
