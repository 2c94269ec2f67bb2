"""What a tool says it is about to do passes a gate first."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from handrail.core.registry import ToolRegistry
from handrail.errors import Denied
from handrail.protocols import Action, ActionKind
from handrail.runtime.batches import Batches
from handrail.runtime.dispatch import Runtime
from handrail.testing import OpenGate
from tests.support import add, call, error_in


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


def test_in_a_message_a_call_is_judged_when_those_before_it_are_done() -> None:
    """What it depends on, such as where a shell is, may be changed by them."""
    ran: list[str] = []
    gate = _Noting(ran)
    message = [call("shout", "1", text="first"), call("shout", "2", text="second")]
    asyncio.run(Batches(Runtime(shouting(ran), gate=gate)).run(message))
    assert gate.had_run == [[], ["first"]]


def test_in_a_message_a_person_is_asked_one_question_at_a_time() -> None:
    ran: list[str] = []
    registry = shouting(ran)
    entry = registry.get_entry("shout")
    assert entry is not None
    registry.register(
        name="whisper", toolset="t", schema=entry.schema, handler=entry.handler, actions=entry.actions, read_only=True
    )
    gate = _Asking()
    message = [call("whisper", str(number), text="x") for number in range(5)]
    asyncio.run(Batches(Runtime(registry, gate=gate)).run(message))
    assert len(ran) == 5
    assert gate.most_at_once == 1


def test_who_needs_no_gate_does_not_wait_for_another_calls_question() -> None:
    ran: list[str] = []
    registry = shouting(ran)
    add(registry, "look", lambda args, **_: gate.answered.set() or "seen", read_only=True)
    entry = registry.get_entry("shout")
    assert entry is not None
    registry.register(
        name="whisper", toolset="t", schema=entry.schema, handler=entry.handler, actions=entry.actions, read_only=True
    )
    gate = _Waiting()
    asyncio.run(Batches(Runtime(registry, gate=gate)).run([call("whisper", "1", text="x"), call("look", "2")]))
    assert ran == ["x"]


class _Noting:
    """Notes what had run when it was asked."""

    def __init__(self, ran: list[str]) -> None:
        self._ran = ran
        self.had_run: list[list[str]] = []

    def review(self, actions: Any, context: Any) -> None:
        self.had_run.append(list(self._ran))


class _Asking:
    most_at_once = at_once = 0

    async def review(self, actions: Any, context: Any) -> None:
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        await asyncio.sleep(0.01)
        self.at_once -= 1


class _Waiting:
    """Says yes when somebody else has been at work."""

    def __init__(self) -> None:
        self.answered = threading.Event()

    async def review(self, actions: Any, context: Any) -> None:
        async with asyncio.timeout(60):
            while not self.answered.is_set():  # noqa: ASYNC110  the event is one of threads
                await asyncio.sleep(0.005)
