"""What an agent is told of the skills, and that it has only the tools that it was given."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from handrail.agent.agent import Agent
from handrail.model_tools import default
from handrail.store.sessions import SessionStore
from handrail.testing import ModelReply, ScriptedModel, call

SKILL = "---\nname: git-release\ndescription: How this team releases.\n---\nTag it.\n"


@pytest.fixture
def skill(home: Path) -> Path:
    folder = home / "skills" / "git-release"
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text(SKILL)
    return folder


def _asked(*replies: ModelReply, cwd: Path, toolsets: list[str]) -> ScriptedModel:
    model, store = ScriptedModel(replies), SessionStore()
    agent = Agent(default(), [model], store=store, cwd=str(cwd), toolsets=toolsets)
    agent.run("Do it.")
    agent.close()
    store.close()
    return model


def test_an_agent_that_can_read_skills_knows_their_names_from_the_start(skill: Path, tmp_path: Path) -> None:
    looked = ModelReply("", [call("skill_view", name="git-release")])
    model = _asked(looked, ModelReply("Done."), cwd=tmp_path, toolsets=["skills"])
    system = model.sent[0].messages[0]["content"]
    assert "# Skills" in system
    assert "- git-release: How this team releases." in system
    assert "Tag it." not in system
    assert json.loads(model.sent[1].messages[-1]["content"])["content"] == "Tag it."


def test_an_agent_without_the_tool_is_told_nothing_of_skills(skill: Path, tmp_path: Path) -> None:
    model = _asked(ModelReply("Done."), cwd=tmp_path, toolsets=["file"])
    assert "git-release" not in model.sent[0].messages[0]["content"]


def test_a_call_of_a_tool_that_the_agent_was_not_given_is_refused_beside_one_that_it_was(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("seven")
    path = str(tmp_path / "made")
    calls = [call("terminal", "c1", command=f"touch {path}"), call("read_file", "c2", path=str(tmp_path / "a.txt"))]
    model = _asked(ModelReply("", calls), ModelReply("Done."), cwd=tmp_path, toolsets=["file"])
    first, second = model.sent[1].messages[-2:]
    assert (first["tool_call_id"], second["tool_call_id"]) == ("c1", "c2")
    assert json.loads(first["content"])["error_type"] == "unknown_tool"
    assert "seven" in second["content"]
    assert not Path(path).exists()
