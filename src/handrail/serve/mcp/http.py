"""The MCP server over HTTP: only with the token, and only with an accepted Host and Origin."""

from __future__ import annotations

import hmac
from typing import TYPE_CHECKING, Any

from ..access_control import allowed_hosts
from ..security_headers import SECURITY_HEADERS

if TYPE_CHECKING:
    import socket

    from mcp.server import Server

    from ..address import Address

TOKEN_VARIABLE = "HANDRAIL_MCP_TOKEN"


class BearerOnly:
    """Answers 401 to every request without the token."""

    def __init__(self, app: Any, token: str) -> None:
        self._app = app
        self._wanted = f"Bearer {token}".encode()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http" and not self._is_known(scope["headers"]):
            headers = [(b"content-type", b"text/plain"), (b"www-authenticate", b"Bearer")]
            headers += [(name.encode(), value.encode()) for name, value in SECURITY_HEADERS.items()]
            await send({"type": "http.response.start", "status": 401, "headers": headers})
            await send({"type": "http.response.body", "body": b"a bearer token is needed\n"})
            return
        await self._app(scope, receive, send)

    def _is_known(self, headers: Any) -> bool:
        given = [value for name, value in headers if name.lower() == b"authorization"]
        return len(given) == 1 and hmac.compare_digest(given[0], self._wanted)


def http_app(server: Server[Any], address: Address, token: str, *, names: tuple[str, ...] = ()) -> Any:
    """`names` are additional host names, such as that of a proxy."""
    from mcp.server.transport_security import TransportSecuritySettings

    hosts = sorted(allowed_hosts(address.host, address.port, names))
    security = TransportSecuritySettings(
        enable_dns_rebinding_protection=True,
        allowed_hosts=hosts,
        allowed_origins=[f"{scheme}://{host}" for host in hosts for scheme in ("http", "https")],
    )
    return BearerOnly(server.streamable_http_app(host=address.host, transport_security=security), token)


async def serve_http(app: Any, listener: socket.socket) -> None:
    import uvicorn

    config = uvicorn.Config(app, log_level="warning", server_header=False, timeout_graceful_shutdown=2)
    await uvicorn.Server(config).serve([listener])
