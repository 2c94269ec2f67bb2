"""What somebody may do: see, answer what is asked, or work with the tools."""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple


class Role(IntEnum):
    """Each may do what those before it may."""

    WATCH = 1
    APPROVE = 2
    OPERATE = 3

    @property
    def word(self) -> str:
        return self.name.lower()

    @classmethod
    def named(cls, word: str) -> Role:
        """Raises ValueError."""
        try:
            return cls[word.upper()]
        except KeyError:
            raise ValueError(f"unknown role {word!r}; known: {', '.join(role.word for role in cls)}") from None


class Who(NamedTuple):
    """Somebody who has shown who they are. `by_cookie`: a browser sent it by itself, so the request needs to prove more."""

    name: str
    role: Role
    by_cookie: bool = False
