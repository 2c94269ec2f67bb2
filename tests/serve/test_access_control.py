"""Who is let in, from where, and to do what."""

from __future__ import annotations

import hashlib
import socket
from collections.abc import Iterator

import httpx
import pytest
from starlette.requests import Request

from handrail.serve.access_control import Guard
from handrail.serve.endpoint import HttpError
from handrail.serve.tokens import Keys

from .. import fork_server
from ..support import PATIENCE_SECONDS
from .conftest import TOKEN, Server, events_of


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


def test_a_link_lets_one_browser_in_once(own_server: Server) -> None:
    code = own_server.code("approve")
    # A program that only looks at the link (a preview, a scanner) does not use it up, and is not let in.
    looked = own_server.as_().get("/login", params={"code": code})
    assert (looked.status_code, "set-cookie" in looked.headers) == (200, False)
    browser = own_server.as_()
    answer = browser.post("/v1/login", json={"code": code})
    cookie = answer.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert browser.get("/v1/me", headers={"x-handrail": answer.json()["page_key"]}).json()["role"] == "approve"
    assert own_server.as_().post("/v1/login", json={"code": code}).status_code == 401


def test_the_link_for_whoever_starts_the_server_is_for_terminals_only(own_server: Server) -> None:
    assert own_server.lines[0] == f"Serving on {own_server.url}"
    assert "handrail serve token new" in own_server.lines[1]


@pytest.mark.parametrize("sent", [{}, {"x-handrail": ""}, {"x-handrail": "1"}, {"x-handrail": "of another login"}])
@pytest.mark.parametrize("path", ["/v1/me", "/v1/events", "/v1/tokens", "/metrics", "/v1/logins"])
def test_the_cookie_alone_is_worth_nothing(server: Server, path: str, sent: dict[str, str]) -> None:
    """Browsers send it to every port of this machine."""
    browser = server.as_()
    browser.post("/v1/login", json={"token": TOKEN})
    if sent.get("x-handrail", "").startswith("of"):
        sent = {"x-handrail": server.browser().headers["x-handrail"]}
    assert browser.get(path, headers=sent).status_code in (401, 429)
    asked = {"tool": "terminal", "arguments": {"command": "true"}}
    assert browser.post("/v1/calls", json=asked, headers=sent).status_code in (401, 429)


def test_a_browser_with_both_secrets_does_what_its_role_may_until_it_logs_out(server: Server) -> None:
    browser = server.browser()
    asked = {"tool": "terminal", "arguments": {"command": "true"}}
    assert browser.post("/v1/calls", json=asked).status_code == 200
    assert browser.post("/v1/logout").status_code == 200
    assert browser.get("/v1/me").status_code == 401


def test_a_login_ends_with_the_token_that_it_came_from(own_server: Server) -> None:
    """Also one by a link of a browser that came in with the token: by revoking it, and by making a new one of its name."""
    for end in ("revoke", "new"):
        token = own_server.cli("serve", "token", "new", "phone", "--role", "operate").strip()
        by_token = own_server.browser(token=token)
        by_link = own_server.browser(code=own_server.code(client=by_token))
        unused = own_server.code(client=by_link)
        assert [each.get("/v1/me").status_code for each in (by_token, by_link)] == [200, 200]
        own_server.cli("serve", "token", end, "phone")
        assert [each.get("/v1/me").status_code for each in (by_token, by_link)] == [401, 401]
        assert own_server.as_().post("/v1/login", json={"code": unused}).status_code == 401


def test_a_login_ends_when_the_server_starts_with_another_token(own_server: Server) -> None:
    browsers = [own_server.browser(), own_server.browser(code=own_server.code())]
    kept = [(dict(each.cookies), each.headers["x-handrail"]) for each in browsers]

    def now() -> set[int]:
        clients = [own_server.as_(cookies=cookies) for cookies, _ in kept]
        sent = [{"x-handrail": key} for _, key in kept]
        return {each.get("/v1/me", headers=key).status_code for each, key in zip(clients, sent, strict=True)}

    own_server.stop()
    own_server.start()
    assert now() == {200}
    own_server.stop()
    own_server.token = own_server.env["HANDRAIL_SERVE_TOKEN"] = "another-token-for-the-tests"
    own_server.start()
    assert now() == {401}
    own_server.stop()
    del own_server.env["HANDRAIL_SERVE_TOKEN"]
    own_server.start()
    assert now() == {401}


def test_an_open_stream_ends_with_its_login(own_server: Server) -> None:
    own_server.cli("serve", "token", "new", "phone")
    token = own_server.client.post("/v1/tokens", json={"name": "phone", "role": "watch"}).json()["token"]
    with own_server.browser(token=token).stream("GET", "/v1/events") as stream:
        events = events_of(stream)
        assert next(events)[0] == "hello"
        own_server.client.delete("/v1/tokens/phone")
        own_server.call("todo")
        for seen, _ in enumerate(events):  # it ends, although each event makes another
            own_server.call("todo")
            assert seen < 10_000


