"""A server that takes messages, as the tests of messages have it."""

from __future__ import annotations

from ..platforms.conftest import posted, target

__all__ = ["posted", "target"]
