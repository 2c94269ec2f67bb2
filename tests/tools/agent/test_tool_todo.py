"""`todo` keeps the agent's list."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

import pytest

from handrail.agent.memory import Todos
from handrail.core.registry import ToolRegistry
from handrail.runtime.dispatch import Runtime
from tests.support import error_in


@dataclass
class Agent:
    todos: Todos = field(default_factory=Todos)


@pytest.fixture
def agent() -> Agent:
    return Agent()


@pytest.fixture
def runtime(default_registry: ToolRegistry) -> Runtime:
    return Runtime(default_registry)


def todo(runtime: Runtime, agent: Agent, **arguments: Any) -> dict[str, Any]:
    answer = json.loads(runtime.handle("todo", arguments, agent=agent))
    assert isinstance(answer, dict)
    return answer


def test_a_list_is_written_read_and_replaced(runtime: Runtime, agent: Agent) -> None:
    written = todo(
        runtime, agent, todos=[{"id": "1", "content": "plan"}, {"id": "2", "content": "build", "status": "in_progress"}]
    )
    assert [item["status"] for item in written["todos"]] == ["pending", "in_progress"]
    assert written["counts"] == {"pending": 1, "in_progress": 1, "completed": 0, "cancelled": 0}
    assert todo(runtime, agent) == written
    assert [item["id"] for item in todo(runtime, agent, todos=[{"id": "9", "content": "rest"}])["todos"]] == ["9"]
    assert todo(runtime, agent, todos=[])["todos"] == []


def test_merging_changes_the_known_and_adds_the_new(runtime: Runtime, agent: Agent) -> None:
    todo(runtime, agent, todos=[{"id": "1", "content": "plan"}, {"id": "2", "content": "build"}])
    merged = todo(
        runtime, agent, merge=True, todos=[{"id": "1", "status": "completed"}, {"id": "3", "content": "ship"}]
    )
    assert [(item["id"], item["content"], item["status"]) for item in merged["todos"]] == [
        ("1", "plan", "completed"),
        ("2", "build", "pending"),
        ("3", "ship", "pending"),
    ]


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        ({"todos": [{"id": "1", "content": "a", "status": "later"}]}, "status"),
        ({"todos": [{"content": "a"}]}, "id"),
        ({"todos": [{"id": "1", "content": " "}]}, "content"),
        ({"todos": [{"id": "1"}]}, "content"),
        ({"todos": [{"id": "7", "content": "a"}, {"id": "7", "content": "b"}]}, "7"),
        ({"todos": [{"id": "7"}], "merge": True}, "content"),
        ({"todos": [{"id": "1", "content": "a", "due": "now"}]}, "due"),
        ({"todos": "later"}, "todos"),
        ({"todos": [{"id": str(number), "content": "a"} for number in range(300)]}, "todos"),
    ],
)
def test_what_is_wrong_is_named_and_the_list_stays_as_it_was(
    runtime: Runtime, agent: Agent, arguments: dict[str, Any], word: str
) -> None:
    before = todo(runtime, agent, todos=[{"id": "0", "content": "keep"}])
    error = error_in(runtime.handle("todo", arguments, agent=agent))
    assert error["error_type"] == "invalid_arguments"
    assert word in error["error"]
    assert todo(runtime, agent) == before


def test_two_agents_have_two_lists(runtime: Runtime) -> None:
    first, second = Agent(), Agent()
    todo(runtime, first, todos=[{"id": "1", "content": "mine"}])
    assert todo(runtime, second)["todos"] == []


def test_without_an_agent_the_error_says_so(runtime: Runtime) -> None:
    error = error_in(runtime.handle("todo", {"todos": []}))
    assert error["error_type"] == "needs_agent"
    assert "agent" in error["error"]


def test_the_list_of_a_summarised_conversation_can_be_told_again(runtime: Runtime, agent: Agent) -> None:
    todo(
        runtime,
        agent,
        todos=[
            {"id": "1", "content": "plan", "status": "completed"},
            {"id": "2", "content": "build", "status": "in_progress"},
            {"id": "3", "content": "ship"},
            {"id": "4", "content": "party", "status": "cancelled"},
        ],
    )
    text = agent.todos.as_text()
    assert "build" in text
    assert "ship" in text
    assert "plan" not in text
    assert "party" not in text
