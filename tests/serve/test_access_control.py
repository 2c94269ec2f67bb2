"""Who is let in, from where, and to do what."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from .. import fork_server
from ..support import PATIENCE_SECONDS
from .conftest import TOKEN, Server


def test_only_what_says_that_it_lives_is_open_to_all(server: Server) -> None:
    stranger = server.as_()
    assert stranger.get("/health").json()["status"] == "ok"
    for path in ("/v1/me", "/v1/tools", "/v1/approvals", "/v1/events", "/metrics", "/v1/sessions"):
        answer = stranger.get(path)
        assert (answer.status_code, answer.json()["error_type"]) == (401, "unauthorized")


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "127.0.0.1", "127.0.0.1.evil.example", "0.0.0.0"])
def test_a_name_that_was_made_to_lead_here_is_refused(server: Server, host: str) -> None:
    answer = server.client.get("/v1/me", headers={"host": host})
    assert (answer.status_code, answer.json()["error_type"]) == (421, "wrong_host")


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://127.0.0.1:1"])
def test_a_page_of_another_site_is_refused_whatever_it_sends(server: Server, origin: str) -> None:
    for method, path in (("GET", "/v1/me"), ("POST", "/v1/calls"), ("OPTIONS", "/v1/calls")):
        answer = server.client.request(method, path, headers={"origin": origin}, json={"tool": "todo"})
        assert (answer.status_code, answer.json()["error_type"]) == (403, "wrong_origin")
        assert "access-control-allow-origin" not in answer.headers


def test_roles_bound_what_a_token_may_do(server: Server) -> None:
    for role, tries in {"watch": (200, 403, 403), "approve": (200, 404, 403), "operate": (200, 404, 200)}.items():
        token = server.cli("serve", "token", "new", f"a-{role}", "--role", role).strip()
        client = server.as_(token)
        found = (
            client.get("/v1/tools").status_code,
            client.post("/v1/approvals/ffff", json={"decision": "deny"}).status_code,
            client.post("/v1/calls", json={"tool": "terminal", "arguments": {"command": "true"}}).status_code,
        )
        assert found == tries
        server.cli("serve", "token", "revoke", f"a-{role}")
        assert client.get("/v1/tools").status_code == 401


def test_the_link_lets_one_browser_in_once(own_server: Server) -> None:
    made = own_server.client.post("/v1/links", json={"role": "operate"}).json()["url"]
    link = re.search(r"/login\?code=\S+", made)
    assert link
    browser = own_server.as_()
    answer = browser.get(link[0])
    assert (answer.status_code, answer.headers["location"]) == (303, "/")
    cookie = answer.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert browser.get("/v1/me").json()["role"] == "operate"
    assert own_server.as_().get(link[0]).status_code == 401
    again = browser.get(link[0])
    assert (again.status_code, again.headers["location"], "set-cookie" in again.headers) == (303, "/", False)


def test_a_browser_has_to_prove_that_the_page_is_ours_before_it_changes_anything(server: Server) -> None:
    browser = server.as_()
    assert browser.post("/v1/login", json={"token": TOKEN}).json()["role"] == "operate"
    asked = {"tool": "terminal", "arguments": {"command": "true"}}
    assert browser.get("/v1/me").status_code == 200
    assert browser.post("/v1/calls", json=asked).json()["error_type"] == "csrf"
    assert browser.post("/v1/calls", json=asked, headers={"x-handrail": "1"}).status_code == 200
    assert browser.post("/v1/logout", headers={"x-handrail": "1"}).status_code == 200
    assert browser.get("/v1/me").status_code == 401


def test_what_is_on_the_disk_lets_nobody_in(server: Server) -> None:
    server.client.post("/v1/login", json={"token": TOKEN})
    cookie = server.as_().post("/v1/login", json={"token": TOKEN}).cookies["handrail"]
    kept = b"".join(path.read_bytes() for path in server.home.rglob("*") if path.is_file())
    assert TOKEN.encode() not in kept
    assert cookie.encode() not in kept


def test_who_tries_tokens_is_made_to_wait(own_server: Server) -> None:
    own_server.client.get("/v1/me")
    stranger = own_server.as_("wrong")
    found = {stranger.get("/v1/me").status_code for _ in range(40)}
    assert found == {401, 429}
    # An agent that guesses has its person's address: who came in before comes in still, and nobody else.
    assert own_server.client.get("/v1/me").status_code == 200
    other = own_server.client.post("/v1/tokens", json={"name": "other", "role": "watch"}).json()["token"]
    assert own_server.as_(other).get("/v1/me").status_code == 429


def test_an_address_that_others_reach_needs_a_token_first(server: Server) -> None:
    env = {**server.env, "HANDRAIL_HOME": f"{server.home}-other"}
    del env["HANDRAIL_SERVE_TOKEN"]
    command = ["-m", "handrail", "serve", "--http", "0.0.0.0:1"]
    ran = fork_server.run(*command, env=env, cwd=server.cwd, timeout=PATIENCE_SECONDS)
    assert ran.returncode != 0
    assert "handrail serve token new" in ran.stderr


@pytest.mark.parametrize("is_same", [True, False])
def test_a_second_server_says_which_one_runs(server: Server, is_same: bool) -> None:
    port = server.port if is_same else 0
    command = ["-m", "handrail", "serve", "--http", str(port)]
    ran = fork_server.run(*command, env=server.env, cwd=server.cwd, timeout=PATIENCE_SECONDS)
    assert ran.returncode != 0
    assert server.url in ran.stderr
    assert str(server.process.pid) in ran.stderr


def test_a_port_that_is_taken_is_said_before_anything_is_promised(server: Server) -> None:
    command = ["-m", "handrail", "serve", "--http", str(server.port)]
    env = {**server.env, "HANDRAIL_HOME": f"{server.home}-other"}
    ran = fork_server.run(*command, env=env, cwd=server.cwd, timeout=PATIENCE_SECONDS)
    assert (ran.returncode != 0, ran.stdout) == (True, "")
    assert f"127.0.0.1:{server.port}" in ran.stderr
    assert "--http" in ran.stderr


def test_every_answer_forbids_a_browser_what_it_need_not_do(server: Server) -> None:
    for path in ("/", "/health", "/v1/me", "/nowhere"):
        headers = server.client.get(path).headers
        assert "script-src 'self'" in headers["content-security-policy"]
        assert "unsafe-inline" not in headers["content-security-policy"].partition("style-src")[0]
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["x-frame-options"] == "DENY"


def test_malformed_requests_are_told_what_is_wrong(server: Server) -> None:
    client = server.client
    wrong = [
        client.post("/v1/calls", content=b"{"),
        client.post("/v1/calls", json={"tool": 7}),
        client.post("/v1/calls", json={}),
        client.post("/v1/calls", content=b'{"a":' * 100_000),
        client.get("/v1/calls?limit=x"),
        client.get("/v1/calls?limit=0"),
        client.get("/v1/calls?what=1"),
        client.get("/v1/results/../../etc/passwd"),
        client.get("/v1/results/nothing"),
        client.put("/v1/calls"),
    ]
    for answer in wrong:
        assert 400 <= answer.status_code < 500, answer.text
        assert set(answer.json()) == {"error", "error_type"}


def test_a_body_that_is_too_long_is_not_read(server: Server) -> None:
    answer = server.client.post("/v1/calls", content=b" " * (11 << 20))
    assert answer.status_code == 413

    def endless() -> Iterator[bytes]:
        for _ in range(200):
            yield b" " * 100_000

    assert server.client.post("/v1/calls", content=endless()).status_code == 413
