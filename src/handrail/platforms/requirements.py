"""What an account needs before it can be connected: its platform's library, and its token."""

from __future__ import annotations

import asyncio
from importlib import import_module

from ..config.keys import key_of
from ..errors import ConfigError


async def library(platform: str, module: str, *, extra: str) -> None:
    """Import it, in a thread: some take a second, in which the server must go on."""
    try:
        await asyncio.to_thread(import_module, module)
    except ImportError:
        raise ConfigError(f"{platform} needs one more package: pip install 'handrail[{extra}]'") from None


def token_of(variable: str) -> str:
    token = key_of(variable)
    if not token:
        raise ConfigError(f"{variable or 'the variable of the token'} is not set; it holds the account's token")
    return token
