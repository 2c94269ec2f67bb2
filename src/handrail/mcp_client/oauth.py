"""Log in at a server that asks for it (OAuth). The login is kept in a file that only the user can read."""

from __future__ import annotations

import asyncio
import contextlib
import time
import warnings
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, urlsplit

from ..base.safe_text import safe_error
from ..config.json_file import JsonFile
from ..config.paths import state_dir
from ..errors import ConfigError, Denied, ToolUnavailable
from ..settings.services import McpServerConfig
from ..types import JsonDict
from .sdk import auth, client_auth, credentials, httpx2, pydantic
from .server_config import Server, token_hint

Browse = Callable[[str], None]

LOGIN_SECONDS, _MAX_REQUEST = 300.0, 16 * 1024
_PATH = "/callback"
_DONE = b"<!doctype html><title>Handrail</title><p>You can close this page and go back to Handrail."


class Logins(NamedTuple):
    """How a user logs in: `browse` shows the page, None if there is no user. `refused` gets the reason if a login is missing."""

    browse: Browse | None
    refused: Callable[[str], None]

    def problem(self, why: str) -> ToolUnavailable:
        self.refused(why)
        return ToolUnavailable(why)


class Login(JsonFile):
    """The stored data of one login: tokens, our client registration, and the address of the token server."""

    def __init__(self, server: Server, url: str) -> None:
        super().__init__(state_dir() / "mcp-logins" / f"{server.key}.json")
        self._url = url

    def read(self) -> JsonDict:
        """Empty if there is none, or it is for another address: a token is sent only to the server that issued it."""
        known = super().read()
        return known if known.get("url") == self._url else {}

    def keep(self, **more: Any) -> None:
        """In an agent's own shell nothing is kept."""
        with contextlib.suppress(Denied):
            self.update({**more, "url": self._url})


@contextlib.asynccontextmanager
async def authorized(server: Server, settings: McpServerConfig, logins: Logins) -> AsyncIterator[Any]:
    """Adds the login to every request. If nobody can log in now, the error says how to."""
    login = Login(server, settings.url)
    known = await asyncio.to_thread(login.read)
    if settings.login == "client_credentials":
        yield await _own_login(settings, login, known)
        return
    if logins.browse is None:
        needed = f"it wants a login; `handrail mcp login {server.name}`"
        if known.get("tokens"):

            async def nobody(*_: str) -> Any:
                raise logins.problem(needed)

            yield _provider(settings, login, known, known.get("port", 0), nobody, nobody)
        else:
            yield _not_logged_in(logins, needed, token_hint(server))
        return
    async with _Callback.listening(logins, settings.callback_port or known.get("port") or 0) as callback:
        if known and callback.port != known.get("port"):  # our registration is valid for one callback address
            known = {}
            await asyncio.to_thread(login.forget)
        known["port"] = callback.port
        yield _provider(settings, login, known, callback.port, callback.show, callback.result)


class _Callback:
    """Listens on this machine for the redirect from the login page. Any page can send a browser here, so only a request with
    the `state` of the login that was begun is the answer to it."""

    def __init__(self, logins: Logins) -> None:
        self.port = 0
        self._state: str | None = None
        self._logins = logins
        self._received: asyncio.Future[dict[str, str]] = asyncio.get_running_loop().create_future()

    @classmethod
    @contextlib.asynccontextmanager
    async def listening(cls, logins: Logins, port: int) -> AsyncIterator[_Callback]:
        callback = cls(logins)
        try:
            listener = await asyncio.start_server(callback._answer, "127.0.0.1", port)
        except OSError:  # it is in use
            listener = await asyncio.start_server(callback._answer, "127.0.0.1", 0)
        async with listener:
            callback.port = listener.sockets[0].getsockname()[1]
            yield callback

    async def show(self, url: str) -> None:
        self._received = asyncio.get_running_loop().create_future()
        self._state = dict(parse_qsl(urlsplit(url).query)).get("state")
        assert self._logins.browse is not None
        await asyncio.to_thread(self._logins.browse, url)

    async def result(self) -> Any:
        try:
            received = await asyncio.wait_for(self._received, LOGIN_SECONDS)
        except TimeoutError:
            raise self._logins.problem(f"nobody logged in within {LOGIN_SECONDS:g} s") from None
        if "code" not in received:
            why = received.get("error_description") or received.get("error") or "no reason was given"
            raise self._logins.problem(f"the login was refused: {safe_error(why)}")
        return auth.AuthorizationCodeResult(code=received["code"], state=received.get("state"), iss=received.get("iss"))

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, ValueError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            head = (await reader.readuntil(b"\r\n\r\n"))[:_MAX_REQUEST].decode("latin-1")
            method, target = head.split(" ", 2)[:2]
            parts = urlsplit(target)
            received = dict(parse_qsl(parts.query))
            is_ours = self._state is not None and received.get("state") == self._state
            known = is_ours and method == "GET" and parts.path == _PATH
            status, page = (b"200 OK", _DONE) if known else (b"404 Not Found", b"")
            writer.write(b"HTTP/1.1 %s\r\nContent-Type: text/html\r\nContent-Length: %d\r\n" % (status, len(page)))
            writer.write(b"Connection: close\r\n\r\n" + page)
            await writer.drain()
            if known and not self._received.done():
                self._received.set_result(received)
        writer.close()


