"""Temporary folders of this process, for sockets: with short paths, and found again after a kill."""

import contextlib
import os
import shutil
import stat
import tempfile

from ..base.temporary_folders import every_folder, left_folders, make_folder

# A socket's address has 107 bytes.
_MAX_PLACE = 40
# The folders for browsers. Named here, because those who prune them may not have the browser's packages.
BROWSER = "browser"


def make(kind: str) -> str:
    """Make one that only this user can enter."""
    places = _places()
    if not places:
        raise FileNotFoundError(2, "there is no folder for temporary files that has a short path", "/tmp")
    return make_folder(kind, _parent(places[0]))


def shared_parents() -> list[str]:
    """The folders that have them all. Commands of an agent do not see what is in these."""
    return [_parent(place) for place in _places()]


def left_behind(kind: str) -> list[str]:
    """Those of this user whose process has ended."""
    return [folder for place in _real_parents() for folder in left_folders(kind, place)]


def every(kind: str) -> list[str]:
    """Those of this user, of all processes."""
    return [folder for place in _real_parents() for folder in every_folder(kind, place)]


def prune_browsers(*, dry_run: bool) -> list[str]:
    """Remove what killed processes left, unless `dry_run`. Returns one line each."""
    found = left_behind(BROWSER)
    if not dry_run:
        for folder in found:
            shutil.rmtree(folder, ignore_errors=True)
    return [f"browser: {folder}, of a process that has ended" for folder in found]


def _real_parents() -> list[str]:
    return list(dict.fromkeys(map(os.path.realpath, shared_parents())))


def _parent(place: str) -> str:
    """This user's folder below a place for temporary files, made if it is missing. Raises PermissionError if it is not ours."""
    folder = os.path.join(place, f".handrail-{os.getuid()}")
    with contextlib.suppress(FileExistsError):
        os.mkdir(folder, 0o700)
    found = os.lstat(folder)
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o077:
        raise PermissionError(1, "it does not belong to this user alone; remove it", folder)
    return folder


def _places() -> list[str]:
    places = (os.environ.get("XDG_RUNTIME_DIR", ""), tempfile.gettempdir(), "/tmp")
    short = (place for place in places if os.path.isdir(place) and len(place) <= _MAX_PLACE)
    return [place for place in short if os.access(place, os.W_OK | os.X_OK)]
