"""What is searched for, and what was found. Globs are `*.py`, `src/**/*.ts`, `*.{js,ts}`, `!*.min.js`. What a tree's
`.gitignore` files name is left out."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from ....environments.shell_host.journal import STASH
from ....errors import CallTimeout, InvalidArguments, ToolError
from ....files.failures import shown
from ....types import CancelToken

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

    from ....protocols import Files

_MAX_ALTERNATIVES = 100
IGNORE_FILE = ".gitignore"
REPOSITORY = ".git"
UNDO_FOLDER = f"{STASH}-"  # what calls have deleted is kept in such a folder, see `stash`
_MAX_BYTES = 1 << 20
MAX_TEXT_CHARS = 500
_LEAD_CHARS = 100


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
    """What the repository around a folder says of it. None outside of a repository, and in a folder that it ignores: whoever
    searches there wants to find what is there."""
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


class Glob:
    """A glob without a slash is held against the name, one with a slash against the path below the searched folder."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.negated = text.startswith("!")
        self.alternatives = _expanded(text.removeprefix("!").removeprefix("./"))
        self._names = [alternative for alternative in self.alternatives if "/" not in alternative]
        # A folder means everything in it.
        paths = [f"{each}**" if each.endswith("/") else each for each in self.alternatives if "/" in each]
        self._paths = [path.removeprefix("/").split("/") for path in paths]

    def __call__(self, path: str) -> bool:
        steps = path.split("/")
        by_name = any(glob == "**" or fnmatchcase(steps[-1], glob) for glob in self._names)
        return (by_name or any(_fits(glob, steps) for glob in self._paths)) is not self.negated

    @property
    def names_only(self) -> bool:
        """Whether the name alone decides."""
        return not self.negated and not self._paths

    @property
    def has_wildcard(self) -> bool:
        return any(mark in alternative for alternative in self.alternatives for mark in "*?[")


def _fits(glob: Sequence[str], steps: Sequence[str]) -> bool:
    # `**` matches any number of folders: on a mismatch go back to the last one and let it take one more.
    at_glob = at_step = 0
    star, taken = -1, 0
    while at_step < len(steps):
        if at_glob < len(glob) and glob[at_glob] == "**":
            star, taken = at_glob, at_step
            at_glob += 1
        elif at_glob < len(glob) and fnmatchcase(steps[at_step], glob[at_glob]):
            at_glob += 1
            at_step += 1
        elif star >= 0:
            taken += 1
            at_glob, at_step = star + 1, taken
        else:
            return False
    return at_glob == len(glob)


def _expanded(text: str) -> list[str]:
    """Braces written out. A brace that is not closed, or has no comma, is literal."""
    done: list[str] = []
    todo = [text]
    while todo:
        glob = todo.pop(0)
        opening, closing, commas = _first_braces(glob)
        if closing < 0:
            done.append(glob)
        else:
            cuts = [opening, *commas, closing]
            todo += [glob[:opening] + glob[start + 1 : end] + glob[closing + 1 :] for start, end in pairwise(cuts)]
        if len(done) + len(todo) > _MAX_ALTERNATIVES:
            raise InvalidArguments(f"the glob {shown(text)} has too many alternatives; search for fewer at a time")
    return done


def _first_braces(glob: str) -> tuple[int, int, list[int]]:
    """Where the first pair of braces with a comma begins and ends, and its commas; -1 when there is none."""
    for opening, mark in enumerate(glob):
        if mark != "{":
            continue
        depth, commas = 0, []
        for at in range(opening, len(glob)):
            depth += (glob[at] == "{") - (glob[at] == "}")
            if glob[at] == "," and depth == 1:
                commas.append(at)
            if depth == 0:
                if commas:
                    return opening, at, commas
                break
    return -1, -1, []


def clip(line: str, start: int = 0) -> str:
    """A line as it is shown: of a long one the part around `start`."""
    if len(line) <= MAX_TEXT_CHARS:
        return line
    first = max(0, min(start - _LEAD_CHARS, len(line) - MAX_TEXT_CHARS))
    last = first + MAX_TEXT_CHARS
    return ("…" if first else "") + line[first:last] + ("…" if last < len(line) else "")


class Hit(NamedTuple):
    """One line that matches, and the lines around it. `path` is relative to the searched folder."""

    path: str
    line: int
    text: str
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Query:
    """A search below a folder, or in the one file `only`. `first` to `last` (excluded) are the hits wanted, from 0."""

    top: str
    pattern: str = ""
    only: str | None = None
    glob: Glob | None = None
    above: Rules | None = None
    first: int = 0
    last: int = 0
    context: int = 0
    seconds: float = 50.0
    cancel: CancelToken = field(default_factory=CancelToken)
    started: float = field(default_factory=time.monotonic)

    @property
    def seconds_left(self) -> float:
        return self.started + self.seconds - time.monotonic()

    def check(self) -> None:
        """Raise when the search is to end: CallCancelled or CallTimeout."""
        self.cancel.raise_if_cancelled()
        if self.seconds_left <= 0:
            raise self.too_long()

    def too_long(self) -> CallTimeout:
        return CallTimeout(
            f"the search did not end within {self.seconds:g} seconds and was stopped; search a smaller folder, "
            "give file_glob, or use a simpler pattern"
        )

    def wants(self, path: str) -> bool:
        return self.glob is None or self.glob(path)


class Found(NamedTuple):
    """Files with the number of their lines that match, sorted by path; and the hits that were wanted, in that order."""

    counts: list[tuple[str, int]]
    hits: list[Hit]
