"""The files of a task for tools that write: what is there before goes into the journal first."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ..environments.shell_host.journal_undo import lstat

if TYPE_CHECKING:
    from ..environments.shell_host.journal import CallJournal
    from ..protocols import FileEntry, Files, FileStat


class JournaledFiles:
    """`protocols.Files`. `begin` is called with the path before the first change, and gives the number of the call; `journal`
    gives the journal of this machine, for files that this process finds here."""

    def __init__(self, files: Files, begin: Callable[[str], int], journal: Callable[[], CallJournal]) -> None:
        self._files, self._begin, self._journal = files, begin, journal

    @property
    def max_read_bytes(self) -> int:
        return self._files.max_read_bytes

    def resolve(self, path: str) -> str:
        return self._files.resolve(path)

    def stat(self, path: str) -> FileStat | None:
        return self._files.stat(path)

    def entries(self, path: str) -> Sequence[FileEntry]:
        return self._files.entries(path)

    def read(self, path: str, *, max_bytes: int, offset: int = 0) -> bytes:
        return self._files.read(path, max_bytes=max_bytes, offset=offset)

    def host_path(self, path: str) -> str | None:
        return self._files.host_path(path)

    def write(self, path: str, data: bytes, *, mode: int | None = None) -> FileStat:
        resolved = self._files.resolve(path)
        number = self._begin(resolved)
        here = self._files.host_path(resolved)
        if number and here is None:
            return self._files.write(path, data, mode=mode, call=number)
        if number and here is not None:
            self._keep(here, is_replaced=True)
        return self._files.write(path, data, mode=mode)

    def remove(self, path: str) -> None:
        folder, _, name = path.rstrip("/").rpartition("/")
        parent = self._files.resolve(folder or ("/" if path.startswith("/") else "."))
        number = self._begin(os.path.join(parent, name))
        here = self._files.host_path(parent)
        if number and here is None:
            self._files.remove(path, call=number)
            return
        if number and here is not None:
            self._keep(os.path.join(here, name), is_replaced=False)
        self._files.remove(path)

    def _keep(self, path: str, *, is_replaced: bool) -> None:
        """A file is written anew and renamed over the old one, which goes into the stash as it is."""
        journal, found = self._journal(), lstat(path)
        if found is not None:
            journal.remove(path, found)
        if not is_replaced:
            return
        missing = path
        while found is None and missing != "/" and lstat(os.path.dirname(missing)) is None:
            missing = os.path.dirname(missing)
        journal.create(missing, is_folder=missing != path)
