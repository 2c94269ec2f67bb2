"""The configuration that holds for a call, and what a tool of the web needs to be installed."""

from __future__ import annotations

from importlib.machinery import PathFinder
from typing import TYPE_CHECKING

from ...types import Unavailable

if TYPE_CHECKING:
    from ...config import Config
    from ...types import ToolContext


def config_of(context: ToolContext | None) -> Config:
    """The runtime's own; a handler that is called without one reads the file."""
    if context is not None and context.environments is not None:
        return context.environments.config
    from ...config import load_config

    return load_config()


def missing(extra: str, *modules: str) -> Unavailable | None:
    """What to install, if one of the modules is not there."""
    absent = [module for module in modules if PathFinder.find_spec(module) is None]
    if not absent:
        return None
    return Unavailable(f"{', '.join(absent)} is not installed", f"pip install 'handrail[{extra}]'")
