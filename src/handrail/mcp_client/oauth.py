"""Log in at a server that asks for it (OAuth). The login is kept in a file that only the user can read."""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import parse_qsl, urlsplit

from ..base.safe_text import safe_error
from ..config.files import locked, read_text, write_text
from ..config.paths import state_dir
from ..errors import ConfigError, ToolUnavailable
from ..types import JsonDict
from .server_config import Server

if TYPE_CHECKING:
    from ..settings.services import McpServerConfig

Browse = Callable[[str], None]

LOGIN_SECONDS = 300.0
_PATH = "/callback"
_MAX_REQUEST = 16 * 1024
_DONE = b"<!doctype html><title>Handrail</title><p>You can close this page and go back to Handrail."


class Logins(NamedTuple):
    """How a person logs in: `browse` shows the page, None if nobody is there. `refused` is told when a login is missing."""

    browse: Browse | None
    refused: Callable[[str], None]

    def problem(self, why: str) -> ToolUnavailable:
        self.refused(why)
        return ToolUnavailable(why)


class Login:
    """What is remembered of one login: the tokens, who we are to the server, and where it keeps its tokens."""

    def __init__(self, server: Server, url: str) -> None:
        self.path = state_dir() / "mcp-logins" / f"{server.key}.json"
        self._url = url

    def read(self) -> JsonDict:
        """Empty when there is none, or when it is for another address: a token is shown only to the server that gave it."""
        try:
            known = json.loads(read_text(self.path) or "{}")
        except ValueError:
            raise ConfigError("is damaged; remove it, and log in again", path=str(self.path)) from None
        return known if isinstance(known, dict) and known.get("url") == self._url else {}

    def update(self, **more: Any) -> None:
        with locked(self.path) as target:
            target.touch(mode=0o600)
            write_text(target, json.dumps({**self.read(), **more, "url": self._url}) + "\n")
            target.chmod(0o600)

    def forget(self) -> bool:
        """Whether there was one."""
        there = self.path.exists()
        for path in (self.path, self.path.with_name(f"{self.path.name}.lock")):
            path.unlink(missing_ok=True)
        return there


@contextlib.asynccontextmanager
async def authorized(server: Server, settings: McpServerConfig, logins: Logins) -> AsyncIterator[Any]:
    """What adds the login to every request. Where nobody can log in now, the error says how to do it."""
    login = Login(server, settings.url)
    known = await asyncio.to_thread(login.read)
    if logins.browse is None:
        needed = f"MCP server {server.name} wants a login; `handrail mcp login {server.name}`"
        if known.get("tokens"):
            yield _provider(settings, login, known, known.get("port", 0), _Nobody(logins, needed))
        else:
            yield _not_logged_in(logins, needed)
        return
    async with _Callback.listening(logins, settings.callback_port or known.get("port") or 0) as callback:
        if known and callback.port != known.get("port"):  # who we are to the server holds for one address of ours
            known = {}
            await asyncio.to_thread(login.forget)
        known["port"] = callback.port
        yield _provider(settings, login, known, callback.port, callback)


class _Nobody:
    """Stands where a person would log in."""

    def __init__(self, logins: Logins, needed: str) -> None:
        self._logins, self._needed = logins, needed

    async def show(self, _: str) -> None:
        raise self._logins.problem(self._needed)

    async def result(self) -> Any:
        raise self._logins.problem(self._needed)


