"""The real Modal SDK against the double: sandboxes, a process that is talked to in bytes, files, ends, a server that dies."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest

from ..support import wait_until
from .clouds import Cloud
from .docker import Docker
from .proofs import EVERY_BYTE, LOADER, REVERSER, running_with
from .tenants import Services


class Stream:
    """Bytes to and from a process in a Modal sandbox: all of it is public API."""

    def __init__(self, process: Any) -> None:
        self._process = process
        self._chunks = iter(process.stdout)
        self._buffer = b""

    def write(self, data: bytes) -> None:
        self._process.stdin.write(data)
        self._process.stdin.drain()

    def read(self, count: int) -> bytes:
        while len(self._buffer) < count:
            self._buffer += next(self._chunks)
        taken, self._buffer = self._buffer[:count], self._buffer[count:]
        return taken

    def close(self) -> int:
        self._process.stdin.write_eof()
        self._process.stdin.drain()
        return int(self._process.wait())

    def reversed(self, frame: bytes) -> bytes:
        self.write(len(frame).to_bytes(4, "big") + frame)
        return self.read(int.from_bytes(self.read(4), "big"))


@pytest.fixture
def app(modal_sdk: ModuleType) -> Any:
    return modal_sdk.App.lookup(f"handrail-{uuid.uuid4().hex[:8]}", create_if_missing=True)


@pytest.fixture
def sandbox(modal_sdk: ModuleType, app: Any) -> Iterator[Any]:
    made = modal_sdk.Sandbox.create(app=app, image=modal_sdk.Image.debian_slim(), env={"GIVEN": "yes"}, timeout=600)
    yield made
    modal_sdk.Sandbox.from_id(made.object_id).terminate()


def _stream(sandbox: Any) -> Stream:
    stream = Stream(sandbox.exec("python3", "-c", LOADER, text=False))
    stream.write(b"%09d" % len(REVERSER) + REVERSER)
    return stream


def test_a_command_runs_in_a_real_container(sandbox: Any, modal_service: Cloud) -> None:
    assert sandbox.object_id in modal_service.sandboxes()
    process = sandbox.exec("bash", "-c", "echo $GIVEN; echo error >&2; exit 3")
    assert (process.stdout.read(), process.stderr.read(), process.wait()) == ("yes\n", "error\n", 3)


def test_a_process_is_talked_to_in_bytes(sandbox: Any) -> None:
    stream = _stream(sandbox)
    for frame in (b"x", EVERY_BYTE, b"", os.urandom(3_000_000)):
        assert stream.reversed(frame) == frame[::-1]
    assert stream.close() == 7


def test_two_processes_are_talked_to_at_once(sandbox: Any) -> None:
    one, other = _stream(sandbox), _stream(sandbox)
    assert (other.reversed(b"other"), one.reversed(b"one")) == (b"rehto", b"eno")
    one.close()
    other.close()


def test_much_output_arrives_whole(sandbox: Any) -> None:
    count = 0
    for chunk in sandbox.exec("head", "-c", "50000000", "/dev/zero", text=False).stdout:
        count += len(chunk)
    assert count == 50_000_000


def test_a_process_does_not_notice_that_its_client_is_gone(modal_sdk: ModuleType, sandbox: Any) -> None:
    """Nor does Modal tell it: whoever must not outlive its client has to ask for a sign of life."""
    mark = uuid.uuid4().hex
    sandbox.exec("python3", "-c", LOADER, text=False, env={"MARK": mark})
    wait_until(lambda: running_with(mark))
    sandbox.detach()
    again = modal_sdk.Sandbox.from_id(sandbox.object_id)
    assert again.exec("pgrep", "-c", "python3").stdout.read().strip() == "1"
    again.terminate()
    wait_until(lambda: not running_with(mark))


def test_an_execution_has_a_time_limit(sandbox: Any) -> None:
    process = sandbox.exec("sleep", "infinity", timeout=1)
    assert process.wait() == -1
    # The container's own is left; a process that was killed may take a moment to be gone.
    wait_until(lambda: sandbox.exec("pgrep", "-x", "sleep", "-c").stdout.read().strip() == "1")


def test_files_are_written_and_read(modal_sdk: ModuleType, sandbox: Any) -> None:
    sandbox.filesystem.write_bytes(EVERY_BYTE, "/tmp/new folder/ü")
    assert sandbox.filesystem.read_bytes("/tmp/new folder/ü") == EVERY_BYTE
    with pytest.raises(modal_sdk.exception.SandboxFilesystemNotFoundError):
        sandbox.filesystem.read_bytes("/proc/nowhere")


def test_sandboxes_are_found_by_their_tags_and_ended(modal_sdk: ModuleType, app: Any, modal_service: Cloud) -> None:
    owner = uuid.uuid4().hex
    image = modal_sdk.Image.debian_slim()
    for number in range(2):
        modal_sdk.Sandbox.create(app=app, image=image, tags={"owner": owner, "number": str(number)})
    found = list(modal_sdk.Sandbox.list(app_id=app.app_id, tags={"owner": owner}))
    assert sorted(one.get_tags()["number"] for one in found) == ["0", "1"]
    assert not list(modal_sdk.Sandbox.list(app_id=app.app_id, tags={"owner": "somebody else"}))
    for one in found:
        one.terminate()
    assert not {one.object_id for one in found} & set(modal_service.sandboxes())


def test_a_sandbox_that_is_gone_is_not_found(modal_sdk: ModuleType, app: Any, modal_service: Cloud) -> None:
    sandbox = modal_sdk.Sandbox.create(app=app, image=modal_sdk.Image.debian_slim())
    assert sandbox.poll() is None
    modal_service.docker.run("rm", "--force", sandbox.object_id)
    assert sandbox.poll() == 137
    with pytest.raises(modal_sdk.exception.NotFoundError):
        sandbox.exec("true")


def test_a_sandbox_ends_by_itself_when_its_time_is_up(modal_sdk: ModuleType, app: Any, modal_service: Cloud) -> None:
    sandbox = modal_sdk.Sandbox.create(app=app, image=modal_sdk.Image.debian_slim(), timeout=1)
    wait_until(lambda: sandbox.object_id not in modal_service.sandboxes())


def test_a_killed_server_comes_back_and_knows_its_sandboxes(
    services: Services, docker_service: Docker, modal_sdk: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    cloud = Cloud.modal(services, docker_service, own=True)
    with cloud.tenant:
        monkeypatch.setenv("MODAL_SERVER_URL", cloud.env["MODAL_SERVER_URL"])
        app = modal_sdk.App.lookup("own", create_if_missing=True)
        sandbox = modal_sdk.Sandbox.create(app=app, image=modal_sdk.Image.debian_slim())
        cloud.kill()
        cloud.start_again()
        assert cloud.sandboxes() == [sandbox.object_id]
        assert sandbox.exec("echo", "back").stdout.read() == "back\n"
    assert sandbox.object_id not in docker_service.run("ps", "--all", "--format", "{{.Names}}").split()
