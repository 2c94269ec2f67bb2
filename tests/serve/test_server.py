"""The server's start and its reload: what it prints where, what others can read of it, and that a reload loses nothing."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from handrail.errors import ConfigError
from handrail.serve.server import TOKEN_VARIABLE, given_token

from .. import fork_server
from ..cli.terminal import Terminal
from ..support import configure, free_port, wait_until
from .conftest import TOKEN, Server

KEY = "sk-a-key-of-the-person-0001"
_OTHER_USER = 23456


@pytest.fixture
def fresh(tmp_path: Path) -> Iterator[Server]:
    """From nothing, with a key in its environment: a forked process would show another's block."""
    (tmp_path / "work").mkdir()
    made = Server(tmp_path / "home", tmp_path / "work", start=fork_server.start_fresh, OPENAI_API_KEY=KEY)
    yield made
    made.stop()


def _environment_of(pid: int) -> bytes:
    with contextlib.suppress(PermissionError):
        return Path(f"/proc/{pid}/environ").read_bytes()
    return b""


def _family(pid: int) -> list[int]:
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [pid, *(each for child in children for each in _family(int(child)))]


def _reloaded(server: Server, settings: str, tools: set[str]) -> None:
    configure(server.home, settings)
    server.process.send_signal(signal.SIGHUP)
    wait_until(lambda: _offered(server) == tools, timeout=120)


def _offered(server: Server) -> set[str]:
    """Nothing while the server ends: it cuts off what takes longer than it waits."""
    headers = {"authorization": f"Bearer {server.token}"}
    try:
        answer = httpx.get(f"{server.url}/v1/definitions", headers=headers, timeout=60)
    except httpx.TransportError:
        return set()
    return {each["function"]["name"] for each in answer.json()["definitions"]} if answer.status_code == 200 else set()


def test_neither_the_start_nor_a_reload_shows_keys_or_the_token(fresh: Server) -> None:
    """Also to root, who reads every process's block."""

    def seen() -> bytes:
        return b"".join(_environment_of(pid) for pid in _family(fresh.process.pid))

    assert KEY.encode() not in seen()
    assert TOKEN.encode() not in seen()
    _reloaded(fresh, "tools:\n  enabled_toolsets: [todo]\n", {"todo"})
    assert fresh.process.poll() is None
    assert KEY.encode() not in _environment_of(fresh.process.pid)
    assert TOKEN.encode() not in seen()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_another_process_of_the_same_user_cannot_read_it(tmp_path: Path) -> None:
    code = f"""
import ctypes, os
from handrail.base.own_process import hide_process
os.setgid({_OTHER_USER}); os.setuid({_OTHER_USER})
ctypes.CDLL(None).prctl(4, 1, 0, 0, 0)  # as a program is that was started by this user
def look():
    try:
        return "{KEY}" in open(f"/proc/{{child}}/environ").read()
    except PermissionError:
        return "refused"
(hear, tell), (wait, go) = os.pipe(), os.pipe()
child = os.fork()
if not child:
    os.read(wait, 1); hide_process(); os.write(tell, b"."); os.read(wait, 1); os._exit(0)
print(look())
os.write(go, b"."); os.read(hear, 1)
print(look())
os.write(go, b"."); os.wait()
"""
    env = {**os.environ, "KEY": KEY}
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=env)
    assert ran.stdout.split() == ["True", "refused"]


def test_children_still_inherit_the_environment() -> None:
    code = (
        "import os, subprocess; from handrail.base.own_process import hide_process; hide_process(); "
        "print(os.environ['KEY'], subprocess.run(['printenv', 'KEY'], capture_output=True, text=True).stdout, os.getenv('NONE'))"
    )
    env = {**os.environ, "KEY": KEY, "EMPTY": ""}
    ran = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True)
    assert ran.stdout.split() == [KEY, KEY, "None"]