class _Storage:
    """Loads and stores login data for the SDK."""

    def __init__(self, login: Login, known: JsonDict) -> None:
        self._login, self._known = login, known
        self.context: Any = None  # the provider's

    async def get_tokens(self) -> Any:
        tokens = self._known.get("tokens")
        if tokens is None:
            return None
        # Without these the provider would treat an old token as fresh, and refresh it at the wrong address.
        self.context.token_expiry_time = self._known.get("expires_at")
        if self._known.get("metadata"):
            self.context.oauth_metadata = auth.OAuthMetadata.model_validate(self._known["metadata"])
            self.context.auth_server_url = self._known.get("auth_server")
        return auth.OAuthToken.model_validate(tokens)

    async def set_tokens(self, tokens: Any) -> None:
        metadata = self.context.oauth_metadata
        self._known |= {
            "tokens": tokens.model_dump(mode="json", exclude_none=True),
            "expires_at": time.time() + tokens.expires_in if tokens.expires_in is not None else None,
            "metadata": metadata.model_dump(mode="json", exclude_none=True) if metadata is not None else None,
            "auth_server": self.context.auth_server_url,
        }
        await asyncio.to_thread(lambda: self._login.keep(**self._known))

    async def get_client_info(self) -> Any:
        client = self._known.get("client")
        return None if client is None else auth.OAuthClientInformationFull.model_validate(client)

    async def set_client_info(self, client: Any) -> None:
        self._known["client"] = client.model_dump(mode="json", exclude_none=True)
        await asyncio.to_thread(lambda: self._login.keep(client=self._known["client"], port=self._known["port"]))


def _provider(settings: McpServerConfig, login: Login, known: JsonDict, port: int, show: Any, result: Any) -> Any:
    """`show` opens the page of the login for the user, `result` waits for its end."""
    address = pydantic.AnyUrl(f"http://127.0.0.1:{port}{_PATH}")
    if settings.client_id:  # our registration at a server where it was done by hand
        secret, method = settings.client_secret, "client_secret_basic" if settings.client_secret else "none"
        mine = {"client_id": settings.client_id, "client_secret": secret or None, "redirect_uris": [str(address)]}
        known["client"] = {**mine, "token_endpoint_auth_method": method}
    storage = _Storage(login, known)
    provider = client_auth.OAuthClientProvider(
        settings.url,
        auth.OAuthClientMetadata(client_name="Handrail", redirect_uris=[address]),
        storage,
        redirect_handler=show,
        callback_handler=result,
        client_metadata_url=settings.client_metadata_url or None,
    )
    storage.context = provider.context
    return provider


async def _own_login(settings: McpServerConfig, login: Login, known: JsonDict) -> Any:
    """A login of this program itself, without a user."""
    storage = _Storage(login, known)
    known.setdefault("port", 0)
    issuer, who = settings.issuer or None, (settings.url, storage, settings.client_id)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the issuer is the user's choice
        if settings.client_key:
            try:
                key = await asyncio.to_thread(Path(settings.client_key).read_text)
            except (OSError, ValueError) as error:
                raise ConfigError(f"cannot be read: {error}", path=settings.client_key) from None
            how: Any = {"signing_key": key, "signing_algorithm": _algorithm(key)}
            signed = credentials.SignedJWTParameters(issuer=settings.client_id, subject=settings.client_id, **how)
            prove = signed.create_assertion_provider()
            provider: Any = credentials.PrivateKeyJWTOAuthProvider(*who, prove, issuer=issuer)
        else:
            provider = credentials.ClientCredentialsOAuthProvider(*who, settings.client_secret, issuer=issuer)
    storage.context = provider.context
    return provider


def _algorithm(key: str) -> str:
    """The one that a private key signs with. Raises ConfigError."""
    from cryptography.hazmat.primitives.asymmetric import ec  # heavy, and few have a key
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    try:
        loaded = load_pem_private_key(key.encode(), None)
    except (ValueError, TypeError) as error:
        raise ConfigError(f"client_key: {error}") from None
    if isinstance(loaded, ec.EllipticCurvePrivateKey):
        return {256: "ES256", 384: "ES384"}.get(loaded.key_size, "ES512")
    return "RS256"


def _not_logged_in(logins: Logins, needed: str, hint: str) -> Any:
    """Requests and registers nothing; reports a server that wants a login."""

    class NotLoggedIn(httpx2.Auth):
        async def async_auth_flow(self, request: Any) -> Any:
            response = yield request
            if response.status_code == 401:
                # A server with logins says where; at another one only a token helps.
                has_login = "resource_metadata" in response.headers.get("www-authenticate", "")
                raise logins.problem(needed if has_login else f"{needed}, or {hint}")

    return NotLoggedIn()
