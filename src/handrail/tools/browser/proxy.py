"""The browser's proxy: it resolves every name itself and connects only where the guard allows.

Rules inside the browser would miss redirects, web sockets and names that change their address; this sees every connection.
"""

from __future__ import annotations

from collections import deque
from urllib.parse import urlsplit

from ...egress.proxy import REFUSED_HEADER, Program, Proxy
from ...errors import ToolError
from ...net.url_guard import Guard

__all__ = ["REFUSED_HEADER", "GuardProxy", "target_host"]


class GuardProxy:
    """Listens on loopback. `refusals` are the last connections that were not made: the host, and why."""

    def __init__(self, guard: Guard) -> None:
        self.guard = guard
        self._proxy, self._url = Proxy(self, is_open=True), ""
        self.refusals: deque[tuple[str, ToolError]] = deque(maxlen=50)

    async def address(self) -> str:
        """Where it listens, from now on."""
        self._url = self._url or await self._proxy.start()
        return self._url

    async def close(self) -> None:
        await self._proxy.close()

    def refusal_of(self, host: str) -> ToolError | None:
        """Why the last connection to the host was not made."""
        return next((error for name, error in reversed(self.refusals) if name == host), None)

    async def addresses(self, host: str, port: int, _: Program) -> list[str]:
        try:
            return await self.guard.addresses(host, port)
        except ToolError as error:
            self.refusals.append((host, error))
            raise

    async def misplaced(self, *_: object) -> None:
        """A browser has no keys."""

    def refuse(self, why: str) -> None:
        """Nor has it an authority that it could distrust."""


def target_host(url: str) -> str:
    return urlsplit(url).hostname or ""
