"""An agent in one line."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from handrail.agent.agent_factory import LAST, open_agent, open_store
from handrail.agent.events import Budgets
from handrail.errors import ModelError, SessionNotFound
from handrail.model_tools import default, reset
from handrail.store.sessions import SessionStore
from handrail.testing import Fault, ModelReply, ModelServer, ScriptedModel
from tests.support import configure


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("handrail.agent.models.model_selection.DEFAULT_PORTS", {})


def test_the_environment_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    with ModelServer([ModelReply("hello")], key="k-123456") as server:
        monkeypatch.setenv("HANDRAIL_MODEL", "scripted")
        monkeypatch.setenv("OPENAI_API_KEY", "k-123456")
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        reset()
        with open_agent() as agent:
            assert agent.run("hi").answer == "hello"
            session = agent.session_id
    store = open_store()
    assert store.get(session).model == "scripted"
    store.close()
    raw = b"".join(path.read_bytes() for path in Path(os.environ["HANDRAIL_HOME"]).rglob("*") if path.is_file())
    assert b"k-123456" not in raw


def test_no_model_leaves_nothing_behind() -> None:
    with pytest.raises(ModelError, match="no model is configured"):
        open_agent()


def test_a_session_goes_on_by_its_id_or_as_the_last_of_this_folder(tmp_path: Path) -> None:
    with open_agent(models=[ScriptedModel([ModelReply("one")])]) as first:
        first.run("hello")
    again = ScriptedModel([ModelReply("two")])
    with open_agent(models=[again], resume=LAST) as agent:
        assert agent.session_id == first.session_id
        agent.run("and?")
    assert [each["content"] for each in again.sent[0].messages[1:]] == ["hello", "one", "and?"]
    with open_agent(models=[ScriptedModel([])], resume=first.session_id[:-2]) as agent:
        assert len(agent.loop.conversation) == 4
    with pytest.raises(SessionNotFound, match="there is no session in"):
        open_agent(models=[ScriptedModel([])], resume=LAST, cwd=str(tmp_path.parent))


def test_the_configured_tools_are_offered(home: Path) -> None:
    (home / "config.yaml").write_text("tools:\n  enabled_toolsets: [todo, file]\n  disabled_toolsets: [file]\n")
    reset()
    model = ScriptedModel([ModelReply("x")])
    with open_agent(models=[model]) as agent:
        agent.run("hi")
    assert [each["function"]["name"] for each in model.sent[0].tools] == ["todo"]


def test_a_store_that_was_given_stays_open_and_a_shell_ends_with_its_agent() -> None:
    store = SessionStore()
    with open_agent(models=[ScriptedModel([ModelReply("x")])], store=store) as agent:
        agent.run("hi")
        default().environments.of(agent.session_id)
    assert default().environments.peek(agent.session_id) is None
    assert len(store.messages(agent.session_id)) == 2
    store.close()


def test_another_model_takes_over(tmp_path: Path) -> None:
    other = ScriptedModel([ModelReply("two")])
    with open_agent(models=[ScriptedModel([ModelReply("one")])]) as agent:
        agent.run("hi")
        agent.use([other])
        assert agent.run("still there?").answer == "two"
    assert [each["content"] for each in other.sent[0].messages[1:]] == ["hi", "one", "still there?"]


def test_a_turn_may_take_what_is_configured(home: Path) -> None:
    model = ScriptedModel([ModelReply("one")] * 2)
    with open_agent(models=[model]) as agent:
        assert agent.loop.budgets == Budgets(model_calls=90)
    configure(home, "model: {max_model_calls: 3, max_turn_tokens: 500, max_turn_seconds: 60, max_turn_cost: 0.5}\n")
    reset()
    with open_agent(models=[model]) as agent:
        assert agent.loop.budgets == Budgets(model_calls=3, tokens=500, seconds=60, cost=0.5)


def test_the_helper_summarises_and_the_model_does_when_it_cannot(monkeypatch: pytest.MonkeyPatch, home: Path) -> None:
    (home / "config.yaml").write_text("model: {name: large, helper: cheap}\n")
    with ModelServer() as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        reset()
        with open_agent() as agent:
            for turn in range(3):
                server.say(ModelReply(f"answer {turn}"))
                agent.run(f"question {turn}")
            server.say(ModelReply("what was said"))
            assert asyncio.run(agent.compact())
            assert server.requests[-1]["model"] == "cheap"
            server.say(ModelReply("answer 3"))
            agent.run("question 3")
            server.say(Fault(404), ModelReply("said by the large one"))
            assert asyncio.run(agent.compact())
            assert server.requests[-1]["model"] == "large"
            said = [each["content"] for each in agent.loop.conversation.messages]
            asked = agent.store.model_calls(agent.session_id)
            whole = agent.store.get(agent.session_id)
    assert [each.model for each in asked] == ["large", "large", "large", "cheap", "large", "large"]
    assert whole.input_tokens == 60, "a summary costs, too"
    assert "said by the large one" in said[0]
    assert said[1:] == ["question 3", "answer 3"]
