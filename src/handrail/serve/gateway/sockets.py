"""A WebSocket on which a platform tells what is new, as JSON."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

from ...errors import ConfigError
from .base import Unreachable

if TYPE_CHECKING:
    import aiohttp

_SECONDS = 30.0


class Socket:
    """Made by `opened`. What is received is a mapping; anything else is left out."""

    def __init__(self, what: str, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._what, self._socket = what, socket

    async def send(self, value: object) -> None:
        try:
            await self._socket.send_str(json.dumps(value))
        except (OSError, RuntimeError) as error:
            raise Unreachable(f"{self._what}: the connection is lost ({type(error).__name__})") from None

    async def receive(self) -> dict[str, Any]:
        """Raises Unreachable when the connection is over."""
        import aiohttp

        while True:
            message = await self._socket.receive()
            if message.type is not aiohttp.WSMsgType.TEXT:
                raise Unreachable(f"{self._what}: the connection is over")
            with contextlib.suppress(ValueError):
                told = json.loads(message.data)
                if isinstance(told, dict):
                    return told


@contextlib.asynccontextmanager
async def opened(what: str, url: str, *, extra: str) -> AsyncIterator[Socket]:
    try:
        import aiohttp
    except ImportError:
        raise ConfigError(f"{what} needs one more package: pip install 'handrail[{extra}]'") from None
    async with aiohttp.ClientSession() as session:
        try:
            async with asyncio.timeout(_SECONDS):
                socket = await session.ws_connect(url, heartbeat=_SECONDS, max_msg_size=16 * 1024 * 1024)
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            raise Unreachable(f"{what} cannot be reached: {type(error).__name__}") from None
        async with socket:
            yield Socket(what, socket)
