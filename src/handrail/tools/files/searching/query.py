"""What is searched for, and what was found."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from ....errors import CallTimeout
from ....types import CancelToken

if TYPE_CHECKING:
    from .glob import Glob
    from .ignore import Rules


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
