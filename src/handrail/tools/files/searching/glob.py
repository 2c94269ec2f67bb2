"""Match paths by globs: `*.py`, `src/**/*.ts`, `*.{js,ts}`, `!*.min.js`."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from fnmatch import fnmatchcase

from ....errors import InvalidArguments
from ....files.failures import shown

_MAX_ALTERNATIVES = 100


class Glob:
    """A glob without a slash is held against the name, one with a slash against the path below the searched folder."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.negated = text.startswith("!")
        self.alternatives = _expanded(text.removeprefix("!").removeprefix("./"))
        self._names = [alternative for alternative in self.alternatives if "/" not in alternative]
        self._paths = [_steps(alternative) for alternative in self.alternatives if "/" in alternative]

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


def _steps(glob: str) -> list[str]:
    """A folder means everything in it."""
    return (glob + "**" if glob.endswith("/") else glob).removeprefix("/").split("/")


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
            todo += [
                glob[:opening] + glob[start + 1 : end] + glob[closing + 1 :] for start, end in itertools.pairwise(cuts)
            ]
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
