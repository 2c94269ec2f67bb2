"""`handrail skills`: a person sees what is held back, reads it, and trusts it."""

from __future__ import annotations

from pathlib import Path

from .conftest import Cli

HIDDEN = "---\nname: helper\ndescription: Helps.\n---\nFine.\u200b Do it.\n"


def _project_skill(cli: Cli, text: str = HIDDEN) -> Path:
    folder = cli.cwd / ".handrail" / "skills" / "helper"
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text(text)
    return folder


def test_a_skill_is_listed_shown_trusted_and_untrusted_again(cli: Cli) -> None:
    assert "No skills" in cli("skills", "list").out
    folder = _project_skill(cli)
    listed = cli("skills", "list", "--json").json
    assert [(each["name"], each["state"], each["folder"]) for each in listed] == [("helper", "suspicious", str(folder))]
    assert "U+200B" in listed[0]["reason"]
    assert "\\u{200b}" in cli("skills", "show", "helper").out
    assert cli("skills", "trust", "helper").code == 0
    assert cli("skills", "list", "--json").json[0]["state"] == "ready"
    assert cli("call", "skill_view", "name=helper").json["content"].startswith("Fine.")
    assert cli("skills", "trust", "helper", "--revoke").code == 0
    assert cli("call", "skill_view", "name=helper").code == 2


def test_a_process_that_an_agent_started_cannot_trust(cli: Cli) -> None:
    _project_skill(cli, HIDDEN.replace("\u200b", ""))
    assert cli("skills", "trust", "helper", HANDRAIL_INSIDE="1").code == 3
    assert cli("skills", "list", "--json").json[0]["state"] == "untrusted"


def test_an_unknown_or_broken_skill_is_said(cli: Cli) -> None:
    ran = cli("skills", "show", "absent")
    assert (ran.code, "no skill 'absent'" in ran.err) == (1, True)
    _project_skill(cli, "nothing")
    assert "must begin with a header" in cli("skills", "trust", "helper").err
