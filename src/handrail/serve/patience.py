"""Who opens a connection and says nothing, or says it letter by letter, is hung up on."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from uvicorn.protocols.http.h11_impl import H11Protocol

HEADER_SECONDS = 10.0


def protocol() -> type[H11Protocol]:
    """uvicorn's, which has no limit for the time that a request's head takes, with one."""
    from uvicorn.protocols.http.h11_impl import H11Protocol

    class Impatient(H11Protocol):
        _waiting: asyncio.TimerHandle | None = None
        _seen: Any = None

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self._waiting = self.loop.call_later(HEADER_SECONDS, self._hang_up)

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            if self.cycle is not self._seen:  # a whole head has come
                self._seen = self.cycle
                if self._waiting is not None:
                    self._waiting.cancel()
                    self._waiting = None

        def connection_lost(self, exc: Exception | None) -> None:
            if self._waiting is not None:
                self._waiting.cancel()
            super().connection_lost(exc)

        def _hang_up(self) -> None:
            self.transport.close()

    return Impatient
