"""The file tools ask before they read keys and passwords, wherever the home is."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from handrail.approval.action_review import Judge, SelfProtection, builtin_assess
from handrail.approval.policy import Policy
from handrail.core.builtin import registry
from handrail.files.local import LocalFiles
from handrail.tools.files import read_file, search_files  # noqa: F401  registers the tools
from handrail.tools.files.calls import read_file_actions as read_actions
from handrail.tools.files.searching.search_call import actions as search_actions
from handrail.types import ToolContext

JUDGE = Judge(builtin_assess, SelfProtection(()))


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in (".ssh/id_ed25519", ".aws/credentials", "notes.txt", "work/.env"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("STANDIN\n")
    (tmp_path / "work" / "link").symlink_to(tmp_path / ".ssh" / "id_ed25519")
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


def _context(folder: Path) -> ToolContext:
    return ToolContext(task_id="t", files=LocalFiles(cwd=str(folder)))


@pytest.mark.parametrize(
    "path", ["~/.ssh/id_ed25519", "../.ssh/id_ed25519", "../.aws/credentials", "link", "/etc/shadow"]
)
def test_reading_keys_is_judged(home: Path, path: str) -> None:
    context = _context(home / "work")
    [action] = read_actions({"path": path}, context)
    [finding] = JUDGE.judge(action, "read_file", Policy()).findings
    assert finding.rule == "cred.read"
    answer = registry.dispatch("read_file", {"path": path}, context=context)
    assert "STANDIN" not in str(answer)
    assert json.loads(str(answer))["error_type"] == "denied"


@pytest.mark.parametrize("path", ["../notes.txt", ".env", "/etc/hosts"])
def test_reading_other_files_is_not(home: Path, path: str) -> None:
    assert read_actions({"path": path}, _context(home / "work")) == []


@pytest.mark.parametrize("path", ["~", "~/.ssh", "/", "../.aws"])
def test_searching_a_home_or_its_keys_is_judged(home: Path, path: str) -> None:
    [action] = search_actions({"pattern": "AKIA", "path": path}, _context(home / "work"))
    [finding] = JUDGE.judge(action, "search_files", Policy()).findings
    assert finding.rule in ("cred.read", "cred.search")


def test_searching_the_work_folder_or_for_names_is_not(home: Path) -> None:
    assert search_actions({"pattern": "x", "path": "."}, _context(home / "work")) == []
    assert search_actions({"pattern": "*.py", "path": "~", "target": "files"}, _context(home / "work")) == []
