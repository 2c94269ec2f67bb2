"""The folders that commands may write to without a question: the work tree, those for temporary files, and caches."""

from __future__ import annotations

import os
from typing import List, Sequence  # noqa: UP035  Python 3.8 knows no other place

from .wire import Packet

TEMPORARY = ("/tmp", "/var/tmp", "/dev/shm")


def contained(cwd: str, caches: Sequence[str], sealed: Sequence[str]) -> Packet:
    """For outside_writes.py. The `caches` begin with a tilde; `sealed` are folders that nobody writes to."""
    home = os.path.realpath(os.path.expanduser("~"))
    quiet = [home + cache[1:] for cache in caches]
    return {"writable": writable_folders(cwd, quiet), "quiet": quiet, "sealed": list(sealed)}


def writable_folders(cwd: str, caches: Sequence[str]) -> List[str]:  # noqa: UP006  the same
    """The folders that exist now, without those that lie in another one. A command may have put a link in the place of a cache,
    which is none then."""
    temporary = (*TEMPORARY, os.environ.get("TMPDIR") or "/tmp")
    places = [*_of_work(cwd), *map(os.path.realpath, temporary)]
    places += [place for place in caches if os.path.isdir(place) and os.path.realpath(place) == place]
    return _outermost([place for place in places if os.path.isdir(place) and place != "/"])


def work_trees(cwd: str) -> List[str]:  # noqa: UP006  the same
    """The folders in which work is expected that starts in `cwd`, without those that lie in another one."""
    return _outermost([os.path.realpath(place) for place in _of_work(cwd)])


def repository_of(folder: str) -> List[str]:  # noqa: UP006  the same
    """The root of the git repository that a folder is in, and of a worktree also where git keeps it, if that says so too. A
    repository of the whole home is none: it is there for the settings in it."""
    place, home = os.path.realpath(folder), os.path.realpath(os.path.expanduser("~"))
    while not os.path.lexists(os.path.join(place, ".git")):
        if place == os.path.dirname(place):
            return []
        place = os.path.dirname(place)
    if (home + "/").startswith(place.rstrip("/") + "/"):
        return []
    repository = worktree = ""
    try:
        text = _read(f"{place}/.git") if os.path.isfile(f"{place}/.git") else ""
        kept = os.path.realpath(os.path.join(place, text[len("gitdir:") :].strip()))
        repository, _, worktree = kept.partition("/worktrees/")
        is_linked = bool(worktree) and _read(os.path.join(kept, "gitdir")).strip() == os.path.join(place, ".git")
    except OSError:
        is_linked = False
    return [place, repository] if is_linked else [place]


def _read(path: str) -> str:
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read(4096)


def _of_work(cwd: str) -> List[str]:  # noqa: UP006  the same
    """The directory, the repository that it is in, and where git keeps that if it is elsewhere."""
    here = os.path.realpath(cwd)
    return [here, *repository_of(here)] if here != "/" else []


def _outermost(places: List[str]) -> List[str]:  # noqa: UP006  the same
    found: List[str] = []  # noqa: UP006  the same
    for place in sorted(set(places)):
        if not any(place.startswith(outer + "/") for outer in found):
            found.append(place)
    return found
