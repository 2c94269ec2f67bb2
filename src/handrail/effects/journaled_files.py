"""The files of a task for tools that write: what is there before goes into the journal first."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..environments.shell_host.file_journal import FileJournal
    from ..protocols import Files, FileStat


class JournaledFiles:
    """`protocols.Files`. `begin` is called with the path before each change, and gives the number of the call; `journal` is that
    of this machine. Files elsewhere are kept where they are."""

    def __init__(self, files: Files, begin: Callable[[str], int], journal: FileJournal) -> None:
        self._files, self._begin, self._journal = files, begin, journal

    def __getattr__(self, name: str) -> Any:
        return getattr(self._files, name)

    def write(self, path: str, data: bytes, *, mode: int | None = None) -> FileStat:
        resolved = self._files.resolve(path)
        return self._files.write(path, data, mode=mode, **self._kept(resolved, is_replaced=True))

    def remove(self, path: str) -> None:
        folder, _, name = path.rstrip("/").rpartition("/")
        parent = self._files.resolve(folder or ("/" if path.startswith("/") else "."))
        self._files.remove(path, **self._kept(os.path.join(parent, name), is_replaced=False))

    def _kept(self, path: str, *, is_replaced: bool) -> dict[str, int]:
        """Keep what is there, or say for which call that is to be done elsewhere."""
        number, here = self._begin(path), self._files.host_path(os.path.dirname(path))
        if number and here is not None:
            self._journal.keep(number, os.path.join(here, os.path.basename(path)), is_replaced=is_replaced)
        return {"call": number} if number and here is None else {}
