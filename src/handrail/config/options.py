"""How a setting is written down: its default, its text and its limits in one place."""

from __future__ import annotations

from dataclasses import field
from typing import Any, TypeVar

MIB = 1024 * 1024
GIB = 1024 * MIB
# Above these a value is a slip of the keyboard, and would overflow a timer or a date further down.
LONGEST_SECONDS = 366 * 24 * 3600
LONGEST_DAYS = 36_500
LARGEST_COUNT = 1_000_000
LARGEST_SIZE = 2**53

T = TypeVar("T")


def option(default: T, doc: str, **limits: int) -> T:
    """A setting: its default, what it does, and JSON Schema limits such as `minimum=1`."""
    return field(default=default, metadata={"doc": doc, "limits": limits})


def named(doc: str) -> dict[str, Any]:
    """Groups of settings under names that the user chooses."""
    return field(default_factory=dict, metadata={"doc": doc})
