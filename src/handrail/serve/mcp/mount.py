"""The MCP server as a part of `handrail serve`: the same tokens, the same checks, and questions that the console sees too."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING, Any

from ..endpoint import HttpError, refusal
from ..roles import Role, Who

if TYPE_CHECKING:
    from starlette.requests import Request

    from ...app import Handrail
    from ..access_control import Guard


class McpEndpoint:
    """An ASGI application for one path. `running` must be open while it is used.

    The SDK takes longer to import than all the rest of the server, so that only the first who asks waits for it.
    """

    def __init__(self, here: Handrail, guard: Guard, note: Callable[[Request, Who, int], None]) -> None:
        self._here, self._guard, self._note = here, guard, note
        self._wanted = asyncio.Event()
        self._ready: asyncio.Future[Any]

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        self._ready = asyncio.get_running_loop().create_future()
        keeping = asyncio.create_task(self._keep())
        try:
            yield
        finally:
            keeping.cancel()
            await asyncio.wait({keeping})

    async def _keep(self) -> None:
        await self._wanted.wait()
        try:
            app = await asyncio.to_thread(self._built)
            async with app.router.lifespan_context(app):
                self._ready.set_result(app)
                await asyncio.Event().wait()
        except Exception as error:  # noqa: BLE001  told to whoever asks
            self._ready.set_exception(error)

    def _built(self) -> Any:
        from mcp.server.transport_security import TransportSecuritySettings

        from .server import HandrailServer

        # The whole server has looked at Host and Origin already.
        unchecked = TransportSecuritySettings(enable_dns_rebinding_protection=False)
        return HandrailServer(self._here).build().streamable_http_app(transport_security=unchecked)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        from starlette.requests import ClientDisconnect, Request

        request = Request(scope)
        try:
            who = self._guard.admit(request, Role.OPERATE)
        except HttpError as error:
            await refusal(error)(scope, receive, send)
            return
        self._wanted.set()
        app = await asyncio.shield(self._ready)

        async def noted(message: Any) -> None:
            if message["type"] == "http.response.start" and request.method != "GET":
                self._note(request, who, message["status"])
            await send(message)

        with contextlib.suppress(ClientDisconnect):
            await app(scope, receive, noted)
