"""The MCP server as a part of `handrail serve`: same tokens, same checks, and its questions appear in the console too."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING, Any

from ...approval.display import visible
from ..access_control import WrongCredentials
from ..endpoint import HttpError, refusal
from ..roles import Role, Who

if TYPE_CHECKING:
    from starlette.requests import Request

    from ...app import Handrail
    from ..access_control import Guard

# Enough to know what a message is about.
_MAX_HEARD = 1 << 20


class McpEndpoint:
    """An ASGI application for one path. `running` must be open while it is used.

    The SDK takes longer to import than the rest of the server, so it is imported at the first request.
    """

    def __init__(self, app: Handrail, guard: Guard, audit: Callable[[Request, Who | None, int, str], None]) -> None:
        self._app, self._guard, self._audit = app, guard, audit
        self._wanted = asyncio.Event()
        self._ready: asyncio.Future[Any]

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        self._ready = asyncio.get_running_loop().create_future()
        serving = asyncio.create_task(self._serve())
        try:
            yield
        finally:
            serving.cancel()
            await asyncio.wait({serving})

    async def _serve(self) -> None:
        await self._wanted.wait()
        try:
            app = await asyncio.to_thread(self._built)
            async with app.router.lifespan_context(app):
                self._ready.set_result(app)
                await asyncio.Event().wait()
        except Exception as error:  # noqa: BLE001  raised in every request
            self._ready.set_exception(error)

    def _built(self) -> Any:
        from mcp.server.transport_security import TransportSecuritySettings

        from .server import HandrailServer

        # The server has checked Host and Origin already.
        unchecked = TransportSecuritySettings(enable_dns_rebinding_protection=False)
        return HandrailServer(self._app).build().streamable_http_app(transport_security=unchecked)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        from starlette.requests import ClientDisconnect, Request

        request = Request(scope)
        try:
            who = self._guard.admit(request, Role.OPERATE)
        except HttpError as error:
            if isinstance(error, WrongCredentials):
                self._audit(request, None, error.status, f"refused: {error}")
            await refusal(error)(scope, receive, send)
            return
        self._wanted.set()
        app = await asyncio.shield(self._ready)

        heard = bytearray()

        async def listening() -> Any:
            message = await receive()
            heard.extend(message.get("body", b"")[: _MAX_HEARD - len(heard)])
            return message

        async def audited(message: Any) -> None:
            if message["type"] == "http.response.start" and request.method != "GET":
                self._audit(request, who, message["status"], _detail(heard))
            await send(message)

        with contextlib.suppress(ClientDisconnect):
            await app(scope, listening, audited)


def _detail(body: bytearray) -> str:
    """What an MCP message is about: its method and, for a call, the tool."""
    try:
        message = json.loads(body)
        words = [message.get("method"), (message.get("params") or {}).get("name")]
    except (ValueError, AttributeError, RecursionError):
        return ""
    return visible(" ".join(each for each in words if isinstance(each, str)))
