"""The way of commands elsewhere to a proxy here. What it carries is tried in tests/egress/test_networks_elsewhere.py."""

from __future__ import annotations

import ast
import os
import socket
import sys
from pathlib import Path

import pytest

from handrail.environments.shell_host.connection import Fatal
from handrail.environments.transport import tunnel
from handrail.environments.transport.session import Session, Transport
from handrail.environments.transport.tunnel import Tunnel

from ...support import wait_until

SOURCE = Path(tunnel.__file__)
HERE = Transport(argv=lambda words: words, where="the box", python=sys.executable)


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
        return port


def test_the_far_end_needs_only_python_3_8() -> None:
    tree = ast.parse(SOURCE.read_text(), feature_version=(3, 8))
    names = [name.name for node in tree.body if isinstance(node, ast.Import) for name in node.names]
    names += [node.module or "" for node in tree.body if isinstance(node, ast.ImportFrom)]
    assert set(names) <= sys.stdlib_module_names


def test_each_way_of_a_connection_ends_by_itself(tmp_path: Path) -> None:
    """As `nc` does: say everything, then read the answer."""
    port, path = _free_port(), tmp_path / "file"
    with socket.create_server(("127.0.0.1", 0)) as server:
        opened = Tunnel(HERE, server.getsockname(), port, str(path), b"content")
        try:
            assert path.read_bytes() == b"content"
            with socket.create_connection(("127.0.0.1", port)) as client:
                client.sendall(b"question")
                client.shutdown(socket.SHUT_WR)
                accepted = server.accept()[0]
                with accepted:
                    assert b"".join(iter(lambda: accepted.recv(99), b"")) == b"question"
                    accepted.sendall(b"answer")
                assert b"".join(iter(lambda: client.recv(99), b"")) == b"answer"
        finally:
            opened.close()
    wait_until(lambda: not path.exists())
    with pytest.raises(OSError, match="refused"):
        socket.create_connection(("127.0.0.1", port))


def test_a_proxy_that_is_gone_ends_the_connection_and_not_the_tunnel() -> None:
    port, gone = _free_port(), _free_port()
    opened = Tunnel(HERE, ("127.0.0.1", gone), port, "", b"")
    try:
        for _ in range(2):
            with socket.create_connection(("127.0.0.1", port)) as client:
                assert client.recv(1) == b""
        assert opened.is_alive
    finally:
        opened.close()


def test_a_port_that_is_taken_is_said() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as taken,
        pytest.raises(Fatal, match=r"out of the box: .*: handrail: .* in use"),
    ):
        Tunnel(HERE, ("127.0.0.1", 1), taken.getsockname()[1], "", b"")


def test_it_ends_with_a_shell_that_does_not_start() -> None:
    opened: list[Tunnel] = []

    def way_out(_: Transport) -> Tunnel:
        opened.append(Tunnel(HERE, ("127.0.0.1", 1), _free_port(), "", b""))
        return opened[0]

    with pytest.raises(Fatal, match="cannot be run here"):
        Session(HERE._replace(argv=lambda _: ["/nowhere/to/be/found"]), env={}, cwd="/", way_out=way_out)
    wait_until(lambda: not opened[0].is_alive)


def test_it_ends_when_nothing_comes_any_more(tmp_path: Path) -> None:
    """A cut connection would not show it."""
    path = tmp_path / "file"
    silent = HERE._replace(client_timeout=0.5, argv=lambda words: [*words[:-2], "0.5", words[-1]])
    opened = Tunnel(silent._replace(client_timeout=3600.0), ("127.0.0.1", 1), _free_port(), str(path), b"x")
    wait_until(lambda: not opened.is_alive)
    assert not os.path.exists(path)
    opened.close()
