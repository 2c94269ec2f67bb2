"""The MCP server over HTTP: only with the token, and only with an accepted Host and Origin."""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import itertools
import json
from collections import deque
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

from ...approval.display import visible
from ...errors import StoreError
from ..access_control import Guard, WrongCredentials, allowed_hosts
from ..endpoint import SECURITY_HEADERS, HttpError, refusal
from ..tokens import Role

if TYPE_CHECKING:
    import socket

    from mcp.server import Server

    from ...app import Handrail
    from ..server import Address

TOKEN_VARIABLE = "HANDRAIL_MCP_TOKEN"
# The oldest of more are forgotten; a client that is away for longer starts again.
_MAX_EVENTS, _MAX_EVENT_CHARS = 5000, 32 << 20


class BearerOnly:
    """Answers 401 to every request without the token."""

    def __init__(self, app: Any, token: str) -> None:
        self._app = app
        self._wanted = f"Bearer {token}".encode()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        given = [value for name, value in scope.get("headers", ()) if name.lower() == b"authorization"]
        is_known = len(given) == 1 and hmac.compare_digest(given[0], self._wanted)
        if scope["type"] == "http" and not is_known:
            headers = [(b"content-type", b"text/plain"), (b"www-authenticate", b"Bearer")]
            headers += [(name.encode(), value.encode()) for name, value in SECURITY_HEADERS.items()]
            await send({"type": "http.response.start", "status": 401, "headers": headers})
            await send({"type": "http.response.body", "body": b"a bearer token is needed\n"})
            return
        await self._app(scope, receive, send)


def http_app(server: Server[Any], address: Address, token: str, *, names: tuple[str, ...] = ()) -> Any:
    """`names` are additional host names, such as that of a proxy."""
    from mcp.server.transport_security import TransportSecuritySettings

    hosts = sorted(allowed_hosts(address.host, address.port, names))
    security = TransportSecuritySettings(
        enable_dns_rebinding_protection=True,
        allowed_hosts=hosts,
        allowed_origins=[f"{scheme}://{host}" for host in hosts for scheme in ("http", "https")],
    )
    return BearerOnly(server.streamable_http_app(host=address.host, transport_security=security, **_resumable()), token)


def _resumable() -> dict[str, Any]:
    """A client whose stream was cut asks for the rest, after so many milliseconds."""
    return {"event_store": EventLog(), "retry_interval": 500}


class EventLog:
    """The events of HTTP streams, in memory, for clients whose stream was cut: an `EventStore` of the SDK."""

    def __init__(self) -> None:
        self._numbers = itertools.count(1)
        self._events: deque[tuple[int, str, Any, int]] = deque()
        self._chars = 0

    async def store_event(self, stream_id: str, message: Any) -> str:
        number = next(self._numbers)
        size = len(message.model_dump_json()) if message is not None else 0
        self._events.append((number, stream_id, message, size))
        self._chars += size
        while len(self._events) > _MAX_EVENTS or self._chars > _MAX_EVENT_CHARS:
            self._chars -= self._events.popleft()[3]
        return str(number)

    async def replay_events_after(self, last_event_id: str, send_callback: Any) -> str | None:
        from mcp.server.streamable_http import EventMessage

        last = int(last_event_id) if last_event_id.isdigit() else 0
        stream = next((each[1] for each in self._events if each[0] == last), None)
        for number, owner, message, _ in list(self._events):
            if owner == stream and number > last and message is not None:
                await send_callback(EventMessage(message, str(number)))
        return stream


async def serve_http(app: Any, listener: socket.socket) -> None:
    import uvicorn

    config = uvicorn.Config(app, log_level="warning", server_header=False, timeout_graceful_shutdown=2)
    await uvicorn.Server(config).serve([listener])


# Enough to know what a message is about.
_MAX_HEARD = 1 << 20


class McpEndpoint:
    """An ASGI application for one path, while `running` is open. The SDK takes long to import: it is at the first request."""

    def __init__(self, app: Handrail, guard: Guard) -> None:
        self._app, self._guard = app, guard
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
        server = HandrailServer(self._app).build()
        return server.streamable_http_app(transport_security=unchecked, **_resumable())

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        from starlette.requests import ClientDisconnect, Request

        request = Request(scope)
        try:
            who = self._guard.admit(request, Role.OPERATE)
        except HttpError as error:
            if isinstance(error, WrongCredentials):
                self._guard.audit(request, None, error.status, f"refused: {error}")
            await refusal(error)(scope, receive, send)
            return
        self._wanted.set()
        app = await asyncio.shield(self._ready)
        heard: deque[Any] = deque()
        entry = None
        if request.method != "GET":
            try:  # before it happens: what cannot be audited does not happen
                declared = request.headers.get("content-length", "")
                is_long = declared.isdecimal() and int(declared) > _MAX_HEARD  # refused, maybe before it is sent
                detail = "" if is_long else _detail(await _first_part(receive, heard))
                entry = await self._guard.audit_begin(request, who, detail)
            except StoreError as error:
                await refusal(error)(scope, receive, send)
                return

        async def listening() -> Any:
            return heard.popleft() if heard else await receive()

        async def audited(message: Any) -> None:
            if message["type"] == "http.response.start" and entry is not None:
                await self._guard.audit_end(entry, message["status"])
            await send(message)

        with contextlib.suppress(ClientDisconnect):
            await app(scope, listening, audited)


async def _first_part(receive: Any, heard: deque[Any]) -> bytes:
    """The body, if it is not too long; all of its messages that were taken are in `heard`."""
    body = b""
    while len(body) < _MAX_HEARD:
        heard.append(await receive())
        body += heard[-1].get("body", b"")
        if not heard[-1].get("more_body"):
            break
    return body


def _detail(body: bytes) -> str:
    """What an MCP message is about: its method and, for a call, the tool."""
    try:
        message = json.loads(body)
        words = [message.get("method"), (message.get("params") or {}).get("name")]
    except (ValueError, AttributeError, RecursionError):
        return ""
    return visible(" ".join(each for each in words if isinstance(each, str)))