def test_logins_are_listed_and_ended(own_server: Server) -> None:
    token = own_server.client.post("/v1/tokens", json={"name": "phone", "role": "watch"}).json()["token"]
    phone, desk = own_server.browser(token=token), own_server.browser()
    listed = desk.get("/v1/logins").json()["logins"]
    assert {(each["name"], each["role"], each["is_this_one"]) for each in listed} == {
        ("phone", "watch", False),
        ("operator", "operate", True),
    }
    assert [each["name"] for each in phone.get("/v1/logins").json()["logins"]] == ["phone"]
    other = next(each["id"] for each in listed if each["name"] == "phone")
    assert phone.delete(f"/v1/logins/{other}").status_code == 403
    assert desk.delete(f"/v1/logins/{other}").status_code == 200
    assert phone.get("/v1/me").status_code == 401
    assert desk.delete(f"/v1/logins/{other}").status_code == 404
    assert "operator" in (shown := own_server.cli("serve", "login", "list"))
    assert "logged out" in own_server.cli("serve", "login", "end", shown.splitlines()[1].split()[0])
    assert desk.get("/v1/me").status_code == 401


def test_who_came_in_and_who_was_refused_is_in_the_audit(own_server: Server) -> None:
    own_server.browser()
    own_server.browser(code=own_server.code("watch"))
    own_server.as_().post("/v1/login", json={"token": "wrong"})
    own_server.as_("wrong").get("/v1/tools")
    own_server.call("todo")
    own_server.client.post("/v1/batches", json={"tool_calls": [{"function": {"name": "todo", "arguments": "{}"}}]})
    noted = own_server.client.get("/v1/audit").json()["audit"]
    found = [(each["who"], each["action"], each["detail"], each["status"]) for each in noted]
    assert ("operator", "POST /v1/login", "with a token", 200) in found
    assert ("link by operator", "POST /v1/login", "by a link", 200) in found
    assert ("", "POST /v1/login", "with a token refused: unknown token", 401) in found
    assert ("operator", "POST /v1/calls", "todo", 200) in found
    assert ("operator", "POST /v1/batches", "todo", 200) in found
    refused = next(each for each in noted if each["action"] == "GET /v1/tools")
    assert (refused["who"], refused["role"], refused["status"]) == ("", "", 401)
    assert "wrong" not in str(found)


def test_what_is_on_the_disk_lets_nobody_in(server: Server) -> None:
    server.client.post("/v1/login", json={"token": TOKEN})
    cookie = server.as_().post("/v1/login", json={"token": TOKEN}).cookies["handrail"]
    kept = b"".join(path.read_bytes() for path in server.home.rglob("*") if path.is_file())
    assert TOKEN.encode() not in kept
    assert cookie.encode() not in kept
    assert hashlib.sha256(TOKEN.encode()).hexdigest().encode() not in kept  # it may be short enough to be guessed


def test_who_tries_tokens_is_made_to_wait(own_server: Server) -> None:
    own_server.client.get("/v1/me")
    stranger = own_server.as_("wrong")
    found = {stranger.get("/v1/me").status_code for _ in range(40)}
    assert found == {401, 429}
    assert {own_server.as_().post("/v1/login", json={"token": "wrong"}).status_code for _ in range(3)} == {429}
    # An agent that guesses has its user's address: whoever has a right credential comes in all the same.
    assert own_server.client.get("/v1/me").status_code == 200
    other = own_server.client.post("/v1/tokens", json={"name": "other", "role": "watch"}).json()["token"]
    assert own_server.as_(other).get("/v1/me").status_code == 200
    assert own_server.browser(token=other).get("/v1/me").status_code == 200
    assert own_server.browser(code=own_server.code()).get("/v1/me").status_code == 200


def test_a_flood_of_requests_keeps_nobody_from_logging_in() -> None:
    guard = Guard(Keys(token=TOKEN), frozenset({"127.0.0.1:1"}))

    def sent(path: str) -> Request:
        return Request({"type": "http", "path": path, "headers": [], "client": ("127.0.0.1", 1), "method": "POST"})

    with pytest.raises(HttpError, match="too many requests"):
        [guard.admit(sent("/health"), None) for _ in range(5_000)]
    guard.admit(sent("/v1/login"), None)
    assert guard.log_in(sent("/v1/login"), token=TOKEN).name == "operator"


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
    client = server.client
    answers = [client.get(path) for path in ("/", "/health", "/v1/me", "/nowhere", "/assets/nothing.js")]
    answers += [
        client.get("/v1/me", headers={"host": "evil.example"}),
        client.get("/v1/me", headers={"origin": "https://evil.example"}),
        server.as_().get("/v1/me"),
        server.as_().post("/mcp", json={}),
        server.as_(server.client.post("/v1/tokens", json={"name": "w", "role": "watch"}).json()["token"]).get(
            "/v1/audit"
        ),
        client.put("/v1/calls"),
        client.post("/v1/calls", content=b"{"),
        client.post("/v1/calls", content=b" " * (11 << 20)),
    ]
    statuses = {answer.status_code for answer in answers}
    assert statuses == {200, 404, 421, 403, 401, 405, 400, 413}
    for headers in [answer.headers for answer in answers] + [_answer_to_nonsense(server)]:
        assert headers["referrer-policy"] == "no-referrer"
        assert "script-src 'self'" in headers["content-security-policy"]
        assert "unsafe-inline" not in headers["content-security-policy"].partition("style-src")[0]
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["x-frame-options"] == "DENY"


def _answer_to_nonsense(server: Server) -> httpx.Headers:
    with socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE_SECONDS) as connection:
        connection.sendall(b"\x16\x03\x01 this is not HTTP\r\n\r\n")
        answer = b"".join(iter(lambda: connection.recv(65_536), b""))
    head = answer.decode().partition("\r\n\r\n")[0].split("\r\n")
    assert head[0] == "HTTP/1.1 400 Bad Request"
    return httpx.Headers([tuple(line.split(": ", 1)) for line in head[1:]])


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
