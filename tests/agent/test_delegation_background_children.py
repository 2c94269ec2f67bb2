"""Children that work in the background: listed, told something more, stopped, and reported when they end."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from handrail import Config, Handrail
from handrail.agent import Agent, SessionStore
from handrail.errors import InvalidArguments, ToolFailed
from handrail.protocols import ModelReply
from handrail.testing import call

from ..support import PATIENCE_SECONDS, wait_until


class Model:
    """A parent that delegates what it is told, and children that wait, look once more at their messages, and answer."""

    name = "scripted"

    def __init__(self) -> None:
        self.go = threading.Event()
        self.parent_saw: list[str] = []

    def reply(self, messages: Any, tools: Any) -> ModelReply:
        task = next(message["content"] for message in messages if message["role"] == "user")
        if task == "sleep":
            return ModelReply("", [call("terminal", command="touch begun; sleep 1000")])
        if task.startswith("count"):
            if messages[-1]["content"] == task:
                assert self.go.wait(PATIENCE_SECONDS)
                return ModelReply("", [call("todo", todos=[])])
            return ModelReply(f"three; {messages[-1]['content']}")
        self.parent_saw.append(str(messages[-1]["content"]))
        last = messages[-1]
        if last["role"] == "user" and last["content"].startswith("{"):
            return ModelReply("", [call("delegate_task", **json.loads(last["content"]))])
        return ModelReply("ok")


@pytest.fixture
def model() -> Model:
    return Model()


@pytest.fixture
def agent(tmp_path: Path, model: Model) -> Iterator[Agent]:
    store = SessionStore()
    with Handrail(Config(), home=tmp_path / "home") as app, Agent(app, [model], store=store, cwd=str(tmp_path)) as made:
        yield made
        model.go.set()
    store.close()


def delegate(agent: Agent, **arguments: Any) -> Any:
    """One turn in which the agent makes this call; what the tool answered."""
    agent.run(json.dumps(arguments))
    results = [message for message in agent.loop.conversation.messages if message["role"] == "tool"]
    return json.loads(results[-1]["content"])


def test_a_child_in_the_background_is_listed_steered_and_reported(agent: Agent, model: Model) -> None:
    started = delegate(agent, goal="count", background=True)["children"][0]
    assert (started["child"], started["status"]) == ("child-1", "running")
    assert delegate(agent, action="list")["children"][0]["goal"] == "count"
    wait_until(lambda: agent.manage_children("list")[0]["status"] == "running")
    told = delegate(agent, action="steer", child="child-1", message="only the red ones")
    assert told["children"][0]["child"] == "child-1"
    model.go.set()
    wait_until(lambda: agent.manage_children("list")[0]["status"] == "completed")
    assert "only the red ones" in agent.manage_children("list")[0]["summary"]
    agent.run("and now?")
    assert any("child-1 (count) has ended: completed. three" in str(each) for each in agent.loop.conversation.messages)
    agent.run("again?")
    assert sum("has ended" in str(each) for each in agent.loop.conversation.messages) == 1
    with pytest.raises(ToolFailed, match="is not running"):
        agent.manage_children("steer", child="child-1", message="more")


def test_a_message_that_comes_at_the_end_is_one_more_turn(agent: Agent, model: Model, tmp_path: Path) -> None:
    agent.manage_children("start", tasks=[{"goal": "count"}])
    inbox = agent._children._children["child-1"].inbox
    inbox += ["first", "second"]
    model.go.set()
    wait_until(lambda: agent.manage_children("list")[0]["status"] == "completed")
    assert inbox == []


def test_a_child_that_is_about_to_start_is_told_as_well(
    agent: Agent, model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    may_start, made, children = threading.Event(), agent.child, list[Agent]()

    def late(*args: Any, **named: Any) -> Any:
        assert may_start.wait(PATIENCE_SECONDS)
        children.append(made(*args, **named))
        return children[0]

    monkeypatch.setattr(agent, "child", late)
    agent.manage_children("start", tasks=[{"goal": "count"}])
    agent.manage_children("steer", child="child-1", message="only the red ones")
    may_start.set()
    model.go.set()
    wait_until(lambda: agent.manage_children("list")[0]["status"] == "completed")
    assert "only the red ones" in str(children[0].loop.conversation.messages)


def test_a_child_is_stopped_with_what_it_runs(agent: Agent, tmp_path: Path) -> None:
    agent.manage_children("start", tasks=[{"goal": "sleep"}])
    wait_until((tmp_path / "begun").exists)
    assert delegate(agent, action="stop", child="child-1")["children"][0]["status"] == "cancelled"
    with pytest.raises(InvalidArguments, match="no child"):
        agent.manage_children("stop", child="child-7")


def test_there_are_not_too_many_and_all_end_with_the_session(agent: Agent, tmp_path: Path) -> None:
    agent.manage_children("start", tasks=[{"goal": "sleep"}] * 3)
    with pytest.raises(ToolFailed, match="at most 3"):
        agent.manage_children("start", tasks=[{"goal": "sleep"}])
    wait_until((tmp_path / "begun").exists)
    agent.close()
    assert {each["status"] for each in agent.manage_children("list")} == {"cancelled"}
