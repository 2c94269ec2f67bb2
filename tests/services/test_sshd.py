"""The ssh server of the tests: a real login, a host key to be refused, an end and a comeback, a link that is cut."""

from __future__ import annotations

import os
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO

import pytest

from ..support import wait_until
from .proofs import EVERY_BYTE, kill_run
from .sshd import Ssh

_REFUSED = 255


@contextmanager
def _echo(ssh: Ssh) -> Iterator[tuple[IO[bytes], IO[bytes], subprocess.Popen[bytes]]]:
    """A connection that gives back what it is sent."""
    command = ["ssh", "-F", str(ssh.config), ssh.alias, "cat"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0) as client:
        assert client.stdin
        assert client.stdout
        try:
            yield client.stdin, client.stdout, client
        finally:
            client.kill()


def test_the_user_has_an_empty_home_and_a_plain_shell(ssh_service: Ssh) -> None:
    # Other tests' shells keep the journals of their effects in ~/.local.
    said = ssh_service.run("id -un; pwd; ls -A -I .local; python3 -c 'print(6 * 7)'").stdout.decode().split()
    assert said == [ssh_service.user, str(ssh_service.home), "42"]


def test_bytes_go_through_unchanged(ssh_service: Ssh) -> None:
    assert ssh_service.run("cat", stdin=EVERY_BYTE).stdout == EVERY_BYTE


def test_a_server_with_another_host_key_is_refused(ssh_service: Ssh) -> None:
    refused = ssh_service.run("true", alias=ssh_service.impostor)
    assert refused.returncode == _REFUSED
    assert b"Host key verification failed" in refused.stderr


def test_it_can_be_reached_over_a_jump_host(ssh_service: Ssh) -> None:
    assert ssh_service.run("echo over", alias=ssh_service.jumped).stdout == b"over\n"


def test_what_runs_there_does_not_see_this_machines_processes(ssh_service: Ssh) -> None:
    assert str(os.getpid()) not in ssh_service.run("ps -eo pid=").stdout.decode().split()


def test_one_connection_carries_many_sessions(ssh_service: Ssh, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("c") / "s"
    shared = ["ssh", "-F", str(ssh_service.config), "-o", f"ControlPath={path}"]
    master = [*shared, "-o", "ControlMaster=yes", "-fN", ssh_service.alias]
    subprocess.run(master, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    try:
        command = [*shared, ssh_service.alias, "read x; echo $x"]
        sessions = [subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) for _ in range(30)]
        assert {session.communicate(b"through\n")[0] for session in sessions} == {b"through\n"}
    finally:
        subprocess.run([*shared, "-O", "exit", ssh_service.alias], capture_output=True, check=True)


def test_a_killed_server_ends_its_connections_and_can_come_back_on_its_port(own_ssh_service: Ssh) -> None:
    with _echo(own_ssh_service) as (there, back, client):
        there.write(b"one\n")
        assert back.read(4) == b"one\n"
        own_ssh_service.kill()
        assert client.wait() == _REFUSED
    assert b"Connection refused" in own_ssh_service.run("true").stderr
    own_ssh_service.start_again()
    assert own_ssh_service.run("echo back").stdout == b"back\n"


def test_connections_can_be_ended_without_the_server(own_ssh_service: Ssh) -> None:
    with _echo(own_ssh_service) as (there, back, client):
        there.write(b"one\n")
        assert back.read(4) == b"one\n"
        own_ssh_service.hang_up()
        assert client.wait() == _REFUSED
    assert own_ssh_service.run("echo still").stdout == b"still\n"


def test_a_cut_link_is_silence_and_what_was_sent_arrives_when_it_is_back(far_ssh_service: Ssh) -> None:
    link = far_ssh_service.link
    assert link
    with _echo(far_ssh_service) as (there, back, client):
        there.write(b"one\n")
        assert back.read(4) == b"one\n"
        link.cut()
        there.write(b"two\n")
        with socket.socket() as attempt:
            attempt.settimeout(0.3)
            with pytest.raises(TimeoutError):
                attempt.connect((far_ssh_service.host, far_ssh_service.port))
        assert client.poll() is None
        link.restore()
        assert back.read(4) == b"two\n"


def test_a_link_is_gone_with_the_service_behind_it(far_ssh_service: Ssh) -> None:
    link = far_ssh_service.link
    assert link
    assert link.is_there
    kill_run(far_ssh_service.tenant)
    wait_until(lambda: not link.is_there)
