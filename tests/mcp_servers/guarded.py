"""A server that wants a login, with an authorization server of its own beside it, both real and on this machine."""

from __future__ import annotations

import secrets
import time
from typing import Any

from mcp.server import MCPServer
from mcp.server.auth.provider import (
    AccessToken,
    AuthorizationCode,
    AuthorizationParams,
    RefreshToken,
    construct_redirect_uri,
)
from mcp.server.auth.settings import AuthSettings, ClientRegistrationOptions
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken
from pydantic import AnyHttpUrl


class Authority:
    """Lets everybody in who comes to its page, unless it is told to refuse. It remembers what it was asked for."""

    def __init__(self) -> None:
        self.refuses = False
        self.token_seconds = 3600
        self.registered: dict[str, OAuthClientInformationFull] = {}
        self.renewals = 0
        self._codes: dict[str, AuthorizationCode] = {}
        self._tokens: dict[str, AccessToken] = {}
        self._renewing: dict[str, RefreshToken] = {}

    async def get_client(self, client_id: str) -> OAuthClientInformationFull | None:
        return self.registered.get(client_id)

    async def register_client(self, client_info: OAuthClientInformationFull) -> None:
        assert client_info.client_id
        self.registered[client_info.client_id] = client_info

    async def authorize(self, client: OAuthClientInformationFull, params: AuthorizationParams) -> str:
        back = str(params.redirect_uri)
        if self.refuses:
            return construct_redirect_uri(
                back, error="access_denied", error_description="not today", state=params.state
            )
        assert client.client_id
        code = AuthorizationCode(
            code=secrets.token_urlsafe(24),
            scopes=params.scopes or [],
            expires_at=time.time() + 60,
            client_id=client.client_id,
            code_challenge=params.code_challenge,
            redirect_uri=params.redirect_uri,
            redirect_uri_provided_explicitly=params.redirect_uri_provided_explicitly,
            resource=params.resource,
        )
        self._codes[code.code] = code
        return construct_redirect_uri(back, code=code.code, state=params.state)

    async def load_authorization_code(self, client: Any, authorization_code: str) -> AuthorizationCode | None:
        return self._codes.get(authorization_code)

    async def exchange_authorization_code(self, client: Any, authorization_code: AuthorizationCode) -> OAuthToken:
        del self._codes[authorization_code.code]
        return self._given(client.client_id, authorization_code.resource)

    async def load_refresh_token(self, client: Any, refresh_token: str) -> RefreshToken | None:
        return self._renewing.get(refresh_token)

    async def exchange_refresh_token(self, client: Any, refresh_token: RefreshToken, scopes: list[str]) -> OAuthToken:
        self.renewals += 1
        return self._given(client.client_id, refresh_token.resource)

    async def load_access_token(self, token: str) -> AccessToken | None:
        known = self._tokens.get(token)
        return known if known is not None and known.expires_at and known.expires_at > time.time() else None

    async def revoke_token(self, token: Any) -> None:
        self.forget()

    def forget(self) -> None:
        """Nobody is logged in any more."""
        self._tokens.clear()
        self._renewing.clear()

    def _given(self, client_id: str, resource: str | None) -> OAuthToken:
        access, renew = secrets.token_urlsafe(24), secrets.token_urlsafe(24)
        end = int(time.time()) + self.token_seconds
        self._tokens[access] = AccessToken(
            token=access, client_id=client_id, scopes=[], expires_at=end, resource=resource
        )
        self._renewing[renew] = RefreshToken(token=renew, client_id=client_id, scopes=[], resource=resource)
        return OAuthToken(access_token=access, expires_in=self.token_seconds, refresh_token=renew)


def guarded(authority: Authority, base: str, path: str) -> MCPServer:
    """One tool, behind the login. It is served at `base`, and `path` there."""
    address = AnyHttpUrl(base)
    auth = AuthSettings(
        issuer_url=address,
        resource_server_url=AnyHttpUrl(f"{base}{path}"),
        validate_token_resource=True,
        client_registration_options=ClientRegistrationOptions(enabled=True),
    )
    server = MCPServer("guarded", auth_server_provider=authority, auth=auth)

    @server.tool(structured_output=False)
    def secret() -> str:
        """Tell the secret."""
        return "the secret"

    return server
