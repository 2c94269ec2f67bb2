"""Where the files are kept that a call deletes or replaces: on their own file system, so that keeping one is a hard link.

The stash of the journal's own file system lies in the journal. On another it lies in the topmost folder there that this user may
write to, in a folder that only this user can enter, and that git ignores.
"""

from __future__ import annotations

import os
import stat

NAME = ".handrail-undo"


class Stash:
    """`writer` makes the names unique: several processes may keep files of one call."""

    def __init__(self, journal: str, writer: str) -> None:
        self._journal, self._writer = os.path.realpath(journal), writer
        self._own = os.path.join(self._journal, "stash")
        self._folders: dict[int, str] = {}  # by device
        self._count = 0
        self._mark = f"/{NAME}-"

    def keep(self, path: str, device: int) -> str:
        """Link the file or symbolic link, which is on this device, into the stash, and return its path there.

        Raises OSError if that cannot be.
        """
        to = self._free_name(path, device)
        os.link(path, to, follow_symlinks=False)
        return to

    def new_name(self, path: str) -> str:
        """A free name on the file system of `path`, for something that is moved or copied there."""
        return self._free_name(path, os.stat(os.path.dirname(path) or "/").st_dev)

    def holds(self, path: str) -> bool:
        """Whether the path lies in the journal or in a stash, where no command has any business."""
        return self._mark in path or path.startswith(self._journal)

    def _free_name(self, path: str, device: int) -> str:
        folder = self._folders.get(device)
        if folder is None:
            folder = self._folders[device] = self._folder_for(os.path.dirname(path) or "/", device)
        self._count += 1
        return f"{folder}/{self._writer}-{self._count}"

    def _folder_for(self, parent: str, device: int) -> str:
        os.makedirs(self._own, mode=0o700, exist_ok=True)
        if os.stat(self._own).st_dev == device:
            return self._own
        return _private(os.path.join(_topmost(parent, device), f"{NAME}-{os.geteuid()}"))


def _topmost(folder: str, device: int) -> str:
    """The highest folder above on the same device that this user may write to."""
    best = folder
    while folder != "/":
        folder = os.path.dirname(folder)
        if os.stat(folder).st_dev != device:
            break
        if os.access(folder, os.W_OK | os.X_OK):
            best = folder
    return best


def _private(folder: str) -> str:
    """Make the folder, or check that it is ours: in /tmp anyone may have made it."""
    try:
        os.mkdir(folder, 0o700)
    except FileExistsError:
        found = os.lstat(folder)
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o077:
            raise PermissionError(1, "it belongs to another user", folder) from None
    ignore = os.path.join(folder, ".gitignore")
    if not os.path.exists(ignore):
        with open(ignore, "w") as file:
            file.write("*\n")
    return folder
