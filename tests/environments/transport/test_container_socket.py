"""A container's way to this process past its engine: who is let in, what is seen of it, and where there is none."""

from __future__ import annotations

import os
import socket
import stat
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from handrail.environments import private_dirs
from handrail.environments.backends import docker
from handrail.environments.errors import EnvironmentLost
from handrail.environments.live_environment import LiveEnvironment
from handrail.environments.shell_host.connection import Lost
from handrail.environments.transport import container_socket
from handrail.environments.transport.channel import Channel, PipeChannel, Transport
from handrail.environments.transport.container_socket import Door, DoorChannel, DoorFolder, open_door
from handrail.environments.transport.link import Link
from handrail.environments.transport.session import Session

from ...support import wait_until
from ..conftest import PATIENCE_SECONDS, text
from ..container_kinds import CLASSES, Kind


class There(LiveEnvironment):
    """A shell of this machine that is invited to a door. `inside` is where it finds the folder."""

    name = "there"

    def __init__(self, folder: Path, inside: Path) -> None:
        super().__init__()
        self._folder, self._inside = folder, inside

    def _connect(self, state: bytes | None) -> Link:
        door = Door(str(self._folder))
        door.invitation["path"] = str(self._inside / os.path.basename(door.invitation["path"]))
        try:
            way = Transport(argv=list, where="the box", python=sys.executable)
            return Session(way, env={}, cwd="/", state=state, door=door)
        finally:
            door.close()


def channel_of(shell: LiveEnvironment) -> Channel:
    assert isinstance(shell._link, Session)
    return shell._link._channel


def test_who_is_invited_comes_by_the_door_and_the_door_is_shut(tmp_path: Path) -> None:
    with There(tmp_path, tmp_path) as shell:
        assert isinstance(channel_of(shell), DoorChannel)
        assert os.listdir(tmp_path) == []
        assert text(shell.execute("echo in; cat", stdin=b"put", timeout=PATIENCE_SECONDS)) == "in\nput"
        big = shell.execute("head -c 30000000 /dev/zero", timeout=PATIENCE_SECONDS)
        assert big.output.total_bytes == 30_000_000


def test_who_cannot_come_to_the_door_stays_with_the_stream(tmp_path: Path) -> None:
    with There(tmp_path, tmp_path / "elsewhere") as shell:
        assert isinstance(channel_of(shell), PipeChannel)
        assert text(shell.execute("echo in", timeout=PATIENCE_SECONDS)) == "in\n"
        assert os.listdir(tmp_path) == []


def test_a_shell_that_came_by_a_door_and_was_killed_is_started_again_by_another(tmp_path: Path) -> None:
    with There(tmp_path, tmp_path) as shell:
        shell.execute("cd /usr; X=kept", timeout=PATIENCE_SECONDS)
        with pytest.raises(EnvironmentLost):
            shell.execute("kill -9 $(ps -o ppid= $(ps -o ppid= $PPID)); sleep 1000", timeout=PATIENCE_SECONDS)
        assert text(shell.execute("pwd", timeout=PATIENCE_SECONDS)) == "/usr\n"
        assert isinstance(channel_of(shell), DoorChannel)


@pytest.fixture
def stream() -> Iterator[PipeChannel]:
    channel = Transport(argv=lambda _: ["cat"], where="the box").open()
    assert isinstance(channel, PipeChannel)
    yield channel
    channel.close()


def test_others_are_sent_away(tmp_path: Path, stream: PipeChannel) -> None:
    door = Door(str(tmp_path))
    path = str(tmp_path / os.path.basename(door.invitation["path"]))
    words = (b"", b"x" * 16, bytes.fromhex(door.invitation["word"]))
    callers = [socket.socket(socket.AF_UNIX) for _ in words]
    for caller, word in zip(callers, words, strict=True):
        caller.connect(path)
        caller.sendall(word)
        if not word:
            caller.shutdown(socket.SHUT_WR)
    channel = door.let_in(stream)
    door.close()
    assert [caller.recv(1) for caller in callers[:2]] == [b"", b""]
    callers[2].sendall(b"hello")
    assert channel.receive(time.monotonic() + PATIENCE_SECONDS) == b"hello"
    channel.close()
    assert callers[2].recv(1) == b""
    for caller in callers:
        caller.close()


def test_who_says_that_he_comes_and_does_not_is_not_waited_for_without_end(
    tmp_path: Path, stream: PipeChannel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(container_socket, "_LET_IN_SECONDS", 0.1)
    door = Door(str(tmp_path))
    with pytest.raises(Lost, match="the box did not come to the door"):
        door.let_in(stream)
    door.close()


def test_without_a_folder_there_is_no_door() -> None:
    folder = DoorFolder("docker")
    folder.remove()
    with open_door(folder) as door:
        assert door is None
    with open_door(None) as door:
        assert door is None


# With the engines


@pytest.fixture(scope="module", params=["docker", "podman"])
def service(request: pytest.FixtureRequest) -> Kind:
    service = request.getfixturevalue(f"{request.param}_service")
    return Kind(request.param, service.image, service.env, service)


@pytest.fixture
def kind(service: Kind, monkeypatch: pytest.MonkeyPatch) -> Iterator[Kind]:
    for name, value in service.env.items():
        monkeypatch.setenv(name, value)
    yield service
    assert service.left() == []
    assert folders_of(service, os.getpid()) == []


def folders_of(kind: Kind, pid: int) -> list[str]:
    return [folder for folder in private_dirs.every(f"handrail-{kind.name}") if f".{pid}." in folder]


def test_a_container_sees_an_empty_folder_that_it_cannot_change_and_nobody_else_can_enter(kind: Kind) -> None:
    with kind.make(user="1234:1234") as shell:
        assert isinstance(channel_of(shell), DoorChannel)
        looked = shell.execute("id -u; ls -A /.handrail; touch /.handrail/x", timeout=PATIENCE_SECONDS)
        assert text(looked).startswith("1234\ntouch: ")
    with kind.make() as shell:
        assert isinstance(channel_of(shell), DoorChannel)
        looked = shell.execute("id -u; ls -A /.handrail; touch /.handrail/x", timeout=PATIENCE_SECONDS)
        assert text(looked).startswith("0\ntouch: ")
        assert "Read-only file system" in text(looked)
        (folder,) = folders_of(kind, os.getpid())
        assert stat.S_IMODE(os.stat(folder).st_mode) == 0o700
        assert [os.listdir(folder), os.listdir(f"{folder}/door")] == [["door"], []]


def test_an_engine_that_does_not_see_this_machines_folders_does_without(
    kind: Kind, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Unseen(DoorFolder):
        def __init__(self, engine: str) -> None:
            super().__init__(engine)
            os.rmdir(self.path)

    monkeypatch.setattr(docker, "DoorFolder", Unseen)
    with kind.make() as shell:
        assert isinstance(channel_of(shell), PipeChannel)
        assert text(shell.execute("echo in; ls -d /.handrail 2>/dev/null", timeout=PATIENCE_SECONDS)) == "in\n"
        assert folders_of(kind, os.getpid()) == []


def test_the_folder_of_a_killed_runtime_is_taken_away(kind: Kind) -> None:
    client, name = kind.client(leave_after=1000)
    assert len(folders_of(kind, client.pid)) == 1
    CLASSES[kind.name].prune()
    assert len(folders_of(kind, client.pid)) == 1  # its owner lives
    client.kill()
    client.wait()
    CLASSES[kind.name].prune()
    wait_until(lambda: not kind.is_there(name))
    assert folders_of(kind, client.pid) == []
