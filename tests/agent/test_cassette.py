"""A session recorded, and had again."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from handrail.agent.agent import Agent
from handrail.agent.cassette import Cassette, Player, run_again
from handrail.errors import StoreError
from handrail.model_tools import default
from handrail.store.sessions import SessionStore
from handrail.testing import ModelReply, ScriptedModel, call


@pytest.fixture
def store() -> Any:
    store = SessionStore()
    yield store
    store.close()


@pytest.fixture
def recorded(store: SessionStore, tmp_path: Path) -> Cassette:
    (tmp_path / "a.txt").write_text("then\n")
    path = str(tmp_path / "a.txt")
    model = ScriptedModel(
        [ModelReply("", [call("read_file", path=path), call("todo", todos=[])]), ModelReply("ok"), ModelReply("bye")]
    )
    agent = Agent(default(), [model], store=store, cwd=str(tmp_path))
    agent.run("read it")
    agent.run("thanks")
    cassette = Cassette.of_session(store, agent.session_id)
    cassette.save(tmp_path / "x.jsonl")
    assert (tmp_path / "x.jsonl").stat().st_mode & 0o777 == 0o600
    assert Cassette.load(tmp_path / "x.jsonl") == cassette
    return cassette


def have_again(cassette: Cassette, store: SessionStore, *replies: Any) -> tuple[ScriptedModel, Player]:
    model, player = ScriptedModel(replies), Player(cassette)
    agent = Agent(default(), [model], store=store, play=player.run)
    for said in cassette.said:
        agent.run(said)
    return model, player


def test_the_same_run_has_no_differences_and_runs_no_tool(
    recorded: Cassette, store: SessionStore, tmp_path: Path
) -> None:
    (tmp_path / "a.txt").write_text("now\n")
    calls = [call("read_file", path=str(tmp_path / "a.txt")), call("todo", todos=[])]
    model, player = have_again(recorded, store, ModelReply("", calls), ModelReply("ok"), ModelReply("bye"))
    assert player.differences() == []
    assert "then" in model.sent[1].messages[-2]["content"]


def test_other_and_missing_calls_are_differences(recorded: Cassette, store: SessionStore) -> None:
    model, player = have_again(
        recorded, store, ModelReply("", [call("read_file", path="other")]), ModelReply("ok"), ModelReply("bye")
    )
    assert [(each.kind, each.tool) for each in player.differences()] == [
        ("new", "read_file"),
        ("missing", "read_file"),
        ("missing", "todo"),
    ]
    assert "not called with these arguments" in model.sent[1].messages[-1]["content"]


def test_the_recorded_calls_with_todays_tools_show_other_results(recorded: Cassette, tmp_path: Path) -> None:
    assert asyncio.run(run_again(recorded, default(), task_id="t")) == []
    (tmp_path / "a.txt").write_text("now\n")
    (difference,) = asyncio.run(run_again(recorded, default(), task_id="t"))
    assert (difference.kind, difference.tool) == ("result", "read_file")
    assert "then" in difference.recorded
    assert "now" in difference.now


@pytest.mark.parametrize("text", ["", "no json", "[]", '{"handrail_cassette": 1}', '{"handrail_cassette": 99}'])
def test_a_file_that_is_no_recording_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "x"
    path.write_text(text)
    with pytest.raises(StoreError, match="record"):
        Cassette.load(path)
    with pytest.raises(StoreError, match="cannot be read"):
        Cassette.load(tmp_path / "nothing")
