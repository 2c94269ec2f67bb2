"""The platforms' libraries, which are imported when an account connects."""

from __future__ import annotations

import asyncio
from importlib import import_module

from ..errors import ConfigError


async def load_sdk(platform: str, module: str, *, extra: str) -> None:
    """Import a library in a thread: some take a second, and the server must not stop for that."""
    try:
        await asyncio.to_thread(import_module, module)
    except ImportError:
        raise ConfigError(f"{platform} needs one more package: pip install 'handrail[{extra}]'") from None
