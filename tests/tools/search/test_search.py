"""`tool_search`, `tool_describe` and `tool_call`, as a model uses them."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from handrail.core.builtin import builtin_tools
from handrail.core.builtin import registry as builtin
from handrail.core.registry import ToolRegistry
from handrail.errors import Denied
from handrail.protocols import Action, ActionKind
from handrail.runtime.batches import Batches
from handrail.runtime.dispatch import Runtime
from handrail.types import Resources

from ...support import add, call, echo, error_in, parameters


@pytest.fixture
def registry() -> ToolRegistry:
    builtin_tools()
    made = ToolRegistry()
    for name in ("tool_search", "tool_describe", "tool_call"):
        entry = builtin.get_entry(name)
        assert entry is not None
        made.register(
            name=name,
            toolset=entry.toolset,
            schema=entry.schema,
            handler=entry.handler,
            is_async=entry.is_async,
            read_only=entry.read_only,
            resources=entry.resources,
            max_result_size_chars=entry.max_result_size_chars,
        )
    invoice = parameters(["customer"], amount={"type": "number"}, customer={"type": "string", "description": "Whose."})
    add(made, "create_invoice", description="Draw up an invoice.", schema=invoice, toolset="mcp-money")
    add(made, "send_mail", description="Send a mail.", toolset="mcp-mail")
    return made


@pytest.fixture
def here(registry: ToolRegistry) -> Runtime:
    return Runtime(registry)


def _called(here: Runtime, name: str, /, **arguments: Any) -> Any:
    return json.loads(here.handle(name, arguments))  # type: ignore[arg-type]


def test_a_search_gives_names_with_their_arguments(here: Runtime) -> None:
    assert _called(here, "tool_search", query="bill for a client") == {
        "tools": [
            {
                "name": "create_invoice",
                "call": "create_invoice(customer, amount?)",
                "does": "Draw up an invoice.",
            }
        ]
    }


def test_a_search_that_finds_nothing_says_what_there_is(here: Runtime) -> None:
    answer = _called(here, "tool_search", query="zebra")
    assert answer["tools"] == []
    assert "There are 2 tools, of: mcp-mail, mcp-money" in answer["note"]


def test_a_description_has_the_whole_schema(here: Runtime) -> None:
    (described,) = _called(here, "tool_describe", names=["create_invoice"])["tools"]
    assert described["parameters"]["required"] == ["customer"]
    assert described["parameters"]["properties"]["customer"]["description"] == "Whose."


def test_a_call_reaches_the_tool_and_its_arguments_are_checked(here: Runtime) -> None:
    answer = _called(here, "tool_call", name="create_invoice", arguments={"customer": "A", "amount": "12"})
    assert answer == {"got": {"customer": "A", "amount": 12}}
    problem = error_in(here.handle("tool_call", {"name": "create_invoice", "arguments": {}}))
    assert problem["error_type"] == "invalid_arguments"
    assert "customer" in problem["error"]


@pytest.mark.parametrize("tool", ["tool_describe", "tool_call"])
def test_an_unknown_tool_is_answered_with_the_nearest(here: Runtime, tool: str) -> None:
    arguments = {"names": ["create_invoce"]} if tool == "tool_describe" else {"name": "create_invoce"}
    problem = error_in(here.handle(tool, arguments))
    assert problem["error_type"] == "unknown_tool"
    assert "create_invoice" in problem["error"]


def test_the_search_tools_are_not_called_by_themselves(here: Runtime) -> None:
    problem = error_in(here.handle("tool_call", {"name": "tool_call", "arguments": {"name": "send_mail"}}))
    assert problem["error_type"] == "invalid_arguments"


def test_a_tool_that_the_model_was_not_given_is_neither_found_nor_called(here: Runtime) -> None:
    given = frozenset({"tool_search", "tool_describe", "tool_call", "send_mail"})
    found = here.handle("tool_search", {"query": "invoice"}, enabled_tools=given)
    assert json.loads(str(found))["tools"] == []
    for name, arguments in (
        ("tool_call", {"name": "create_invoice", "arguments": {"customer": "A"}}),
        ("tool_describe", {"names": ["create_invoice"]}),
        ("create_invoice", {"customer": "A"}),
    ):
        assert error_in(here.handle(name, arguments, enabled_tools=given))["error_type"] == "unknown_tool"


class _Closed:
    def review(self, actions: Any, context: Any) -> None:
        raise Denied("not here")


def test_a_called_tool_passes_the_gate(registry: ToolRegistry) -> None:
    add(registry, "wipe", actions=lambda args, context: [Action(ActionKind.TOOL, "wipe")])
    here = Runtime(registry, gate=_Closed())
    assert error_in(here.handle("tool_call", {"name": "wipe"}))["error_type"] == "denied"


def test_a_long_result_is_cut_by_the_tools_own_budget(registry: ToolRegistry) -> None:
    add(registry, "chatty", lambda args, **_: "x" * 5000, max_result_size_chars=1000)
    assert len(str(Runtime(registry).handle("tool_call", {"name": "chatty"}))) <= 1000


def test_async_callers_and_async_tools_work(registry: ToolRegistry) -> None:
    async def later(args: dict[str, Any], **_: Any) -> dict[str, Any]:
        await asyncio.sleep(0)
        return {"later": True}

    add(registry, "later", later, is_async=True)
    outcome = asyncio.run(Runtime(registry).ahandle("tool_call", {"name": "later"}))
    assert json.loads(str(outcome)) == {"later": True}


def test_calls_of_tools_that_touch_different_things_run_together(registry: ToolRegistry) -> None:
    """As they would if they were called directly: two that wait for each other would else wait for ever."""
    arrived: list[asyncio.Event] = []

    async def meets(args: dict[str, Any], **_: Any) -> str:
        arrived.append(asyncio.Event())
        if len(arrived) == 2:
            for event in arrived:
                event.set()
        await asyncio.wait_for(arrived[0].wait(), 60)
        return echo(args)

    schema = parameters(["path"], path={"type": "string"})
    add(registry, "meet", meets, schema=schema, is_async=True, resources=lambda args: Resources(writes=(args["path"],)))
    batch = Batches(Runtime(registry))
    calls = [call("tool_call", path, name="meet", arguments={"path": path}) for path in ("/a", "/b")]
    messages = asyncio.run(batch.run(calls))
    assert [json.loads(message["content"])["got"]["path"] for message in messages] == ["/a", "/b"]
