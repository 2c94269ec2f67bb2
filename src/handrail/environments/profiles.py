"""The profiles of local commands: what they may write and reach without a question.

contained   the work tree, folders for temporary files and caches are writable; other writes, and connections to hosts that are
            not listed, wait for your answer
open        commands may do what you may, with `sudo`; only the gate protects Handrail's own files
sealed      no network, nothing outside of the work tree is written, and nobody is asked
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import InvalidArguments

if TYPE_CHECKING:
    from .shell_host.wire import Packet

_CACHES = Path(__file__).with_name("writable_caches.txt")


class Profile(StrEnum):
    CONTAINED = "contained"
    OPEN = "open"
    SEALED = "sealed"


MEANINGS = {
    Profile.CONTAINED: "writes outside of the work tree wait for your answer",
    Profile.OPEN: "commands may write everything that you may, and `sudo` works; only file tools can be undone",
    Profile.SEALED: "no network, and nothing outside of the work tree is written",
}


TEMPORARY = ("/tmp", "/var/tmp", "/dev/shm")


def read_profile(name: str) -> Profile:
    """Raises InvalidArguments."""
    try:
        return Profile(name.strip().lower())
    except ValueError:
        raise InvalidArguments(f"there is no profile {name!r}; choose contained, open or sealed") from None


def writable_folders(cwd: str, profile: Profile | None) -> list[str]:
    """The folders that exist now, without those that lie in another one."""
    temporary = (*TEMPORARY, os.environ.get("TMPDIR") or "/tmp")
    places = [*_work_trees(cwd), *map(os.path.realpath, temporary)]
    if profile is Profile.CONTAINED:
        places += [place for place in _caches() if os.path.isdir(place) and os.path.realpath(place) == place]
    return _outermost([place for place in places if os.path.isdir(place) and place != "/"])


def work_trees(cwd: str) -> list[str]:
    """The folders in which work is expected that starts in `cwd`, without those that lie in another one."""
    return _outermost([os.path.realpath(place) for place in _work_trees(cwd)])


def contained_policy(cwd: str, profile: Profile | None, sealed: Sequence[str]) -> Packet | None:
    """For shell_host/outside_writes.py; None if everything is writable. `sealed` are the folders that nobody writes to."""
    if profile is None or profile is Profile.OPEN:
        return None
    quiet = _caches() if profile is Profile.CONTAINED else []
    return {"writable": writable_folders(cwd, profile), "quiet": quiet, "sealed": list(sealed)}


def repository_of(folder: str) -> list[str]:
    """The root of the git repository that a folder is in, and of a worktree also where git keeps it, if that says so too.

    A repository of the whole home is none: it is there for the settings in it.
    """
    place, home = os.path.realpath(folder), os.path.realpath(os.path.expanduser("~"))
    while not os.path.lexists(os.path.join(place, ".git")):
        if place == os.path.dirname(place):
            return []
        place = os.path.dirname(place)
    if (home + "/").startswith(place.rstrip("/") + "/"):
        return []
    repository = worktree = ""
    try:
        text = Path(place, ".git").read_text("utf-8", "replace") if os.path.isfile(f"{place}/.git") else ""
        kept = os.path.realpath(os.path.join(place, text.removeprefix("gitdir:").strip()))
        repository, _, worktree = kept.partition("/worktrees/")
        with open(os.path.join(kept, "gitdir"), encoding="utf-8", errors="replace") as file:
            is_linked = bool(worktree) and file.read(4096).strip() == os.path.join(place, ".git")
    except OSError:
        is_linked = False
    return [place, repository] if is_linked else [place]


def _work_trees(cwd: str) -> list[str]:
    """Where work is expected: the repository that the directory is in, and where git keeps it if that is elsewhere."""
    here = os.path.realpath(cwd)
    return [here, *repository_of(here)] if here != "/" else []


def _caches() -> list[str]:
    """Whether they exist or not. A command may have put a link in the place of one, which is no cache then."""
    home = os.path.realpath(os.path.expanduser("~"))
    return [home + line[1:] for line in _listed_caches()]


@cache
def _listed_caches() -> list[str]:
    return [line for line in _CACHES.read_text("utf-8").splitlines() if line.startswith("~/")]


def _outermost(places: list[str]) -> list[str]:
    found: list[str] = []
    for place in sorted(set(places)):
        if not any(place.startswith(outer + "/") for outer in found):
            found.append(place)
    return found
