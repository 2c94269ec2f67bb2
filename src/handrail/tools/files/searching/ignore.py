"""Tell what a tree's `.gitignore` files leave out."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ....environments.shell_host.stash import NAME as STASH
from ....errors import ToolError

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

    from ....protocols import Files

IGNORE_FILE = ".gitignore"
REPOSITORY = ".git"
UNDO_FOLDER = f"{STASH}-"  # what calls have deleted is kept in such a folder, see `stash`
_MAX_BYTES = 1 << 20


class Rules(NamedTuple):
    """The rules that hold in a folder: its own, then those of the folders around it. Paths are absolute."""

    own: tuple[tuple[str, GitIgnoreSpec], ...] = ()

    def ignores(self, path: str, *, is_dir: bool) -> bool:
        for folder, spec in self.own:
            verdict = spec.check_file(path[len(folder) :] + ("/" if is_dir else "")).include
            if verdict is not None:
                return verdict
        return False

    def inside(self, files: Files, folder: str, names: frozenset[str]) -> Rules:
        """The rules in a folder below, which holds `names`. A repository inside of another goes by its own rules."""
        around = () if REPOSITORY in names else self.own
        spec = _load(files, folder) if IGNORE_FILE in names else None
        return Rules(around if spec is None else ((_slash(folder), spec), *around))


def rules_above(files: Files, folder: str) -> Rules | None:
    """What the repository around a folder says of it. None outside of a repository, and in a folder that it ignores:
    whoever searches there wants to find what is there.
    """
    outer: list[str] = []
    here = folder
    while not _holds(files, here, REPOSITORY):
        if here == "/":
            return None
        here = here.rpartition("/")[0] or "/"
        outer.append(here)
    loaded = [(_slash(above), spec) for above in outer if (spec := _load(files, above)) is not None]
    rules = Rules(tuple(loaded))
    return None if rules.ignores(folder, is_dir=True) else rules


def _load(files: Files, folder: str) -> GitIgnoreSpec | None:
    from pathspec import GitIgnoreSpec

    try:
        if not _holds(files, folder, IGNORE_FILE):
            return None
        data = files.read(_slash(folder) + IGNORE_FILE, max_bytes=_MAX_BYTES)
    except ToolError:
        return None  # unreadable, or not a file: git goes on without it too
    text = data.decode("utf-8-sig", "replace").replace("\r\n", "\n")
    try:
        return GitIgnoreSpec.from_lines(text.split("\n"))
    except ValueError:
        return GitIgnoreSpec.from_lines(line for line in text.split("\n") if _valid(line))


def _valid(line: str) -> bool:
    from pathspec import GitIgnoreSpec

    try:
        GitIgnoreSpec.from_lines([line])
    except ValueError:
        return False
    return True


def _holds(files: Files, folder: str, name: str) -> bool:
    try:
        return files.stat(_slash(folder) + name) is not None
    except ToolError:
        return False


def _slash(folder: str) -> str:
    return folder if folder.endswith("/") else folder + "/"
