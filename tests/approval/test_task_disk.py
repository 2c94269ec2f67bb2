"""What the gate looks up before a command runs: files here, files of an environment elsewhere, and what agents wrote."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from handrail import Handrail
from handrail.approval.gate import ApprovalGate
from handrail.approval.task_disk import HostDisk, ReadCache, RemoteDisk
from handrail.environments.handles import RemoteFiles
from handrail.environments.local_environment import LocalEnvironment
from handrail.judge import assess
from handrail.judge.values.disk import Sources
from handrail.protocols import Action, ActionKind, Decision
from handrail.settings.schema import Config
from handrail.settings.sections import TerminalConfig
from handrail.testing import RecordingApprover
from tests.support import error_in

from .gate_support import command, gate, review


def here(text: str, folder: Path) -> Action:
    return command(text, cwd=str(folder), details={"files": "host"})


def test_write_a_script_then_run_it_is_asked_about(tmp_path: Path) -> None:
    approver = RecordingApprover([Decision.DENY])
    with Handrail(Config(terminal=TerminalConfig(cwd=str(tmp_path))), approver=approver) as app:
        app.handle_function_call("write_file", {"path": str(tmp_path / "x.sh"), "content": "rm -rf ~/no-such-folder\n"})
        denied = error_in(app.handle_function_call("terminal", {"command": "sh x.sh"}))
        assert denied["error_type"] == "denied"
        assert "(in x.sh)" in approver.requests[0].reason
        app.handle_function_call(
            "write_file", {"path": str(tmp_path / "x.sh"), "content": "mkdir made && rm -rf made && echo fine\n"}
        )
        assert "fine" in app.handle_function_call("terminal", {"command": "sh x.sh"})


def test_a_script_that_writes_handrails_own_files_is_refused(tmp_path: Path) -> None:
    own = tmp_path / "private" / "state"
    (tmp_path / "x.sh").write_text(f"echo 'mode: off' > {own}/config.yaml\n")
    careful = ApprovalGate(private=[own])
    assert "own.files" in review(careful, here("sh x.sh", tmp_path), approver=RecordingApprover([Decision.ONCE]))


def test_without_files_nothing_is_looked_up(tmp_path: Path) -> None:
    (tmp_path / "x.sh").write_text("rm -rf ~/work\n")
    assert review(gate(), command("sh x.sh", cwd=str(tmp_path))) == "allowed"
    assert review(gate(), here("sh x.sh", tmp_path)) != "allowed"


def test_a_file_that_a_tool_wrote_is_new_also_when_git_has_it(tmp_path: Path) -> None:
    careful = gate()
    path = tmp_path / "x.sh"
    assert review(careful, Action(ActionKind.FILE_WRITE, str(path), cwd=str(tmp_path))) == "allowed"
    path.write_text('rm -rf "$(cat list)"\n')
    assert "fs.rm.recursive" in review(careful, here("sh x.sh", tmp_path))


def test_what_changed_is_read_again(tmp_path: Path) -> None:
    cache, path = ReadCache(), tmp_path / "x.sh"
    path.write_text("echo a\n")
    assert HostDisk(0, cache=cache).read(str(path), 100) == b"echo a\n"
    path.write_text("echo b\n")
    assert HostDisk(0, cache=cache).read(str(path), 100) == b"echo b\n"


class TestElsewhere:
    @pytest.fixture
    def files(self, tmp_path: Path) -> Iterator[RemoteFiles]:
        with LocalEnvironment(str(tmp_path)) as environment:
            yield RemoteFiles(environment._call, lambda: str(tmp_path))

    def test_scripts_of_another_machine_are_read_through_its_files(self, files: RemoteFiles, tmp_path: Path) -> None:
        (tmp_path / "x.sh").write_text("rm -rf ~/work\n")
        (tmp_path / "y.sh").write_text("rm -rf build\n")
        for name, dangerous in (("x.sh", True), ("y.sh", False), ("missing.sh", False)):
            found = assess(f"sh {name}", cwd=str(tmp_path), project=str(tmp_path), disk=RemoteDisk(files))
            assert found.dangerous is dangerous
        action = command("sh x.sh", cwd=str(tmp_path), details={"files": files})
        assert "fs.rm.recursive" in review(gate(), action)

    def test_after_a_second_nothing_more_is_asked_for(self, files: RemoteFiles, tmp_path: Path) -> None:
        (tmp_path / "x.sh").write_text("rm -rf ~/work\n")
        times = iter([0.0, 0.5, 2.0, 2.0, 2.0])
        disk = RemoteDisk(files, clock=lambda: next(times))
        assert disk.find(str(tmp_path / "x.sh")) is not None
        assert disk.read(str(tmp_path / "x.sh"), 100) is None

    def test_an_environment_that_was_not_started_is_not_asked(self, tmp_path: Path) -> None:
        environment = LocalEnvironment(str(tmp_path))
        assert not environment.is_connected
        with environment:
            assert environment.is_connected


@pytest.mark.parametrize("path", ["/dev/stdin", "/dev/fd/{}", "/proc/self/fd/{}", "/proc/thread-self/fd/{}"])
def test_the_judge_does_not_take_its_own_open_files_for_those_of_the_command(path: str, tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text("rm -rf /srv/data\n")
    with script.open() as file:
        place = path.format(file.fileno())
        assert not assess(f"sh {place}", cwd=str(tmp_path), disk=HostDisk(0.0)).segments[1:]
        assert Sources(HostDisk(0.0)).entry(place) is None
