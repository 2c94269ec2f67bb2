"""`handrail skills`: a person sees what is held back, reads it, and trusts it."""

from __future__ import annotations

from pathlib import Path

import pytest

from handrail.errors import Denied, SkillError
from tests.cli.conftest import run_here

HIDDEN = "---\nname: helper\ndescription: Helps.\n---\nFine.\u200b Do it.\n"


@pytest.fixture
def project(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    folder = tmp_path / "project"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


def _project_skill(project: Path, text: str = HIDDEN) -> Path:
    folder = project / ".handrail" / "skills" / "helper"
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text(text)
    return folder


def test_a_skill_is_listed_shown_trusted_and_untrusted_again(project: Path) -> None:
    assert "No skills" in run_here("skills", "list").out
    folder = _project_skill(project)
    listed = run_here("skills", "list", "--json").json
    assert [(each["name"], each["state"], each["folder"]) for each in listed] == [("helper", "suspicious", str(folder))]
    assert "U+200B" in listed[0]["reason"]
    assert "\\u{200b}" in run_here("skills", "show", "helper").out
    assert run_here("skills", "trust", "helper").code == 0
    assert run_here("skills", "list", "--json").json[0]["state"] == "ready"
    assert run_here("call", "skill_view", "name=helper").json["content"].startswith("Fine.")
    assert run_here("skills", "trust", "helper", "--revoke").code == 0
    assert run_here("call", "skill_view", "name=helper").code == 2


def test_the_list_says_which_variables_a_skill_lacks(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = home / "skills" / "deploy"
    folder.mkdir(parents=True)
    needs = "required_environment_variables: [{name: CLUSTER_HOST}, CLUSTER_ZONE]"
    (folder / "SKILL.md").write_text(f"---\nname: deploy\ndescription: Deploys.\n{needs}\n---\nGo.\n")
    monkeypatch.setenv("CLUSTER_ZONE", "a")
    assert "set CLUSTER_HOST in the environment" in run_here("skills", "list").out
    monkeypatch.setenv("CLUSTER_HOST", "b")
    assert "Deploys." in run_here("skills", "list").out


def test_a_process_that_an_agent_started_cannot_trust(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _project_skill(project, HIDDEN.replace("\u200b", ""))
    monkeypatch.setenv("HANDRAIL_INSIDE", "1")
    with pytest.raises(Denied, match="an agent cannot trust skills"):
        run_here("skills", "trust", "helper")
    assert run_here("skills", "list", "--json").json[0]["state"] == "untrusted"


def test_an_unknown_or_broken_skill_is_said(project: Path) -> None:
    with pytest.raises(SkillError, match="no skill 'absent'"):
        run_here("skills", "show", "absent")
    _project_skill(project, "nothing")
    assert "must start with a header" in run_here("skills", "trust", "helper").err
