"""A server that takes messages, as the tests of messages have it."""

from __future__ import annotations

from ..tools.messages.conftest import posted, target

__all__ = ["posted", "target"]
