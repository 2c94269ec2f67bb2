"""An httpx transport that connects only to addresses which the guard allows."""

import httpx

from ..errors import ToolFailed
from .http_client import trusted
from .url_guard import Guard


class GuardedTransport(httpx.AsyncBaseTransport):
    """Asks the guard about every request, also after a redirect, and sends it to the address that the guard returned.
    Connections are not reused: two names at one address must not share one."""

    def __init__(self, guard: Guard) -> None:
        self._guard = guard
        limits = httpx.Limits(max_connections=None, max_keepalive_connections=0)
        self._inner = httpx.AsyncHTTPTransport(verify=trusted(), limits=limits)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        target = self._guard.check_url(str(request.url))
        problem: httpx.HTTPError | None = None
        for address in await self._guard.addresses(target.host, target.port):
            direct = httpx.Request(
                request.method,
                request.url.copy_with(host=address),
                headers=request.headers,
                stream=request.stream,
                # The certificate is the name's, not the address's.
                extensions={**request.extensions, "sni_hostname": target.host},
            )
            try:
                return await self._inner.handle_async_request(direct)
            except (httpx.ConnectError, httpx.ConnectTimeout) as error:
                problem = error
        raise ToolFailed(f"{target.host} cannot be connected to: {problem or 'no address'}")

    async def aclose(self) -> None:
        await self._inner.aclose()
