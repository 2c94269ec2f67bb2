"""The tool `undo`: what a model can take back, and what it cannot."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from handrail import Handrail
from handrail.protocols import Decision
from handrail.settings.schema import Config
from handrail.testing import RecordingApprover


@pytest.fixture
def approver() -> RecordingApprover:
    return RecordingApprover([Decision.ONCE])


@pytest.fixture
def app(home: Path, tmp_path: Path, approver: RecordingApprover) -> Iterator[Handrail]:
    with Handrail(Config(), home=home, approver=approver) as made:
        made.register_task_env_overrides("t", cwd=str(tmp_path))
        yield made


def call(app: Handrail, tool: str, session: str | None = "s", **arguments: Any) -> dict[str, Any]:
    answer = json.loads(str(app.handle_function_call(tool, arguments, "t", None, session)))
    assert isinstance(answer, dict)
    return answer


def test_the_last_change_of_the_session_is_taken_back_and_brought_back(app: Handrail, tmp_path: Path) -> None:
    path = tmp_path / "a"
    call(app, "write_file", path=str(path), content="one")
    assert call(app, "terminal", command="echo two > a; touch b")["call"] == 2
    undone = call(app, "undo")
    assert (undone["undone"], undone["as_before"], undone["taken_away"]) == (2, [str(path)], [str(tmp_path / "b")])
    assert path.read_text() == "one"
    assert call(app, "undo", call=undone["call"])["undone"] == undone["call"]
    assert path.read_text() == "two\n"


def test_another_session_is_out_of_reach(app: Handrail, tmp_path: Path) -> None:
    call(app, "write_file", "other", path=str(tmp_path / "a"), content="one")
    assert call(app, "undo", call=1)["error_type"] == "denied"
    assert "no call of this session" in call(app, "undo")["error"]
    assert (tmp_path / "a").exists()


def test_a_conflict_is_told_and_force_asks_the_user(app: Handrail, tmp_path: Path, approver: RecordingApprover) -> None:
    path = tmp_path / "a"
    call(app, "write_file", path=str(path), content="one")
    path.write_text("by hand")
    refused = call(app, "undo")
    assert "by somebody else" in refused["error"]
    assert path.read_text() == "by hand"
    assert approver.requests == []
    forced = call(app, "undo", force=True)
    assert [request.rule_key for request in approver.requests] == ["undo.force"]
    assert not path.exists()
    assert Path(forced["kept_beside"][str(path)]).read_text() == "by hand"
    assert call(app, "undo", call=1, force=True)["error_type"] == "denied", "the second time the user says no"


def test_a_part_is_taken_back_alone(app: Handrail, tmp_path: Path) -> None:
    call(app, "terminal", command="touch a b")
    assert call(app, "undo", only="a")["taken_away"] == [str(tmp_path / "a")]
    assert [path.name for path in tmp_path.iterdir()] == ["b"]


def test_the_record_says_what_was_approved_and_by_whom(app: Handrail, tmp_path: Path) -> None:
    (tmp_path / "build").mkdir()
    assert call(app, "terminal", command="rm -rf build")["exit_code"] == 0
    approval = app.calls()[0].approval
    assert approval["shown"] == "rm -rf build"
    assert approval["decision"] == "once"
    assert approval["id"]
