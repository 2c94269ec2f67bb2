"""A command that deletes much that nothing else has waits for an answer, and is stopped and undone after a no."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from handrail import Config, Handrail
from handrail.approval import Answer, ApprovalRequest, Decision
from handrail.base.workers import run_async
from handrail.config.strength import _limit
from handrail.environments.shell_host.deletion_limit import read_index
from handrail.protocols import ActionKind
from handrail.settings.sections import ApprovalsConfig, EffectsConfig, PauseConfig, TerminalConfig
from handrail.testing import RecordingApprover

LIMIT = 20
Run = Callable[..., dict[str, object]]
GIT = ("git", "-c", "user.name=a", "-c", "user.email=b", "-c", "commit.gpgsign=false")


class Approver(RecordingApprover):
    """Says yes to commands, and `answer` to what a running command waits for."""

    def __init__(self, answer: Decision) -> None:
        super().__init__()
        self.answer = answer
        self.held: list[str] = []

    def decide(self, request: ApprovalRequest) -> Answer:
        is_held = request.kind is ActionKind.HELD
        if is_held:
            self.held.append(request.reason)
        return Answer(self.answer if is_held else Decision.ONCE, "test")


@pytest.fixture(scope="module", autouse=True)
def _shared_loop() -> None:
    """It stays until the process ends, and is not what a test has left open."""
    run_async(asyncio.sleep(0))


@pytest.fixture
def work(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


@pytest.fixture
def approver() -> Approver:
    return Approver(Decision.DENY)


@pytest.fixture
def run(work: Path, tmp_path: Path, approver: Approver) -> Iterator[Run]:
    config = Config(
        terminal=TerminalConfig(cwd=str(work)),
        effects=EffectsConfig(pause=PauseConfig(files=LIMIT, megabytes=1)),
        approvals=ApprovalsConfig(mode="manual"),
    )
    with Handrail(config, home=tmp_path / "home", approver=approver) as app:

        def call(command: str, **more: object) -> dict[str, object]:
            return dict(json.loads(app.handle_function_call("terminal", {"command": command, **more})))

        yield call


def fill(folder: Path, count: int = 2 * LIMIT) -> list[str]:
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(count):
        (folder / f"f{number}").write_text(f"{number}")
    return names(folder)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir()) if folder.exists() else []


def test_a_no_stops_the_command_and_puts_everything_back(run: Run, work: Path, approver: Approver) -> None:
    before = fill(work / "notes")
    result = run("echo new > new; rm -rf notes; touch after")
    assert len(approver.held) == 1
    assert "in no commit" in approver.held[0]
    assert str(work / "notes") in approver.held[0]
    assert result["error_type"] == "denied"
    assert "It was stopped" in str(result["error"])
    assert "as it was before" in str(result["error"])
    assert names(work / "notes") == before
    assert names(work) == ["notes"]


def test_a_yes_lets_the_command_go_on_and_its_time_stands_still(run: Run, work: Path, approver: Approver) -> None:
    approver.answer = Decision.ONCE
    fill(work / "notes")
    result = run("rm -rf notes; touch after")
    assert (result["exit_code"], len(approver.held), names(work)) == (0, 1, ["after"])


def test_a_folder_that_is_moved_away_whole_counts_as_its_files_do(run: Run, work: Path, approver: Approver) -> None:
    before = fill(work / "notes", 150)
    fill(work / "build", 150)
    assert run("rm -rf build")["exit_code"] == 0
    assert (approver.held, names(work)) == ([], ["notes"])
    assert run("rm -rf notes")["error_type"] == "denied"
    assert (len(approver.held), names(work / "notes")) == (1, before)


def test_nobody_to_ask_stops_it_too(work: Path, tmp_path: Path) -> None:
    before = fill(work / "notes")
    pause = EffectsConfig(pause=PauseConfig(files=LIMIT))
    config = Config(terminal=TerminalConfig(cwd=str(work)), effects=pause)
    with Handrail(config, home=tmp_path / "home") as app:
        result = json.loads(app.handle_function_call("terminal", {"command": "find notes -name 'f*' -delete"}))
    assert result["error_type"] == "denied"
    assert names(work / "notes") == before


def test_much_data_counts_as_many_files_do(run: Run, work: Path, approver: Approver) -> None:
    (work / "data").write_bytes(bytes(2 << 20))
    assert run("rm data")["error_type"] == "denied"
    assert ((work / "data").stat().st_size, len(approver.held)) == (2 << 20, 1)


@pytest.mark.parametrize("folder", ["node_modules/x", "build", "a/__pycache__", ".venv/lib", "target/debug"])
def test_what_a_tool_makes_again_does_not_count(run: Run, work: Path, approver: Approver, folder: str) -> None:
    fill(work / folder)
    assert run(f"rm -rf {folder.split('/')[0]}")["exit_code"] == 0
    assert approver.held == []


def test_what_the_call_has_made_itself_does_not_count(run: Run, approver: Approver) -> None:
    made = "mkdir new; for i in $(seq 60); do echo $i > new/$i; done; rm -rf new"
    assert run(made)["exit_code"] == 0
    assert approver.held == []


@pytest.mark.parametrize("version", [2, 3, 4])
def test_committed_files_do_not_count_but_changed_ones_do(
    run: Run, work: Path, approver: Approver, version: int
) -> None:
    fill(work / "src")
    for command in (
        ("init", "-q"),
        ("update-index", "--index-version", str(version)),
        ("add", "-A"),
        ("commit", "-qm", "1"),
    ):
        subprocess.run([*GIT, *command], cwd=work, check=True, capture_output=True)
    assert set(read_index(str(work))) == {f"src/{name}" for name in names(work / "src")}
    assert run("rm -rf src; git checkout -q src")["exit_code"] == 0
    assert approver.held == []
    for path in (work / "src").iterdir():
        path.write_text("not committed")
    assert run("rm -rf src")["error_type"] == "denied"
    assert len(names(work / "src")) == 2 * LIMIT


@pytest.mark.parametrize("name", [".env", ".ssh/id_ed25519", ".git/HEAD", ".aws/credentials"])
def test_a_sensitive_file_waits_at_once(run: Run, work: Path, approver: Approver, name: str) -> None:
    (work / name).parent.mkdir(exist_ok=True)
    (work / name).write_text("secret")
    result = run(f"find . -name {name.rpartition('/')[2]} -delete")
    assert (result["error_type"], len(approver.held)) == ("denied", 1)
    assert (work / name).read_text() == "secret"


def test_a_process_that_works_in_the_root_folder_is_in_no_project() -> None:
    module = "handrail.environments.shell_host.deletion_limit"
    code = f"import os; from {module} import _project_of; os.chdir('/'); print(_project_of(os.getpid()))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=30, check=True)
    assert found.stdout == "/\n"


@pytest.mark.parametrize(
    ("before", "wanted", "kept"),
    [(100, 50, 50), (100, 200, 100), (100, 0, 100), (0, 5, 5)],
)
def test_a_project_can_only_lower_the_limit(before: int, wanted: int, kept: int) -> None:
    assert _limit(before, wanted) == kept
