"""Walk a tree of files, without what `.gitignore` leaves out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ....errors import CallCancelled, ToolError
from .ignore import REPOSITORY, Rules

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ....protocols import Files


def walk(files: Files, top: str, rules: Rules, check: Callable[[], None]) -> Iterator[str]:
    """The regular files below `top`, as paths relative to it, in no particular order. Links are not followed.

    `check` is called for every folder, and ends the walk by raising.
    """
    base = top if top.endswith("/") else top + "/"
    pending = [(base, rules)]
    while pending:
        folder, outer = pending.pop()
        check()
        try:
            entries = files.entries(folder)
        except CallCancelled:
            raise
        except ToolError:
            if folder == base:
                raise
            continue  # a folder that may not be read is as good as empty
        inner = outer.inside(files, folder, frozenset(entry.name for entry in entries))
        for entry in entries:
            path = folder + entry.name
            if entry.name == REPOSITORY or not (entry.is_dir or entry.is_file):
                continue
            if inner.ignores(path, is_dir=entry.is_dir):
                continue
            if entry.is_dir:
                pending.append((path + "/", inner))
            else:
                yield path[len(base) :]
