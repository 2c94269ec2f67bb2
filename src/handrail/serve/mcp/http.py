"""The MCP server over HTTP: only for who has the token, and only from where it may come."""

from __future__ import annotations

import hmac
from typing import TYPE_CHECKING, Any, NamedTuple

from ...errors import ConfigError

if TYPE_CHECKING:
    from mcp.server import Server

_LOOPBACK = ("127.0.0.1", "localhost", "::1")


class Address(NamedTuple):
    host: str
    port: int


def parse_address(text: str) -> Address:
    """`8765`, `127.0.0.1:8765` or `[::1]:8765`. A port alone means this machine only."""
    host, _, port = text.rpartition(":")
    if not port.isdigit() or int(port) > 65535:
        raise ConfigError(f"{text!r} is no HOST:PORT, such as 127.0.0.1:8765")
    return Address(host.strip("[]") or "127.0.0.1", int(port))


class BearerOnly:
    """Answers 401 to every request without the token."""

    def __init__(self, app: Any, token: str) -> None:
        self._app = app
        self._wanted = f"Bearer {token}".encode()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http" and not self._is_known(scope["headers"]):
            headers = [(b"content-type", b"text/plain"), (b"www-authenticate", b"Bearer")]
            await send({"type": "http.response.start", "status": 401, "headers": headers})
            await send({"type": "http.response.body", "body": b"a bearer token is needed\n"})
            return
        await self._app(scope, receive, send)

    def _is_known(self, headers: Any) -> bool:
        given = [value for name, value in headers if name.lower() == b"authorization"]
        return len(given) == 1 and hmac.compare_digest(given[0], self._wanted)


def http_app(server: Server[Any], address: Address, token: str) -> Any:
    from mcp.server.transport_security import TransportSecuritySettings

    hosts = _LOOPBACK if address.host in _LOOPBACK else (address.host,)
    written = [f"[{host}]:{address.port}" if ":" in host else f"{host}:{address.port}" for host in hosts]
    security = TransportSecuritySettings(
        enable_dns_rebinding_protection=True,
        allowed_hosts=written,
        allowed_origins=[f"http://{each}" for each in written],
    )
    return BearerOnly(server.streamable_http_app(host=address.host, transport_security=security), token)


async def serve_http(server: Server[Any], address: Address, token: str) -> None:
    import uvicorn

    app = http_app(server, address, token)
    config = uvicorn.Config(app, host=address.host, port=address.port, log_level="warning", timeout_graceful_shutdown=2)
    await uvicorn.Server(config).serve()
