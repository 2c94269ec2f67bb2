"""`session_search` as a model uses it: search, read around a hit, browse."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from handrail.agent.agent import Agent
from handrail.model_tools import default
from handrail.store.sessions import SessionStore
from handrail.testing import FakeAgent, ScriptedModel

Look = Callable[..., dict[str, Any]]


@pytest.fixture
def look(tmp_path: Path) -> Iterator[Look]:
    """The tool's answers to an agent that was told of herons in one session and of storks in another."""
    store = SessionStore(tmp_path / "sessions.db")
    for bird in ("heron", "stork"):
        info = store.create(platform="cli", model="m", cwd="/w", title=f"about a {bird}")
        store.append(info.id, [{"role": "user", "content": f"{bird} {number}"} for number in range(10)])
    agent = Agent(default(), [ScriptedModel([])], store=store)

    def look(**arguments: Any) -> dict[str, Any]:
        return _asked(arguments, agent)

    yield look
    agent.close()
    store.close()


def test_a_hit_can_be_read_with_its_neighbours(look: Look) -> None:
    (hit,) = look(query='"heron 4"')["hits"]
    assert hit["title"] == "about a heron"
    assert hit["at"].startswith("20")
    around = look(around=hit["message_id"], span=1)["messages"]
    assert [each["content"] for each in around] == ["heron 3", "heron 4", "heron 5"]


def test_sessions_are_browsed_a_page_at_a_time(look: Look) -> None:
    first = look(limit=2)
    assert [each["title"] for each in first["sessions"]] == ["", "about a stork"]
    second = look(limit=2, offset=first["next_offset"])
    assert [each["title"] for each in second["sessions"]] == ["about a heron"]
    assert "next_offset" not in second
    heron = second["sessions"][0]["session"]
    page = look(session=heron, limit=6)
    assert [each["content"] for each in page["messages"]] == [f"heron {number}" for number in range(6)]
    page = look(session=heron, limit=6, offset=page["next_offset"])
    assert [each["content"] for each in page["messages"]] == [f"heron {number}" for number in range(6, 10)]


def test_a_session_that_does_not_exist_is_said(look: Look) -> None:
    assert "no session 'nowhere'" in look(session="nowhere")["error"]


def test_the_stand_in_answers_alike() -> None:
    agent = FakeAgent(said=["a heron", "a stork"])
    assert len(_asked({"session": "fake"}, agent)["messages"]) == 2
    assert len(_asked({}, agent)["sessions"]) == 1


def test_without_an_agent_the_error_says_so() -> None:
    assert "agent" in _asked({"query": "x"}, None)["error"]


def _asked(arguments: dict[str, Any], agent: Agent | FakeAgent | None) -> dict[str, Any]:
    return dict(json.loads(str(default().runtime.handle("session_search", arguments, agent=agent))))
