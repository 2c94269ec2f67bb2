"""The MCP server as a part of `handrail serve`: the same tokens, the same checks, and questions that the console sees too."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

from ..endpoint import HttpError, refusal
from ..roles import Role
from .server import HandrailServer

if TYPE_CHECKING:
    from ...model_tools import Handrail
    from ..guard import Guard

PATH = "/mcp"


class McpEndpoint:
    """An ASGI application for one path. `running` must be open while it is used."""

    def __init__(self, here: Handrail, guard: Guard) -> None:
        from mcp.server.transport_security import TransportSecuritySettings

        self._guard = guard
        # The whole server has looked at Host and Origin already.
        unchecked = TransportSecuritySettings(enable_dns_rebinding_protection=False)
        self._app: Any = HandrailServer(here).build().streamable_http_app(transport_security=unchecked)

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        async with self._app.router.lifespan_context(self._app):
            yield

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        from starlette.requests import Request

        try:
            self._guard.admit(Request(scope), Role.OPERATE)
        except HttpError as error:
            await refusal(error)(scope, receive, send)
            return
        await self._app(scope, receive, send)
