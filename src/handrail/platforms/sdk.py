"""The platforms' libraries: imported when they are first used, so that listing platforms and sending stay light."""

from __future__ import annotations

import asyncio
from importlib import import_module
from typing import Any

from ..errors import ConfigError


class _LazyModule:
    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        return getattr(import_module(self._name), attribute)


def lazy_module(name: str) -> Any:
    """A module that is imported when one of its attributes is first read."""
    return _LazyModule(name)


async def load_sdk(platform: str, module: str, *, extra: str) -> None:
    """Import a library in a thread: some take a second, and the server must not stop for that."""
    try:
        await asyncio.to_thread(import_module, module)
    except ImportError:
        raise ConfigError(f"{platform} needs one more package: pip install 'handrail[{extra}]'") from None
