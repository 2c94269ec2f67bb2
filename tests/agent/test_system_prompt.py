"""What a model is told before anything else: the project's word to agents, memory, where it is; the same all session."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from handrail import Handrail
from handrail.agent.agent import Agent
from handrail.agent.memory import Memory, Store
from handrail.agent.system_prompt import MAX_CONTEXT_CHARS, Part, Where, assemble, project_files, standard_parts
from handrail.model_tools import default
from handrail.protocols import ModelReply
from handrail.settings.schema import Config
from handrail.settings.services import McpServerConfig
from handrail.store.sessions import SessionStore
from handrail.testing import ScriptedModel


def texts(folder: Path) -> list[str]:
    return [text for _, text in project_files(folder)]


def test_parts_stand_under_their_titles_and_empty_ones_are_left_out() -> None:
    assert (
        assemble([Part("", "You are."), Part("Empty", " \n"), Part("Where", "Here.")]) == "You are.\n\n# Where\nHere."
    )


def test_a_project_speaks_from_its_root_down_to_where_we_are(tmp_path: Path) -> None:
    deep = tmp_path / "project" / "src" / "deep"
    deep.mkdir(parents=True)
    (tmp_path / "project" / ".git").mkdir()
    (tmp_path / "AGENTS.md").write_text("outside of the project")
    (tmp_path / "project" / "AGENTS.md").write_text("the root's word")
    (tmp_path / "project" / "CLAUDE.md").write_text("said to another, and the first counts")
    (deep / "CLAUDE.md").write_text("the folder's word")
    assert texts(deep) == ["the root's word", "the folder's word"]


def test_without_a_project_only_the_folder_itself_speaks(tmp_path: Path) -> None:
    (tmp_path / "AGENTS.md").write_text("above")
    (tmp_path / "here").mkdir()
    assert texts(tmp_path / "here") == []
    assert texts(tmp_path) == ["above"]


def test_the_home_folder_is_no_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "AGENTS.md").write_text("mine")
    assert texts(tmp_path) == []


def test_a_long_file_is_cut_and_what_cannot_be_seen_is_taken_out(tmp_path: Path) -> None:
    (tmp_path / "AGENTS.md").write_text("a\u200bb\x1b[31m\u202e" + "c" * MAX_CONTEXT_CHARS)
    (text,) = texts(tmp_path)
    assert text.startswith("ab[31mccc")
    assert text.endswith("[... the rest was left out; read the file for it]")


def test_what_is_no_file_of_text_does_no_harm(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "AGENTS.md")  # nobody ever writes to it
    (tmp_path / "CLAUDE.md").mkdir()
    (tmp_path / ".cursorrules").write_bytes(b"\xff\xfe rules")
    assert texts(tmp_path) == ["\ufffd\ufffd rules"]


def test_an_environment_elsewhere_is_said_to_be_one(tmp_path: Path) -> None:
    parts = {part.title: part.text for part in standard_parts(Where(tmp_path, "docker", "/workspace"))}
    assert "separate environment (docker, working directory /workspace)" in parts["Where you are"]
    assert str(tmp_path) not in parts["Where you are"]


def test_the_prompt_stays_the_same_while_memory_changes(tmp_path: Path) -> None:
    memory = Memory(tmp_path / "memory")
    memory.add(Store.USER, "likes tea")
    model = ScriptedModel([ModelReply("one"), ModelReply("two")])
    store = SessionStore()
    with Agent(default(), [model], store=store, toolsets=[], memory=memory, cwd=str(tmp_path)) as agent:
        agent.run("first")
        memory.add(Store.USER, "likes coffee now")
        agent.run("second")
    store.close()
    first, second = (sent.messages[0]["content"] for sent in model.sent)
    assert "likes tea" in first
    assert first == second


def test_what_mcp_servers_say_about_their_tools_is_quoted(tmp_path: Path) -> None:
    script = Path(__file__).parents[1] / "mcp_servers" / "older.py"
    server = McpServerConfig(command=sys.executable, args=(str(script), "Names are in Latin letters."))
    with Handrail(Config(mcp_servers={"older": server}), home=tmp_path) as app:
        app.await_toolsets(["older"])
        for toolsets, is_told in ((["older"], True), (["file"], False)):
            model = ScriptedModel([ModelReply("hello")])
            with Agent(app, [model], store=SessionStore(), toolsets=toolsets) as agent:
                agent.run("hi")
            system = model.sent[0].messages[0]["content"]
            assert ("older:\n> Names are in Latin letters." in system) == is_told
