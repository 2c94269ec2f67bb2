"""What an agent runs reaches the server as a stranger: it finds no token and no cookie, and cannot make any.

The server's own user may be root here, from whom nothing in memory can be hidden; all the rest holds for root, too.
"""

from __future__ import annotations

import json
import secrets
import sqlite3
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from .. import fork_server
from ..services.docker import Docker
from ..support import PYTHON, wait_until
from .conftest import Server

# The halves are put together when it runs, so that it does not find itself.
_LOOK = """
import glob, json, os, urllib.error, urllib.request
token, cookie = {token_halves!r}, {cookie_halves!r}
secrets = ["".join(token).encode(), "".join(cookie).encode()]

def read(path):
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return b""

places = glob.glob("/proc/[0-9]*/environ") + glob.glob("/proc/[0-9]*/cmdline")
places += [os.path.join(folder, name) for folder, _, names in os.walk({home!r}) for name in names]
found = [place for place in places for secret in secrets if secret in read(place)]
found += [name for name, value in os.environ.items() if value.encode() in secrets or "SERVE_TOKEN" in name]

def status(path, **headers):
    request = urllib.request.Request({url!r} + path, headers=headers)
    try:
        return urllib.request.urlopen(request, timeout=60).status
    except urllib.error.HTTPError as error:
        return error.code
    except OSError:
        return "unreachable"

digests = {digests!r}
asked = [status("/v1/me"), status("/v1/me", **{{"X-Handrail": "1", "Cookie": "handrail=x"}})]
asked += [status("/v1/me", Authorization="Bearer " + each) for each in digests]
asked += [status("/v1/me", Cookie="handrail=" + each) for each in digests]
print(json.dumps({{"found": found, "asked": asked, "health": status("/health"), "places": len(places)}}))
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """With a token that no other test has: all processes of the machine are looked at, and what the kernel tells of them."""
    folders = tmp_path_factory.mktemp("served"), tmp_path_factory.mktemp("work")
    # The server is to be reached: otherwise the connection itself would wait for an answer.
    made = Server(
        *folders, config="network: {contain: 'off'}\n", token=secrets.token_urlsafe(), start=fork_server.start_fresh
    )
    yield made
    made.stop()


def _look(server: Server, cookie: str) -> str:
    with sqlite3.connect(server.home / "state" / "serve.db") as store:
        query = "SELECT digest FROM tokens UNION SELECT cookie FROM logins UNION SELECT page_key FROM logins"
        kept = [row[0] for row in store.execute(query)]
    store.close()
    halves = [(each[:7], each[7:]) for each in (server.token, cookie)]
    return _LOOK.format(
        token_halves=halves[0], cookie_halves=halves[1], home=str(server.home), url=server.url, digests=kept[:4]
    )


def _cookie(server: Server) -> str:
    server.client.post("/v1/tokens", json={"name": "phone", "role": "approve"})
    return str(server.as_().post("/v1/login", json={"token": server.token}).cookies["handrail"])


def _is_a_stranger(seen: dict[str, Any]) -> bool:
    assert seen["places"] > 2
    assert len(seen["asked"]) >= 4
    # 429: the tests before it have guessed as much.
    return (
        seen["found"] == [] and seen["asked"][0] == 401 and set(seen["asked"]) <= {401, 429} and seen["health"] == 200
    )


def test_a_command_is_a_stranger(server: Server) -> None:
    (server.cwd / "look.py").write_text(_look(server, _cookie(server)))
    assert _is_a_stranger(json.loads(_allowed(server, "terminal", command="python3 look.py")["output"]))


def test_a_background_process_is_a_stranger(server: Server) -> None:
    (server.cwd / "look.py").write_text(_look(server, _cookie(server)))
    process = _allowed(server, "terminal", command="python3 look.py", background=True)["session_id"]

    def log() -> str:
        text: str = server.client.get(f"/v1/processes/{process}/log").json()["text"]
        return text

    wait_until(lambda: log().endswith("}\n"), timeout=60)
    assert _is_a_stranger(json.loads(log()))


def test_a_script_of_execute_code_is_a_stranger(server: Server) -> None:
    assert _is_a_stranger(json.loads(_allowed(server, "execute_code", code=_look(server, _cookie(server)))["output"]))


def _allowed(server: Server, tool: str, **arguments: Any) -> Any:
    """The result of a call, also of one that a person has to allow: a script that reads so much and goes to the network."""
    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(server.call, tool, **arguments)
        wait_until(lambda: asked.done() or server.waiting(), timeout=60)
        for question in server.waiting():
            server.client.post(f"/v1/approvals/{question['id']}", json={"decision": "once"})
        return asked.result()


@pytest.fixture
def docker_server(tmp_path: Path, docker_service: Docker) -> Iterator[Server]:
    """Its commands run in a container that has the host's network, so that they can knock."""
    (tmp_path / "work").mkdir()
    options = {"image": docker_service.image, "network": "host"}
    config = json.dumps({"terminal": {"backend": "docker", "backends": {"docker": options}}})
    token = secrets.token_urlsafe()
    folders = tmp_path / "served", tmp_path / "work"
    made = Server(*folders, config=config, token=token, start=fork_server.start_fresh, **docker_service.env)
    yield made
    made.stop()


def test_a_command_in_a_container_is_a_stranger(docker_server: Server) -> None:
    look = _look(docker_server, _cookie(docker_server))
    docker_server.call("write_file", path="look.py", content=look)
    ran = _allowed(docker_server, "terminal", command="python3 look.py")
    assert _is_a_stranger(json.loads(ran["output"]))
    assert _is_a_stranger(json.loads(_allowed(docker_server, "execute_code", code=look)["output"]))


def test_the_servers_own_environment_does_not_tell_the_token(server: Server) -> None:
    assert server.token.encode() not in Path(f"/proc/{server.process.pid}/environ").read_bytes()


@pytest.mark.parametrize(
    ("words", "refusal"),
    [
        (["approvals", "answer", "{id}", "always"], "an agent cannot answer requests"),
        (["serve", "token", "new", "me", "--role", "operate"], "an agent cannot make tokens"),
        (["serve", "token", "revoke", "phone"], "an agent cannot revoke tokens"),
        (["serve", "--http", "0"], "an agent cannot serve"),
        (["config", "set", "approvals.mode", "off"], "an agent cannot"),
        (["plugins", "new", "evil"], "an agent cannot write plugins"),
        (["mcp", "add", "evil", "--", "true"], "an agent cannot add MCP servers"),
    ],
    ids=lambda each: " ".join(each) if isinstance(each, list) else "",
)
def test_our_own_command_line_does_nothing_for_an_agent(server: Server, words: list[str], refusal: str) -> None:
    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(server.call, "terminal", command="rm -rf ~/important")
        wait_until(server.waiting, timeout=60)
        [question] = server.waiting()
        given = [word.format(id=question["id"]) for word in words]
        # Hidden from the judge, who would not let it begin.
        code = (
            f"import runpy, sys; sys.argv = ['handrail', *{given!r}]; runpy.run_module('handrail', run_name='__main__')"
        )
        (server.cwd / "hidden.py").write_text(code)
        told = server.call("terminal", command=f"env -u HANDRAIL_INSIDE {PYTHON} hidden.py 2>&1")
        assert refusal in told["output"]
        assert told["exit_code"] != 0
        assert [each["id"] for each in server.waiting()] == [question["id"]]
        server.client.post(f"/v1/approvals/{question['id']}", json={"decision": "deny"})
        asked.result()
