"""The real Daytona SDK against the double: sandboxes, commands, sessions of lines, files, ends."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest

from ..support import in_threads
from .clouds import Cloud
from .proofs import EVERY_BYTE


@pytest.fixture
def client(daytona_sdk: ModuleType) -> Any:
    return daytona_sdk.Daytona()


@pytest.fixture
def sandbox(daytona_sdk: ModuleType, client: Any) -> Iterator[Any]:
    made = client.create(daytona_sdk.CreateSandboxFromSnapshotParams(env_vars={"GIVEN": "yes"}))
    yield made
    made.delete()


def test_a_command_runs_in_a_real_container(sandbox: Any, daytona_service: Cloud) -> None:
    assert sandbox.id in daytona_service.sandboxes()
    done = sandbox.process.exec("echo $GIVEN; echo error >&2; exit 3")
    assert (done.exit_code, done.result) == (3, "yes\nerror\n")


def test_an_execution_has_a_time_limit(daytona_sdk: ModuleType, sandbox: Any) -> None:
    with pytest.raises(daytona_sdk.DaytonaTimeoutError):
        sandbox.process.exec("sleep infinity", timeout=1)


def test_commands_of_a_session_share_a_shell(daytona_sdk: ModuleType, sandbox: Any) -> None:
    request = daytona_sdk.SessionExecuteRequest
    sandbox.process.create_session("shell")
    done = sandbox.process.execute_session_command("shell", request(command="cd /usr; X=1; echo out; echo err >&2"))
    assert (done.exit_code, done.stdout, done.stderr) == (0, "out\n", "err\n")
    done = sandbox.process.execute_session_command("shell", request(command='pwd; echo "$X"; false'))
    assert (done.exit_code, done.stdout) == (1, "/usr\n1\n")
    sandbox.process.delete_session("shell")
    assert sandbox.process.list_sessions() == []


def test_a_session_is_made_of_lines_and_not_for_bytes(daytona_sdk: ModuleType, sandbox: Any) -> None:
    request = daytona_sdk.SessionExecuteRequest
    sandbox.process.create_session("lines")
    command = request(command="read line; printf '%s\\0\\377.' \"$line\"", run_async=True, suppress_input_echo=True)
    started = sandbox.process.execute_session_command("lines", command)
    said: list[str] = []

    def follow(_: int) -> None:
        followed = sandbox.process.get_session_command_logs_async("lines", started.cmd_id, said.append, said.append)
        asyncio.run(followed)

    sandbox.process.send_session_command_input("lines", started.cmd_id, "in")
    in_threads(1, follow)
    assert "".join(said) == "in\ufffd.\n", "a NUL is lost, another byte replaced, a line's end added"
    assert sandbox.process.get_session_command("lines", started.cmd_id).exit_code == 0
    with pytest.raises(daytona_sdk.DaytonaError, match="already completed"):
        sandbox.process.send_session_command_input("lines", started.cmd_id, "late")


def test_files_are_uploaded_and_downloaded(daytona_sdk: ModuleType, sandbox: Any) -> None:
    path = "/tmp/new folder/ü\n"
    sandbox.fs.upload_file(EVERY_BYTE, path)
    assert sandbox.fs.download_file(path) == EVERY_BYTE
    assert sandbox.fs.get_file_info(path).size == len(EVERY_BYTE)
    assert [entry.name for entry in sandbox.fs.list_files("/tmp/new folder")] == ["ü\n"]
    sandbox.fs.delete_file(path)
    with pytest.raises(daytona_sdk.DaytonaNotFoundError):
        sandbox.fs.download_file(path)


def test_sandboxes_are_found_by_their_labels_and_deleted(
    daytona_sdk: ModuleType, client: Any, daytona_service: Cloud
) -> None:
    owner = uuid.uuid4().hex
    for number in range(2):
        labels = {"owner": owner, "number": str(number)}
        client.create(daytona_sdk.CreateSandboxFromSnapshotParams(labels=labels))
    found = list(client.list(daytona_sdk.ListSandboxesQuery(labels={"owner": owner})))
    assert sorted(one.labels["number"] for one in found) == ["0", "1"]
    assert not list(client.list(daytona_sdk.ListSandboxesQuery(labels={"owner": "somebody else"})))
    for one in found:
        one.delete()
    assert not {one.id for one in found} & set(daytona_service.sandboxes())


def test_a_sandbox_is_stopped_and_started(sandbox: Any) -> None:
    sandbox.process.exec("echo kept >/root/file")
    sandbox.stop()
    assert sandbox.state == "stopped"
    sandbox.start()
    assert sandbox.process.exec("cat /root/file").result == "kept\n"


def test_a_sandbox_that_is_gone_is_not_found(daytona_sdk: ModuleType, client: Any, daytona_service: Cloud) -> None:
    sandbox = client.create()
    daytona_service.docker.run("rm", "--force", sandbox.id)
    with pytest.raises(daytona_sdk.DaytonaNotFoundError):
        sandbox.process.exec("true")
    with pytest.raises(daytona_sdk.DaytonaNotFoundError):
        client.get(sandbox.id)
