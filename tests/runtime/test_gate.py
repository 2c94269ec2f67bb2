"""What a tool says it is about to do passes a gate first."""

from __future__ import annotations

from typing import Any

import pytest

from handrail.errors import Denied
from handrail.protocols import Action, ActionKind
from handrail.runtime.dispatch import Runtime
from handrail.testing import OpenGate
from handrail.tools.registry import ToolRegistry
from tests.support import error_in


def shouting(ran: list[str]) -> ToolRegistry:
    registry = ToolRegistry()
    registry.register(
        name="shout",
        toolset="t",
        schema={"description": "Shout.", "parameters": {"type": "object", "properties": {"text": {"type": "string"}}}},
        handler=lambda args, **_: ran.append(args["text"]) or "done",
        actions=lambda args, context: [Action(ActionKind.COMMAND, args["text"])] if args["text"] != "hush" else [],
    )
    return registry


class Refuses:
    def review(self, actions: Any, context: Any) -> None:
        raise Denied(f"not {actions[0].text}")


class RefusesLater:
    async def review(self, actions: Any, context: Any) -> None:
        raise Denied(f"not {actions[0].text}, on second thought")


def test_the_gate_sees_what_the_call_is_about_to_do() -> None:
    ran: list[str] = []
    gate = OpenGate()
    assert Runtime(shouting(ran), gate=gate).handle("shout", {"text": "hey"}) == "done"
    assert [action.text for action in gate.actions] == ["hey"]
    assert ran == ["hey"]


@pytest.mark.parametrize("gate", [Refuses(), RefusesLater(), None], ids=["at once", "later", "no gate"])
def test_nothing_runs_that_the_gate_does_not_let_pass(gate: Any) -> None:
    ran: list[str] = []
    runtime = Runtime(shouting(ran), gate=gate)
    for _ in range(2):  # the second call takes the short way if there is one
        assert error_in(runtime.handle("shout", {"text": "hey"}))["error_type"] == "denied"
    assert ran == []


def test_a_call_that_does_nothing_to_judge_needs_no_gate() -> None:
    ran: list[str] = []
    assert Runtime(shouting(ran)).handle("shout", {"text": "hush"}) == "done"


def test_an_error_while_telling_the_actions_stops_the_call() -> None:
    ran: list[str] = []
    registry = shouting(ran)
    entry = registry.get_entry("shout")
    assert entry is not None

    def broken(args: Any, context: Any) -> Any:
        raise RuntimeError("cannot tell")

    registry.register(name="mumble", toolset="t", schema=entry.schema, handler=entry.handler, actions=broken)
    assert "cannot tell" in error_in(Runtime(registry, gate=OpenGate()).handle("mumble", {"text": "x"}))["error"]
    assert ran == []
