"""Hooks around a call: they let pass, block, ask, change, watch; failing ones cannot let anything through."""

from __future__ import annotations

import asyncio
import copy
import json
import logging
import threading
from typing import Any

import pytest

from handrail.core.registry import ToolRegistry
from handrail.plugins.hook_manager import HookManager
from handrail.plugins.hook_specs import Ask, Block, Change, hookimpl
from handrail.protocols import ApprovalRequest, Decision
from handrail.runtime.dispatch import Runtime
from handrail.types import CancelToken
from tests.support import PATIENCE_SECONDS, add, error_in, parameters, takes_less_than

SCHEMA = parameters(path={"type": "string"}, count={"type": "integer"})


class Approver:
    """Answers as it was told, and remembers what it was asked."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer
        self.asked: list[ApprovalRequest] = []

    def decide(self, request: ApprovalRequest) -> Any:
        self.asked.append(request)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


@pytest.fixture
def ran(registry: ToolRegistry) -> list[dict[str, Any]]:
    """The arguments of every call that really ran."""
    seen: list[dict[str, Any]] = []

    def tool(args: dict[str, Any], **kw: Any) -> str:
        seen.append(dict(args))
        return json.dumps({"got": args})

    add(registry, "tool", tool, schema=SCHEMA)
    return seen


@pytest.fixture(params=["sync", "async"])
def handle(request: pytest.FixtureRequest, runtime: Runtime) -> Any:
    if request.param == "sync":
        return runtime.handle
    return lambda *args, **more: asyncio.run(runtime.ahandle(*args, **more))


class TestBefore:
    def test_it_sees_valid_arguments_and_who_asks(self, hook_manager: HookManager, handle: Any, ran: list[Any]) -> None:
        seen: list[Any] = []

        def look(tool_name: str, args: Any, task_id: Any, session_id: Any, tool_call_id: str) -> None:
            seen.append((tool_name, dict(args), task_id, session_id, tool_call_id))

        hook_manager.register_hook("pre_tool_call", look)
        handle("tool", '{"count": "3"}', task_id="t", session_id="s", tool_call_id="c")
        assert seen == [("tool", {"count": 3}, "t", "s", "c")]
        assert ran == [{"count": 3}]

    def test_it_is_not_asked_about_a_call_that_cannot_run(
        self, hook_manager: HookManager, registry: ToolRegistry, handle: Any, ran: list[Any]
    ) -> None:
        seen: list[str] = []
        hook_manager.register_hook("pre_tool_call", lambda tool_name: seen.append(tool_name))
        add(registry, "agents_own", needs_agent=True)
        handle("tool", {"count": "many"})
        handle("unknown", {})
        handle("agents_own", {})
        assert seen == []

    @pytest.mark.parametrize("answer", [None, {"action": "allow"}, {"action": "pass"}])
    def test_it_lets_pass(self, hook_manager: HookManager, handle: Any, ran: list[Any], answer: Any) -> None:
        hook_manager.register_hook("pre_tool_call", lambda: answer, policy=True)
        handle("tool", {"count": 1})
        assert ran == [{"count": 1}]

    @pytest.mark.parametrize(
        "answer", [Block("secrets stay unread"), {"action": "block", "message": "secrets stay unread"}]
    )
    @pytest.mark.parametrize("policy", [True, False])
    def test_it_blocks_with_its_message(
        self, hook_manager: HookManager, handle: Any, ran: list[Any], answer: Any, policy: bool
    ) -> None:
        hook_manager.register_hook("pre_tool_call", lambda: answer, policy=policy)
        error = error_in(handle("tool", {}))
        assert error["error_type"] == "denied"
        assert error["error"] == "secrets stay unread"
        assert ran == []

    def test_a_block_without_a_message_is_still_a_block(
        self, hook_manager: HookManager, handle: Any, ran: list[Any]
    ) -> None:
        hook_manager.register_hook("pre_tool_call", lambda: {"action": "block"})
        assert error_in(handle("tool", {}))["error_type"] == "denied"
        assert ran == []

    def test_after_a_block_nobody_else_is_asked(self, hook_manager: HookManager, handle: Any, ran: list[Any]) -> None:
        asked: list[int] = []
        hook_manager.register_hook("pre_tool_call", lambda: Block("no"))
        hook_manager.register_hook("pre_tool_call", lambda: asked.append(1))
        handle("tool", {})
        assert asked == []

    def test_changes_chain(self, hook_manager: HookManager, handle: Any, ran: list[Any]) -> None:
        hook_manager.register_hook("pre_tool_call", lambda args: Change({**args, "count": args["count"] + 1}))
        hook_manager.register_hook(
            "pre_tool_call", lambda args: {"action": "modify", "args": {**args, "count": args["count"] * 10}}
        )
        handle("tool", {"count": 1})
        assert ran == [{"count": 20}]

    def test_a_change_is_held_against_the_schema_too(
        self, hook_manager: HookManager, handle: Any, ran: list[Any]
    ) -> None:
        hook_manager.register_hook("pre_tool_call", lambda: Change({"count": "many"}))
        assert error_in(handle("tool", {}))["error_type"] == "invalid_arguments"
        hook_manager.register_hook("pre_tool_call", lambda: Change({"count": "7"}), tryfirst=True)
        assert ran == []

    def test_looking_is_not_changing(self, hook_manager: HookManager, handle: Any, ran: list[Any]) -> None:
        hook_manager.register_hook("pre_tool_call", lambda args: args.update(count="not even valid"))
        given = {"count": 1}
        handle("tool", given)
        assert ran == [{"count": 1}]
        assert given == {"count": 1}

    def test_they_run_in_the_documented_order(self, hook_manager: HookManager, handle: Any, ran: list[Any]) -> None:
        order: list[str] = []
        hook_manager.register_hook("pre_tool_call", lambda: order.append("last"), trylast=True)
        hook_manager.register_hook("pre_tool_call", lambda: order.append("one"))
        hook_manager.register_hook("pre_tool_call", lambda: order.append("two"))
        hook_manager.register_hook("pre_tool_call", lambda: order.append("first"), tryfirst=True)
        handle("tool", {})
        assert order == ["first", "one", "two", "last"]

    def test_an_async_hook_is_awaited(self, hook_manager: HookManager, handle: Any, ran: list[Any]) -> None:
        async def think(args: Any) -> Any:
            await asyncio.sleep(0)
            return Block("thought about it")

        hook_manager.register_hook("pre_tool_call", think, policy=True)
        assert error_in(handle("tool", {}))["error"] == "thought about it"
        assert ran == []


class TestFailing:
    PROBLEMS = (ValueError("bug"), RecursionError(), SystemExit(3), StopIteration(), asyncio.CancelledError())

    @pytest.mark.parametrize("problem", PROBLEMS, ids=lambda problem: type(problem).__name__)
    @pytest.mark.parametrize("policy", [True, False])
    def test_one_that_raises_blocks_if_it_is_a_policy_and_is_skipped_if_it_only_watches(
        self,
        hook_manager: HookManager,
        handle: Any,
        ran: list[Any],
        caplog: pytest.LogCaptureFixture,
        problem: BaseException,
        policy: bool,
    ) -> None:
        def fail() -> None:
            raise copy.copy(problem)  # a fresh one: the original would keep every frame that it passed

        hook_manager.register_hook("pre_tool_call", fail, policy=policy)
        with takes_less_than(30):
            outcome = handle("tool", {})
        if policy:
            assert error_in(outcome)["error_type"] == "denied"
            assert ran == []
        else:
            assert ran == [{}]
        assert [r.levelno for r in caplog.records if "pre_tool_call" in r.getMessage()] == [logging.WARNING]

    @pytest.mark.parametrize("policy", [True, False])
    @pytest.mark.parametrize("kind", ["sync", "async"])
    def test_one_that_takes_too_long_likewise(
        self, hook_manager: HookManager, handle: Any, ran: list[Any], held: threading.Event, policy: bool, kind: str
    ) -> None:
        def hang() -> None:
            held.wait(PATIENCE_SECONDS)

        async def ahang() -> None:
            await asyncio.sleep(PATIENCE_SECONDS)

        hook_manager.timeout = 0.1
        hook_manager.register_hook("pre_tool_call", hang if kind == "sync" else ahang, policy=policy)
        with takes_less_than(30):
            outcome = handle("tool", {})
        if policy:
            assert error_in(outcome)["error_type"] == "denied"
        assert bool(ran) is not policy

    def test_one_may_have_a_deadline_of_its_own(
        self, hook_manager: HookManager, handle: Any, ran: list[Any], held: threading.Event
    ) -> None:
        hook_manager.timeout = PATIENCE_SECONDS
        hook_manager.register_hook("pre_tool_call", lambda: held.wait(PATIENCE_SECONDS), policy=True, timeout=0.1)
        with takes_less_than(30):
            assert error_in(handle("tool", {}))["error_type"] == "denied"

    @pytest.mark.parametrize("nonsense", [True, False, "block", 5, [], {}, {"action": "explode"}, {"action": "modify"}])
    def test_an_answer_that_is_none_counts_as_failing(
        self, hook_manager: HookManager, handle: Any, ran: list[Any], nonsense: Any
    ) -> None:
        hook_manager.register_hook("pre_tool_call", lambda: nonsense, policy=True)
        assert error_in(handle("tool", {}))["error_type"] == "denied"
        assert ran == []

    def test_an_inline_hook_runs_in_the_callers_thread(
        self, hook_manager: HookManager, handle: Any, ran: list[Any]
    ) -> None:
        threads: list[int] = []
        hook_manager.register_hook("pre_tool_call", lambda: threads.append(threading.get_ident()), inline=True)
        hook_manager.register_hook("pre_tool_call", lambda: threads.append(threading.get_ident()))
        handle("tool", {})
        assert threads[0] == threading.get_ident() != threads[1]


class TestAsking:
    @pytest.mark.parametrize("decision", list(Decision))
    def test_the_answer_decides(
        self, hook_manager: HookManager, runtime: Runtime, handle: Any, ran: list[Any], decision: Decision
    ) -> None:
        runtime.approver = Approver(decision)
        hook_manager.register_hook("pre_tool_call", lambda: Ask("this deletes", rule_key="delete"))
        outcome = handle("tool", {"path": "/x"}, task_id="t", session_id="s")
        assert bool(ran) is (decision not in (Decision.DENY, Decision.TRY))  # a try is not offered here
        if not ran:
            error = error_in(outcome)
            assert error["error_type"] == "denied"
            assert "this deletes" in error["error"]
            assert "Do not try to reach the same by another" in error["error"]
        asked = [request[:6] for request in runtime.approver.asked]
        assert asked == [("tool", {"path": "/x"}, "this deletes", "delete", "t", "s")]

    def test_a_dictionary_asks_too(
        self, hook_manager: HookManager, runtime: Runtime, handle: Any, ran: list[Any]
    ) -> None:
        runtime.approver = Approver(Decision.ONCE)
        hook_manager.register_hook("pre_tool_call", lambda: {"action": "approve", "message": "sure?", "rule_key": "k"})
        handle("tool", {})
        assert [(request.reason, request.rule_key) for request in runtime.approver.asked] == [("sure?", "k")]
        assert ran == [{}]

    @pytest.mark.parametrize(
        "answer", [None, True, "once", "yes", 1, ConnectionError("gone"), TimeoutError()], ids=repr
    )
    def test_what_is_no_yes_is_a_no(
        self, hook_manager: HookManager, runtime: Runtime, handle: Any, ran: list[Any], answer: Any
    ) -> None:
        runtime.approver = Approver(answer)
        hook_manager.register_hook("pre_tool_call", lambda: Ask("sure?"))
        assert error_in(handle("tool", {}))["error_type"] == "denied"
        assert ran == []

    def test_nobody_to_ask_is_a_no(self, hook_manager: HookManager, handle: Any, ran: list[Any]) -> None:
        hook_manager.register_hook("pre_tool_call", lambda: Ask("sure?"))
        error = error_in(handle("tool", {}))
        assert error["error_type"] == "denied"
        assert "nobody is there to ask" in error["error"]
        assert ran == []

    def test_asking_shows_what_will_run(
        self, hook_manager: HookManager, runtime: Runtime, handle: Any, ran: list[Any]
    ) -> None:
        runtime.approver = Approver(Decision.ONCE)
        hook_manager.register_hook("pre_tool_call", lambda: Change({"count": 2}))
        hook_manager.register_hook("pre_tool_call", lambda: Ask("sure?"))
        handle("tool", {"count": 1})
        assert runtime.approver.asked[0].arguments == {"count": 2}
        assert ran == [{"count": 2}]

    def test_what_is_changed_after_a_yes_is_asked_about_again_or_not_changed(
        self, hook_manager: HookManager, runtime: Runtime, handle: Any, ran: list[Any]
    ) -> None:
        runtime.approver = Approver(Decision.ONCE)
        hook_manager.register_hook("pre_tool_call", lambda: Ask("delete /tmp/x?"))
        hook_manager.register_hook("pre_tool_call", lambda: Change({"path": "/home"}))
        handle("tool", {"path": "/tmp/x"})
        shown = [request.arguments for request in runtime.approver.asked]
        assert all(arguments in shown for arguments in ran)

    def test_cancelling_while_someone_is_asked_gives_up_asking(
        self, hook_manager: HookManager, runtime: Runtime, ran: list[Any], held: threading.Event
    ) -> None:
        asked = threading.Event()

        class Slow:
            def decide(self, request: ApprovalRequest) -> Decision:
                asked.set()
                held.wait(PATIENCE_SECONDS)
                return Decision.ONCE

        runtime.approver = Slow()
        hook_manager.register_hook("pre_tool_call", lambda: Ask("sure?"))
        cancel = CancelToken()
        threading.Thread(target=lambda: asked.wait(PATIENCE_SECONDS) and cancel.cancel()).start()
        with takes_less_than(30):
            assert error_in(runtime.handle("tool", {}, cancel=cancel))["error_type"] == "cancelled"
        assert ran == []


class TestAfter:
    @pytest.fixture
    def seen(self, hook_manager: HookManager) -> list[dict[str, Any]]:
        events: list[dict[str, Any]] = []
        hook_manager.register_hook("post_tool_call", lambda **event: events.append(event))
        return events

    def test_it_sees_result_status_and_duration(self, handle: Any, ran: list[Any], seen: list[dict[str, Any]]) -> None:
        outcome = handle("tool", {"count": 1}, task_id="t", session_id="s", tool_call_id="c")
        (event,) = seen
        duration = event.pop("duration_ms")
        assert 0 <= duration < 10_000
        assert event.pop("call_number") > 0
        assert event == {
            "tool_name": "tool",
            "args": {"count": 1},
            "result": outcome,
            "status": "ok",
            "error_type": None,
            "task_id": "t",
            "session_id": "s",
            "tool_call_id": "c",
        }

    def test_it_sees_every_kind_of_failure(
        self, registry: ToolRegistry, hook_manager: HookManager, handle: Any, ran: list[Any], seen: list[dict[str, Any]]
    ) -> None:
        def fail(args: Any, **kw: Any) -> str:
            raise ValueError("bug")

        add(registry, "fail", fail)
        add(registry, "gone", check_fn=lambda: False)
        add(registry, "slow", lambda args, context, **kw: context.cancel.wait(PATIENCE_SECONDS), timeout=0.05)
        hook_manager.register_hook("pre_tool_call", lambda tool_name: Block("no") if tool_name == "tool" else None)
        for name in ("fail", "gone", "unknown", "tool", "slow"):
            handle(name, {})
        assert [(event["tool_name"], event["status"], event["error_type"]) for event in seen] == [
            ("fail", "error", "tool_failed"),
            ("gone", "error", "unavailable"),
            ("unknown", "error", "unknown_tool"),
            ("tool", "blocked", "denied"),
            ("slow", "error", "timeout"),
        ]

    def test_it_sees_the_result_as_the_budget_left_it(
        self, registry: ToolRegistry, handle: Any, seen: list[dict[str, Any]]
    ) -> None:
        add(registry, "long", lambda args, **kw: "x" * 50_000, max_result_size_chars=2_000)
        assert handle("long", {}) == seen[0]["result"]
        assert len(seen[0]["result"]) <= 2_000

    @pytest.mark.parametrize("hook", ["post_tool_call", "transform_tool_result"])
    @pytest.mark.parametrize(
        "problem", [ValueError("bug"), SystemExit(3), asyncio.CancelledError(), StopIteration()], ids=repr
    )
    def test_one_that_fails_changes_nothing(
        self, hook_manager: HookManager, handle: Any, ran: list[Any], hook: str, problem: BaseException
    ) -> None:
        def fail() -> None:
            raise copy.copy(problem)  # a fresh one: the original would keep every frame that it passed

        hook_manager.register_hook(hook, fail)
        with takes_less_than(30):
            assert handle("tool", {"count": 1}) == '{"got": {"count": 1}}'

    def test_one_that_hangs_is_left_behind(
        self, hook_manager: HookManager, handle: Any, ran: list[Any], held: threading.Event
    ) -> None:
        hook_manager.timeout = 0.1
        hook_manager.register_hook("post_tool_call", lambda: held.wait(PATIENCE_SECONDS))
        hook_manager.register_hook("transform_tool_result", lambda: held.wait(PATIENCE_SECONDS))
        with takes_less_than(30):
            assert handle("tool", {}) == '{"got": {}}'

    def test_texts_are_replaced_one_after_the_other(
        self, hook_manager: HookManager, handle: Any, ran: list[Any]
    ) -> None:
        hook_manager.register_hook("transform_tool_result", lambda result: result.replace("got", "had"))
        hook_manager.register_hook("transform_tool_result", lambda result: None)
        hook_manager.register_hook("transform_tool_result", lambda result: result.upper())
        assert handle("tool", {}) == '{"HAD": {}}'

    @pytest.mark.parametrize(
        ("result", "told"),
        [
            ('{"a": 1}', '{"a": 1, "remark": "too long"}'),
            ("words", "words\n\ntoo long"),
            ('["a"]', '["a"]\n\ntoo long'),
        ],
    )
    def test_it_can_tell_the_model_something_beside_the_result(
        self, hook_manager: HookManager, registry: ToolRegistry, handle: Any, result: str, told: str
    ) -> None:
        add(registry, "says", lambda args, **kw: result)
        hook_manager.register_hook("post_tool_call", lambda: Block("too long"))
        assert handle("says", {}) == told

    @pytest.mark.parametrize("nonsense", [5, b"x", ["x"], {"x": 1}, True])
    def test_only_text_replaces_text(
        self, hook_manager: HookManager, handle: Any, ran: list[Any], nonsense: Any
    ) -> None:
        hook_manager.register_hook("transform_tool_result", lambda: nonsense)
        assert handle("tool", {}) == '{"got": {}}'

    def test_a_replaced_text_keeps_to_the_budget_and_is_well_formed(
        self, registry: ToolRegistry, hook_manager: HookManager, handle: Any
    ) -> None:
        add(registry, "short", lambda args, **kw: "x", max_result_size_chars=2_000)
        hook_manager.register_hook("transform_tool_result", lambda: "y\ud800" * 20_000)
        for name in ("short", "unknown"):
            text = handle(name, {})
            text.encode()
            if name == "short":
                assert len(text) <= 2_000

    def test_a_result_nested_beyond_reason_is_not_lost(
        self, registry: ToolRegistry, handle: Any, seen: list[dict[str, Any]]
    ) -> None:
        odd = '{"error": ' + "[" * 5_000
        add(registry, "odd", lambda args, **kw: odd)
        assert handle("odd", {}) == odd

    def test_a_multimodal_result_is_seen_but_not_transformed(
        self, registry: ToolRegistry, hook_manager: HookManager, handle: Any, seen: list[dict[str, Any]]
    ) -> None:
        picture = {"_multimodal": True, "content": [{"type": "text", "text": "x"}]}
        add(registry, "look", lambda args, **kw: picture)
        hook_manager.register_hook("transform_tool_result", lambda result: "gone")
        assert handle("look", {}) == picture
        assert seen[0]["result"] == picture
        assert seen[0]["status"] == "ok"


class TestReentry:
    def test_a_hook_may_register_tools(
        self, registry: ToolRegistry, hook_manager: HookManager, handle: Any, ran: list[Any]
    ) -> None:
        hook_manager.register_hook("pre_tool_call", lambda: add(registry, "from_hook") and None)
        handle("tool", {})
        assert registry.get_entry("from_hook") is not None

    def test_a_hook_may_register_and_remove_hooks(self, hook_manager: HookManager, handle: Any, ran: list[Any]) -> None:
        later: list[int] = []

        def once() -> None:
            hook_manager.unregister(name)
            hook_manager.register_hook("pre_tool_call", lambda: later.append(1))

        name = hook_manager.register_hook("pre_tool_call", once)
        handle("tool", {})
        assert later == []
        handle("tool", {})
        assert later == [1]

    def test_a_hook_may_call_a_tool(
        self, registry: ToolRegistry, hook_manager: HookManager, runtime: Runtime, handle: Any, ran: list[Any]
    ) -> None:
        add(registry, "inner", lambda args, **kw: "inner ran")
        inner: list[Any] = []

        def look(tool_name: str) -> None:
            if tool_name == "tool":
                inner.append(runtime.handle("inner", {}))

        hook_manager.register_hook("pre_tool_call", look, policy=True)
        handle("tool", {})
        assert inner == ["inner ran"]
        assert ran == [{}]

    def test_a_plugin_object_may_do_all_of_it(self, hook_manager: HookManager, handle: Any, ran: list[Any]) -> None:
        class Plugin:
            def __init__(self) -> None:
                self.finished: list[str] = []

            @hookimpl(policy=True)
            def pre_tool_call(self, tool_name: str, args: Any) -> Any:
                return Block("secrets stay unread") if ".env" in str(args.get("path", "")) else None

            @hookimpl
            def post_tool_call(self, status: str) -> None:
                self.finished.append(status)

        plugin = Plugin()
        hook_manager.register(plugin)
        assert error_in(handle("tool", {"path": ".env"}))["error"] == "secrets stay unread"
        handle("tool", {"path": "a"})
        assert plugin.finished == ["blocked", "ok"]
        assert ran == [{"path": "a"}]
