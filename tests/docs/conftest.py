"""What the examples of the documentation need."""

from __future__ import annotations

from tests.tools.media.conftest import provider

__all__ = ["provider"]
