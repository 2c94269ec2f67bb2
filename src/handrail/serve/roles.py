"""Roles: watch, answer questions, or operate the tools."""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple


class Role(IntEnum):
    """Each includes those before it."""

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
    """An authenticated client. `credential` names what let it in: while that holds, so does whatever was made from it.
    `login` is the id of a browser's login."""

    name: str
    role: Role
    credential: str = ""
    login: str = ""
