"""The public stand-ins."""

from __future__ import annotations

import json

import pytest

from handrail.core.registry import ToolRegistry
from handrail.errors import ResultNotFound
from handrail.plugins.hook_manager import HookManager
from handrail.plugins.hook_specs import Ask
from handrail.protocols import ApprovalRequest, Approver, Decision, Model, Person, ResultStore, TodoItem
from handrail.runtime.dispatch import Runtime
from handrail.testing import (
    FakeAgent,
    MemoryResultStore,
    ModelReply,
    RecordingApprover,
    ScriptedModel,
    ScriptedPerson,
    call,
)
from handrail.types import AgentState

from ..support import add


def test_each_stand_in_fills_its_role() -> None:
    """mypy checks the assignments; running them shows that nothing else is needed to make one."""
    model: Model = ScriptedModel([])
    approver: Approver = RecordingApprover()
    person: Person = ScriptedPerson()
    store: ResultStore = MemoryResultStore()
    agent: AgentState = FakeAgent()
    assert all((model, approver, person, store, agent))


def test_a_scripted_model_answers_in_order_and_records_what_it_was_sent() -> None:
    model = ScriptedModel([ModelReply("one"), lambda messages, tools: ModelReply(f"{len(messages)} {len(tools)}")])
    messages = [{"role": "user", "content": "hi"}]
    assert model.reply(messages, []).content == "one"
    assert model.remaining == 1
    messages.append({"role": "assistant", "content": "one"})
    assert model.reply(messages, [{"name": "a"}]).content == "2 1"
    assert [len(sent.messages) for sent in model.sent] == [1, 2]
    assert model.sent[1].tools == [{"name": "a"}]


def test_what_a_model_was_sent_is_kept_as_it_was_then() -> None:
    model = ScriptedModel([ModelReply("one")])
    messages = [{"role": "user", "content": "hi"}]
    model.reply(messages, [])
    messages[0]["content"] = "changed"
    assert model.sent[0].messages == [{"role": "user", "content": "hi"}]


def test_a_script_that_is_over_says_so() -> None:
    model = ScriptedModel([ModelReply("one")])
    model.reply([], [])
    with pytest.raises(AssertionError, match=r"it has 1 replies and was asked for reply 2; the last message was .*bye"):
        model.reply([{"role": "user", "content": "bye"}], [])


def test_a_call_is_what_openai_sends() -> None:
    made = call("read_result", "c1", id="r_1", name="grün")
    assert made["id"] == "c1"
    assert made["type"] == "function"
    assert made["function"]["name"] == "read_result"
    assert json.loads(made["function"]["arguments"]) == {"id": "r_1", "name": "grün"}
    assert call("a")["id"] != call("a")["id"]


def test_an_approver_decides_in_turn_and_denies_when_its_decisions_are_used_up() -> None:
    approver = RecordingApprover([Decision.ONCE])
    request = ApprovalRequest("tool", {}, "why")
    assert [approver.decide(request), approver.decide(request)] == [Decision.ONCE, Decision.DENY]
    assert approver.requests == [request, request]


def test_a_runtime_asks_the_approver(registry: ToolRegistry, hook_manager: HookManager) -> None:
    add(registry, "danger")
    hook_manager.register_hook("pre_tool_call", lambda tool_name: Ask("really?"))
    approver = RecordingApprover([Decision.ONCE])
    runtime = Runtime(registry, hooks=hook_manager, approver=approver)
    assert "got" in runtime.handle("danger", {})
    assert json.loads(runtime.handle("danger", {}))["error_type"] == "denied"
    assert [request.reason for request in approver.requests] == ["really?", "really?"]


def test_a_person_answers_in_turn_and_then_is_not_there() -> None:
    person = ScriptedPerson(["blue"])
    assert person.ask("Which?", ["red", "blue"]) == "blue"
    assert person.ask("And now?", []) is None
    assert person.asked == [("Which?", ("red", "blue")), ("And now?", ())]


def test_a_memory_store_keeps_long_results(registry: ToolRegistry) -> None:
    store = MemoryResultStore()
    add(registry, "long", lambda args, **_: "x\n" * 1000, max_result_size_chars=1000)
    result = json.loads(Runtime(registry, results=store).handle("long", {}))
    assert store.get(result["id"]) == "x\n" * 1000
    with pytest.raises(ResultNotFound, match="known: r_"):
        store.get("r_unknown")


def test_a_fake_agent_has_a_todo_list_of_its_own() -> None:
    one, other = FakeAgent(), FakeAgent()
    one.todos.replace([TodoItem("1", "write", "pending")])
    assert [item.content for item in one.todos.items()] == ["write"]
    assert other.todos.items() == []