class _Callback:
    """Listens on this machine for the browser that comes back from the login page."""

    def __init__(self, logins: Logins) -> None:
        self.port = 0
        self._logins = logins
        self._came: asyncio.Future[dict[str, str]] = asyncio.get_running_loop().create_future()

    @classmethod
    @contextlib.asynccontextmanager
    async def listening(cls, logins: Logins, port: int) -> AsyncIterator[_Callback]:
        callback = cls(logins)
        try:
            listener = await asyncio.start_server(callback._answer, "127.0.0.1", port)
        except OSError:  # it is taken
            listener = await asyncio.start_server(callback._answer, "127.0.0.1", 0)
        async with listener:
            callback.port = listener.sockets[0].getsockname()[1]
            yield callback

    async def show(self, url: str) -> None:
        self._came = asyncio.get_running_loop().create_future()
        assert self._logins.browse is not None
        await asyncio.to_thread(self._logins.browse, url)

    async def result(self) -> Any:
        from mcp.shared.auth import AuthorizationCodeResult

        try:
            came = await asyncio.wait_for(self._came, LOGIN_SECONDS)
        except TimeoutError:
            raise self._logins.problem(f"nobody logged in within {LOGIN_SECONDS:g} s") from None
        if "code" not in came:
            why = came.get("error_description") or came.get("error") or "no reason was given"
            raise self._logins.problem(f"the login was refused: {safe_error(why)}")
        return AuthorizationCodeResult(code=came["code"], state=came.get("state"), iss=came.get("iss"))

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, ValueError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            head = (await reader.readuntil(b"\r\n\r\n"))[:_MAX_REQUEST].decode("latin-1")
            method, target = head.split(" ", 2)[:2]
            parts = urlsplit(target)
            known = method == "GET" and parts.path == _PATH
            status, page = (b"200 OK", _DONE) if known else (b"404 Not Found", b"")
            writer.write(b"HTTP/1.1 %s\r\nContent-Type: text/html\r\nContent-Length: %d\r\n" % (status, len(page)))
            writer.write(b"Connection: close\r\n\r\n" + page)
            await writer.drain()
            if known and not self._came.done():
                self._came.set_result(dict(parse_qsl(parts.query)))
        writer.close()


class _Storage:
    """Gives the SDK what was remembered, and remembers what it learns."""

    def __init__(self, login: Login, known: JsonDict) -> None:
        self._login, self._known = login, known
        self.context: Any = None  # the provider's

    async def get_tokens(self) -> Any:
        from mcp.shared.auth import OAuthMetadata, OAuthToken

        tokens = self._known.get("tokens")
        if tokens is None:
            return None
        # Without these the provider would take an old token for a fresh one, and renew it at the wrong address.
        self.context.token_expiry_time = self._known.get("expires_at")
        if self._known.get("metadata"):
            self.context.oauth_metadata = OAuthMetadata.model_validate(self._known["metadata"])
            self.context.auth_server_url = self._known.get("auth_server")
        return OAuthToken.model_validate(tokens)

    async def set_tokens(self, tokens: Any) -> None:
        metadata = self.context.oauth_metadata
        self._known |= {
            "tokens": tokens.model_dump(mode="json", exclude_none=True),
            "expires_at": time.time() + tokens.expires_in if tokens.expires_in is not None else None,
            "metadata": metadata.model_dump(mode="json", exclude_none=True) if metadata is not None else None,
            "auth_server": self.context.auth_server_url,
        }
        await asyncio.to_thread(lambda: self._login.update(**self._known))

    async def get_client_info(self) -> Any:
        from mcp.shared.auth import OAuthClientInformationFull

        client = self._known.get("client")
        return None if client is None else OAuthClientInformationFull.model_validate(client)

    async def set_client_info(self, client: Any) -> None:
        self._known["client"] = client.model_dump(mode="json", exclude_none=True)
        await asyncio.to_thread(lambda: self._login.update(client=self._known["client"], port=self._known["port"]))


def _provider(settings: McpServerConfig, login: Login, known: JsonDict, port: int, person: _Nobody | _Callback) -> Any:
    from mcp.client.auth import OAuthClientProvider
    from mcp.shared.auth import OAuthClientMetadata
    from pydantic import AnyUrl

    address = AnyUrl(f"http://127.0.0.1:{port}{_PATH}")
    if settings.client_id:
        known["client"] = _registered(settings, str(address))
    storage = _Storage(login, known)
    provider = OAuthClientProvider(
        settings.url,
        OAuthClientMetadata(client_name="Handrail", redirect_uris=[address]),
        storage,
        redirect_handler=person.show,
        callback_handler=person.result,
    )
    storage.context = provider.context
    return provider


def _registered(settings: McpServerConfig, address: str) -> JsonDict:
    """Who we are to a server where somebody has registered us by hand."""
    way = "client_secret_basic" if settings.client_secret else "none"
    secret = {"client_secret": settings.client_secret} if settings.client_secret else {}
    return {
        "client_id": settings.client_id,
        "redirect_uris": [address],
        "token_endpoint_auth_method": way,
        **secret,
    }


def _not_logged_in(logins: Logins, needed: str) -> Any:
    """Asks for nothing, registers nowhere; a server that wants a login is told of."""
    import httpx2

    class NotLoggedIn(httpx2.Auth):
        async def async_auth_flow(self, request: Any) -> Any:
            response = yield request
            if response.status_code == 401:
                raise logins.problem(needed)

    return NotLoggedIn()
