"""Hooks that are trusted to return at once take the short way, and mean the same."""

from __future__ import annotations

from typing import Any

import pytest

from handrail.plugins.hook_specs import Ask, Block, Change
from handrail.protocols import Decision
from handrail.runtime.dispatch import Runtime
from handrail.testing import RecordingApprover
from tests.support import add, error_in, parameters, strict_loads


@pytest.fixture(params=[True, False], ids=["at once", "with a deadline"])
def hook(request: pytest.FixtureRequest, runtime: Runtime) -> Any:
    """Add a hook, in both ways, around a tool that has been called before."""
    add(runtime.registry, "probe", schema=parameters(count={"type": "integer"}))
    runtime.handle("probe", {})
    return lambda name, function, **more: runtime.hooks.register_hook(name, function, inline=request.param, **more)


def test_it_sees_what_the_call_is(runtime: Runtime, hook: Any) -> None:
    seen: list[Any] = []
    hook("pre_tool_call", lambda **known: seen.append(known))
    runtime.handle("probe", {"count": "3"}, "task", None, "session")
    (known,) = seen
    assert known.pop("call_number") > 0
    assert known == {
        "tool_name": "probe",
        "args": {"count": 3},
        "original_args": {"count": 3},
        "task_id": "task",
        "session_id": "session",
        "tool_call_id": "",
    }


def test_it_can_block_and_those_after_are_told(runtime: Runtime, hook: Any) -> None:
    told: list[Any] = []
    hook("pre_tool_call", lambda: Block("no"))
    hook("post_tool_call", lambda status, error_type: told.append((status, error_type)))
    assert error_in(runtime.handle("probe", {}))["error_type"] == "denied"
    assert told == [("blocked", "denied")]


def test_changes_chain_and_are_checked(runtime: Runtime, hook: Any) -> None:
    hook("pre_tool_call", lambda args: Change({"count": args["count"] + 1}))
    hook("pre_tool_call", lambda args: Change({"count": args["count"] * 10}))
    assert strict_loads(runtime.handle("probe", {"count": 1})) == {"got": {"count": 20}}
    hook("pre_tool_call", lambda: Change({"count": "many"}))
    assert error_in(runtime.handle("probe", {"count": 1}))["error_type"] == "invalid_arguments"


def test_its_own_copy_is_all_it_can_change(runtime: Runtime, hook: Any) -> None:
    hook("pre_tool_call", lambda args: args.update(count=9))
    assert strict_loads(runtime.handle("probe", {"count": 1})) == {"got": {"count": 1}}


def test_a_question_is_asked_after_all_hooks_were_heard(runtime: Runtime, hook: Any) -> None:
    runtime.approver = RecordingApprover([Decision.ONCE, Decision.DENY])
    hook("pre_tool_call", lambda: Ask("sure?"))
    hook("pre_tool_call", lambda: Change({"count": 5}))
    assert strict_loads(runtime.handle("probe", {})) == {"got": {"count": 5}}
    assert error_in(runtime.handle("probe", {}))["error_type"] == "denied"


@pytest.mark.parametrize("policy", [True, False])
def test_one_that_fails_blocks_if_it_is_a_policy(runtime: Runtime, hook: Any, policy: bool) -> None:
    hook("pre_tool_call", lambda: 1 / 0, policy=policy)
    outcome = runtime.handle("probe", {"count": 1})
    assert ("denied" in outcome) is policy
    assert sum(runtime.hooks.failures.values()) == 1


def test_a_failing_tool_is_told_as_an_error(runtime: Runtime, hook: Any) -> None:
    told: list[Any] = []
    add(runtime.registry, "broken", lambda args, **_: 1 / 0)
    runtime.handle("broken", {})
    hook("post_tool_call", lambda status, args: told.append((status, args)))
    assert "ZeroDivisionError" in error_in(runtime.handle("broken", {}))["error"]
    assert told == [("error", {})]


def test_a_result_can_be_replaced(runtime: Runtime, hook: Any) -> None:
    hook("transform_tool_result", lambda result: result.replace("got", "had"))
    assert strict_loads(runtime.handle("probe", {})) == {"had": {}}


def test_hooks_of_other_moments_leave_calls_alone(runtime: Runtime, hook: Any) -> None:
    hook("on_session_start", lambda: None)
    assert runtime.hooks.active
    assert not runtime.hooks.around_calls
