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
    """An authenticated client. `by_cookie`: a browser sends it by itself, so the request needs one more proof."""

    name: str
    role: Role
    by_cookie: bool = False
