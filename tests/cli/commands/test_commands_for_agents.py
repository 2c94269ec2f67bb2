"""`handrail model`, `sessions`, `record`, `replay` and `trace`, with a real server and a real store."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from handrail.agent.agent_factory import open_agent
from handrail.errors import HandrailError, ModelError, SessionNotFound
from handrail.model_tools import reset
from handrail.testing import ModelReply, ModelServer, ScriptedModel, call
from tests.cli.conftest import Cli, run_here


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr("handrail.agent.models.model_selection.DEFAULT_PORTS", {})
    with ModelServer(models=["large", "small"], key="right-key") as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        monkeypatch.setenv("OPENAI_API_KEY", "right-key")
        monkeypatch.setenv("HANDRAIL_MODEL", "small")
        yield server


@pytest.fixture
def session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """One that read a file, delegated, and was answered."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.txt").write_text("marmalade\n")
    model = ScriptedModel(
        [
            ModelReply("I look.", [call("read_file", path=str(tmp_path / "a.txt"))]),
            ModelReply("", [call("delegate_task", goal="count the words")]),
            ModelReply("one word"),
            ModelReply("It says marmalade."),
        ]
    )
    with open_agent(models=[model]) as agent:
        agent.run("what is in a.txt?")
    reset()
    return agent.session_id


# Models


def test_models_of_the_provider_are_listed_and_the_chosen_one_is_marked(server: ModelServer) -> None:
    ran = run_here("model", "list", "--json")
    assert ran.code == 0
    assert [(row["name"], row["chosen"]) for row in ran.json] == [("large", False), ("small", True)]
    assert "*  small" in run_here("model", "list").out


def test_a_wrong_key_is_said_at_once_with_what_to_do(server: ModelServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "a-wrong-key")
    ran = run_here("model", "list")
    assert ran.code == 1
    assert "set OPENAI_API_KEY" in ran.err
    assert "a-wrong-key" not in ran.err + ran.out
    with pytest.raises(ModelError, match="set OPENAI_API_KEY"):
        run_here("model", "test")


def test_no_network_is_said_at_once(monkeypatch: pytest.MonkeyPatch, server: ModelServer) -> None:
    with ModelServer() as gone:
        monkeypatch.setenv("OPENAI_BASE_URL", gone.base_url)
    with pytest.raises(ModelError, match="cannot be reached"):
        run_here("model", "test")


def test_no_model_says_how_to_get_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "keyring", None)
    monkeypatch.setattr("handrail.agent.models.model_selection.DEFAULT_PORTS", {})
    for name in ("OPENAI_BASE_URL", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    ran = run_here("model", "list")
    assert ran.code == 1
    assert "HANDRAIL_MODEL" in ran.err
    with pytest.raises(ModelError, match="HANDRAIL_MODEL"):
        run_here("model", "test")


def test_a_model_is_tried(server: ModelServer) -> None:
    server.say(ModelReply("hello"), ModelReply("", [call("echo", text="hello")]))
    ran = run_here("model", "test")
    assert ran.code == 0
    assert "✓ calls tools" in ran.out
    server.say(ModelReply("hello"), ModelReply("I would call echo."))
    assert run_here("model", "test", "large", "--json").json["calls_tools"] is False
    assert server.requests[-1]["model"] == "large"


# Sessions


def test_sessions_are_listed_shown_and_searched(session: str) -> None:
    (row,) = run_here("sessions", "list", "--json").json
    assert (row["id"], row["title"]) == (session, "what is in a.txt?")
    assert session in run_here("sessions", "list", "--here").out
    shown = run_here("sessions", "show").out
    assert shown.index("what is in a.txt?") < shown.index("→ read_file") < shown.index("It says marmalade.")
    found = run_here("sessions", "search", "marmalade", "says", "--json")
    assert {hit["session"] for hit in found.json} == {session}
    nothing = run_here("sessions", "search", "no such words")
    assert (nothing.code, nothing.out) == (1, "")
    assert "nothing was found" in nothing.err


def test_a_session_that_does_not_exist_is_said(session: str) -> None:
    for command in (["sessions", "show"], ["sessions", "delete"], ["trace"], ["record"], ["sessions", "branch"]):
        with pytest.raises(SessionNotFound, match="sessions list"):
            run_here(*command, "1999")


def test_an_empty_store_says_how_to_begin() -> None:
    assert run_here("sessions", "list", "--json").json == []
    with pytest.raises(HandrailError, match="handrail chat"):
        run_here("trace")


def test_a_session_is_exported_branched_and_deleted(session: str, tmp_path: Path) -> None:
    lines = [json.loads(line) for line in run_here("sessions", "export", session[:-2]).out.splitlines()]
    assert lines[0]["session"]["id"] == session
    out = tmp_path / "t.json"
    assert run_here("sessions", "export", "--format", "sharegpt", "-o", str(out)).code == 0
    assert json.loads(out.read_text())["conversations"][-1]["value"] == "It says marmalade."
    branch = run_here("sessions", "branch", session, "--after", str(lines[1]["id"])).out.strip()
    assert len(run_here("sessions", "show", branch, "--json").json["messages"]) == 1
    assert run_here("sessions", "branch", session, "--after", "99999").code == 2
    assert run_here("sessions", "delete", session, branch).code == 0
    assert run_here("sessions", "list", "--json").json == []


def test_a_timeline_shows_the_model_the_tools_and_the_children(session: str) -> None:
    shown = run_here("trace").out
    for part in ("◇ ScriptedModel", "▸ read_file", "▸ delegate_task", "⑂ count the words", "in all"):
        assert part in shown
    found = run_here("trace", session, "--json").json["moments"]
    assert [moment["kind"] for moment in found] == ["model", "tool", "model", "tool", "child", "model", "model"]
    assert [moment["depth"] for moment in found] == [0, 0, 0, 0, 0, 1, 0]


# Recordings


def test_a_recording_is_had_again_with_a_model(session: str, server: ModelServer, tmp_path: Path) -> None:
    tape = str(tmp_path / "tape.jsonl")
    assert run_here("record", session, "-o", tape).out.strip() == tape
    (tmp_path / "a.txt").write_text("jam\n")
    calls = [call("read_file", path=str(tmp_path / "a.txt"))], [call("delegate_task", goal="count the words")]
    server.say(ModelReply("", calls[0]), ModelReply("", calls[1]), ModelReply("as it was"))
    ran = run_here("replay", tape)
    assert (ran.code, ran.out.strip()) == (0, "2 calls recorded; nothing differs.")
    assert "marmalade" in server.requests[1]["messages"][-1]["content"]
    server.say(ModelReply("", [call("read_file", path="b.txt")]), ModelReply("no"))
    ran = run_here("replay", tape, "--json")
    assert ran.code == 1
    assert [each["kind"] for each in ran.json["differences"]] == ["new", "missing", "missing"]


def test_a_recording_is_had_again_with_the_tools(session: str, tmp_path: Path) -> None:
    tape = str(tmp_path / "tape.jsonl")
    run_here("record", "-o", tape)
    assert run_here("replay", tape, "--tools").code == 0
    (tmp_path / "a.txt").write_text("jam\n")
    ran = run_here("replay", tape, "--tools")
    assert ran.code == 1
    assert "gives something else now" in ran.out


def test_the_program_itself_says_what_is_wrong(cli: Cli) -> None:
    ran = cli("model", "test", OPENAI_BASE_URL="http://127.0.0.1:9/v1", HANDRAIL_MODEL="m", OPENAI_API_KEY="k")
    assert ran.code == 1
    assert "http://127.0.0.1:9/v1 cannot be reached" in ran.err
