"""The configuration that holds for a call."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..config import Config
    from ..types import ToolContext


def config_of(context: ToolContext | None) -> Config:
    """The runtime's own; a handler that is called without one reads the file."""
    if context is not None:
        return context.config
    from ..config import load_config

    return load_config()
