"""Logging in at a server that wants it, against a real authorization server on this machine."""

from __future__ import annotations

import json
import stat
import threading
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from handrail.core.registry import ToolRegistry
from handrail.mcp_client.oauth import Login
from handrail.mcp_client.server_config import Server
from handrail.runtime.dispatch import Runtime
from handrail.settings.services import McpServerConfig
from handrail.tools.mcp.server_tools import McpTools

from ..mcp_servers.guarded import Authority, guarded
from ..mcp_servers.serving import listening, serving
from ..support import error_in, free_port
from .conftest import Connect


@pytest.fixture
def authority() -> Authority:
    return Authority()


@pytest.fixture(params=["http", "sse"])
def settings(request: pytest.FixtureRequest, authority: Authority) -> Iterator[McpServerConfig]:
    bound = listening()
    base = f"http://127.0.0.1:{bound.getsockname()[1]}"
    path = "/sse" if request.param == "sse" else "/mcp"
    server = guarded(authority, base, path)
    app = server.sse_app() if request.param == "sse" else server.streamable_http_app()
    with serving(app, bound):
        yield McpServerConfig(url=base + path, type=request.param, connect_timeout=60)


def browse(url: str) -> None:
    """A person who says yes at the page: the browser is led back to us."""
    threading.Thread(target=lambda: urllib.request.urlopen(url).read()).start()


def log_in(settings: McpServerConfig, browse: Callable[[str], None] = browse) -> str:
    """The error; empty when it went well."""
    tools = McpTools([Server("far", settings, "test")], ToolRegistry(), browse=browse)
    try:
        tools.start(30)
        return tools.connections.status()["far"].error
    finally:
        tools.close()


def secret(runtime: Runtime) -> Any:
    return json.loads(runtime.handle("mcp__far__secret", {}))  # type: ignore[arg-type]


@pytest.mark.parametrize("settings", ["http"], indirect=True)
def test_a_server_that_wants_a_login_says_how(
    settings: McpServerConfig, authority: Authority, connect: Connect
) -> None:
    tools = connect(far=settings)
    assert "`handrail mcp login far`" in tools.connections.status()["far"].error
    assert not authority.registered, "nobody has asked us to register anywhere"


def test_a_login_is_kept_for_the_next_time(settings: McpServerConfig, connect: Connect, runtime: Runtime) -> None:
    assert log_in(settings) == ""
    connect(far=settings)
    assert secret(runtime) == {"content": "the secret"}
    path = Login(Server("far", McpServerConfig(), ""), settings.url).path
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


@pytest.mark.parametrize("settings", ["http"], indirect=True)
def test_a_token_that_is_over_is_renewed_without_the_person(
    settings: McpServerConfig, authority: Authority, connect: Connect, runtime: Runtime
) -> None:
    authority.token_seconds = 0
    log_in(settings)
    authority.token_seconds = 3600
    before = authority.renewals
    connect(far=settings)
    assert secret(runtime) == {"content": "the secret"}
    assert authority.renewals == before + 1
    assert len(authority.registered) == 1


@pytest.mark.parametrize("settings", ["http"], indirect=True)
def test_a_login_that_does_not_hold_any_more_is_told(
    settings: McpServerConfig, authority: Authority, connect: Connect, runtime: Runtime
) -> None:
    assert log_in(settings) == ""
    connect(far=settings)
    authority.forget()
    error = error_in(runtime.handle("mcp__far__secret", {}))
    assert error["error_type"] == "unavailable"
    assert "handrail mcp login far" in error["error"]


@pytest.mark.parametrize("settings", ["http"], indirect=True)
def test_a_login_that_is_refused_says_why(settings: McpServerConfig, authority: Authority) -> None:
    authority.refuses = True
    assert "not today" in log_in(settings)


@pytest.mark.parametrize("settings", ["http"], indirect=True)
def test_a_token_is_not_shown_to_another_address(settings: McpServerConfig) -> None:
    assert log_in(settings) == ""
    assert Login(Server("far", McpServerConfig(), ""), settings.url).read()["tokens"]
    assert Login(Server("far", McpServerConfig(), ""), "https://elsewhere.example/mcp").read() == {}


@pytest.mark.parametrize("settings", ["http"], indirect=True)
def test_who_was_registered_by_hand_need_not_register(
    settings: McpServerConfig, authority: Authority, connect: Connect, runtime: Runtime
) -> None:
    from dataclasses import replace

    from mcp.shared.auth import OAuthClientInformationFull

    port = free_port()
    known = {
        "client_id": "by-hand",
        "client_secret": "a word",
        "redirect_uris": [f"http://127.0.0.1:{port}/callback"],
        "token_endpoint_auth_method": "client_secret_basic",
    }
    authority.registered["by-hand"] = OAuthClientInformationFull.model_validate(known)
    settings = replace(settings, client_id="by-hand", client_secret="a word", callback_port=port)
    assert log_in(settings) == ""
    assert set(authority.registered) == {"by-hand"}
    connect(far=settings)
    assert secret(runtime) == {"content": "the secret"}


@pytest.mark.parametrize("settings", ["http"], indirect=True)
def test_an_answer_to_another_login_is_ignored(settings: McpServerConfig) -> None:
    """Any page can send a browser to our address, before the person has said yes."""
    refused: list[int] = []

    def spoiled(url: str) -> None:
        back = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(url).query))["redirect_uri"]
        for query in ("code=theirs&state=another", "code=theirs", "error=access_denied", ""):
            try:
                urllib.request.urlopen(f"{back}?{query}").close()
            except urllib.error.HTTPError as error:
                refused.append(error.code)
                error.close()
        browse(url)

    assert log_in(settings, spoiled) == ""
    assert refused == [404] * 4