def test_many_reloads_at_once_keep_the_server_and_lose_no_request(own_server: Server) -> None:
    """A client that connects meanwhile waits; a signal during a reload does not end anything."""
    failed: list[object] = []
    over = threading.Event()

    def ask() -> None:
        while not over.is_set():
            try:
                answer = httpx.get(f"{own_server.url}/health", timeout=60)
                failed.extend([answer] if answer.status_code != 200 else [])
            except httpx.ConnectError as error:
                failed.append(error)
            except httpx.TransportError:
                pass  # was open when the server ended, and cut off

    asking = threading.Thread(target=ask)
    asking.start()
    try:
        for number in range(3):
            tools = {"todo"} if number % 2 else {"clarify"}
            for _ in range(5):
                own_server.process.send_signal(signal.SIGHUP)
            _reloaded(own_server, f"tools:\n  enabled_toolsets: {sorted(tools)}\n", tools)
            assert own_server.process.poll() is None
    finally:
        over.set()
        asking.join()
    assert failed == []


def test_a_broken_configuration_is_not_loaded_and_ends_nothing(own_server: Server) -> None:
    offered = _offered(own_server)
    (own_server.home / "config.yaml").write_text("tools: [")
    own_server.process.send_signal(signal.SIGHUP)
    (own_server.home / "config.yaml").write_text("tools:\n  disabled_toolsets: [todo]\n")
    own_server.process.send_signal(signal.SIGHUP)
    wait_until(lambda: _offered(own_server) == offered - {"todo"}, timeout=120)


def test_a_link_that_was_not_used_yet_works_after_a_reload(own_server: Server) -> None:
    code = own_server.code("watch")
    _reloaded(own_server, "tools:\n  enabled_toolsets: [todo]\n", {"todo"})
    assert own_server.browser(code=code).get("/v1/me").json()["role"] == "watch"


def test_the_login_link_is_for_terminals(own_server: Server, tmp_path: Path) -> None:
    assert not any("code=" in line for line in own_server.lines)
    assert "handrail serve token new" in own_server.lines[1]
    command = ["-m", "handrail", "serve", "--http", str(free_port()), "--no-cron"]
    with Terminal(
        command, cwd=tmp_path, env={**own_server.env, "HANDRAIL_HOME": str(tmp_path)}, columns=200
    ) as terminal:
        terminal.wait_for("/login?code=")


def test_a_token_comes_by_a_descriptor_or_as_a_credential(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read, write = os.pipe()
    os.write(write, f"{TOKEN}\n".encode())
    os.close(write)
    monkeypatch.setenv(TOKEN_VARIABLE, "another one, in the environment")
    assert given_token(descriptor=read) == TOKEN
    assert TOKEN_VARIABLE not in os.environ
    (tmp_path / TOKEN_VARIABLE.lower()).write_text(f"{TOKEN}2\n")
    monkeypatch.setenv("CREDENTIALS_DIRECTORY", str(tmp_path))
    assert given_token() == f"{TOKEN}2"
    (tmp_path / TOKEN_VARIABLE.lower()).write_text("")
    with pytest.raises(ConfigError, match="too short"):
        given_token()


def test_a_token_by_descriptor_lets_its_owner_in(tmp_path: Path) -> None:
    read, write = os.pipe()
    os.write(write, TOKEN.encode())
    os.close(write)
    env = {"HANDRAIL_HOME": str(tmp_path), "PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    port = free_port()
    command = [sys.executable, "-m", "handrail", "serve", "--no-cron", "--http", str(port), "--token-fd", str(read)]
    with subprocess.Popen(command, env=env, cwd=tmp_path, pass_fds=[read], stdout=subprocess.PIPE) as process:
        os.close(read)
        try:
            assert process.stdout is not None
            process.stdout.readline()
            url, headers = f"http://127.0.0.1:{port}/v1/me", {"authorization": f"Bearer {TOKEN}"}
            assert httpx.get(url, headers=headers, timeout=60).json()["role"] == "operate"
        finally:
            process.terminate()
