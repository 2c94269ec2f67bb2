"""Calls are reported to the consoles of a state folder, and only while one runs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from handrail import Config, Handrail
from handrail.runtime import call_reports


@pytest.fixture
def reports(tmp_path: Path) -> Path:
    path = tmp_path / "home/state" / call_reports.FOLDER / call_reports.FILE
    path.parent.mkdir(parents=True)
    return path


def _call(home: Path) -> None:
    (home / "some.txt").write_text("text\n")
    with Handrail(Config(), home=home) as app:
        app.handle_function_call("read_file", {"path": str(home / "some.txt")}, "t", session_id="s", tool_call_id="c")


def test_a_call_is_reported_when_it_starts_and_when_it_has_ended(reports: Path, tmp_path: Path) -> None:
    reports.touch()
    _call(tmp_path / "home")
    started, ended = map(json.loads, reports.read_text().splitlines())
    assert (started["tool"], started["session"], started["tool_call_id"]) == ("read_file", "s", "c")
    assert "status" not in started
    assert (ended["call"], ended["pid"], ended["status"]) == (started["call"], started["pid"], "ok")
    assert "text" in ended["result"]


def test_nothing_is_written_while_nobody_watches(reports: Path, tmp_path: Path) -> None:
    _call(tmp_path / "home")
    assert not reports.exists()


def test_a_file_that_a_killed_server_left_does_not_grow_for_ever(
    reports: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(call_reports, "_MAX_FILE_BYTES", 100)
    reports.write_text("x" * 100)
    _call(tmp_path / "home")
    assert reports.stat().st_size == 100


def test_a_process_reports_from_the_first_console_on_that_ever_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(call_reports, "_POLL_SECONDS", 0)
    home = tmp_path / "home"
    home.mkdir()
    (home / "some.txt").write_text("text\n")
    with Handrail(Config(), home=home) as app:
        assert "text" in str(app.handle_function_call("read_file", {"path": str(home / "some.txt")}))
        reports = home / "state" / call_reports.FOLDER / call_reports.FILE
        reports.parent.mkdir(parents=True)
        reports.touch()
        for _ in range(2):
            app.handle_function_call("read_file", {"path": str(home / "some.txt")})
    assert len(reports.read_text().splitlines()) == 4
