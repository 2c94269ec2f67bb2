"""A message's calls: together where that is safe, in order where it is not, and always an answer for each."""

from __future__ import annotations

import asyncio
import contextlib
import copy
import json
import sys
import threading
from collections.abc import Callable
from typing import Any

import pytest

from handrail.base.workers import run_async
from handrail.core.registry import ToolRegistry
from handrail.errors import InvalidArguments, ToolFailed
from handrail.plugins.hook_manager import HookManager
from handrail.plugins.hook_specs import Change
from handrail.runtime.batches import Batches
from handrail.runtime.dispatch import Runtime
from handrail.settings.schema import Config
from handrail.settings.sections import CallsConfig, ResultsConfig
from handrail.store.results import FileResultStore
from handrail.types import CancelToken, Progress, Resources, ToolContext
from tests.support import (
    PATIENCE_SECONDS,
    add,
    call,
    costs_less_than,
    error_in,
    in_thread,
    in_threads,
    parameters,
    takes_less_than,
    wait_until,
)

PATH = parameters(["path"], path={"type": "string"})


def reading(args: dict[str, Any]) -> Resources:
    return Resources(reads=(args["path"],))


def writing(args: dict[str, Any]) -> Resources:
    return Resources(writes=(args["path"],))


@pytest.fixture
def batches(runtime: Runtime) -> Batches:
    return Batches(runtime)


@pytest.fixture(params=["sync", "async", "inside a loop", "worker thread"])
def run(request: pytest.FixtureRequest, batches: Batches) -> Callable[..., list[dict[str, Any]]]:
    """A batch, run from each place that a program may be in."""

    async def inside(message: Any, more: dict[str, Any]) -> list[dict[str, Any]]:
        return run_async(batches.run(message, **more), timeout=30)

    ways: dict[str, Callable[..., list[dict[str, Any]]]] = {
        "sync": lambda message, **more: run_async(batches.run(message, **more)),
        "async": lambda message, **more: asyncio.run(batches.run(message, **more)),
        "inside a loop": lambda message, **more: asyncio.run(inside(message, more)),
        "worker thread": lambda message, **more: in_thread(lambda: run_async(batches.run(message, **more))),  # type: ignore[no-any-return]
    }
    return ways[request.param]


def contents(messages: list[dict[str, Any]]) -> list[Any]:
    return [message["content"] for message in messages]


class Meeting:
    """A handler that returns only when `parties` calls are in it at the same time."""

    def __init__(self, parties: int) -> None:
        self.barrier = threading.Barrier(parties)

    def __call__(self, args: Any, **kw: Any) -> str:
        self.barrier.wait(PATIENCE_SECONDS)
        return "met"


class AsyncMeeting:
    def __init__(self, parties: int) -> None:
        self.parties = parties
        self.there = 0
        self.all_there: asyncio.Event | None = None

    async def __call__(self, args: Any, **kw: Any) -> str:
        if self.all_there is None:
            self.all_there = asyncio.Event()
        self.there += 1
        if self.there == self.parties:
            self.all_there.set()
        await asyncio.wait_for(self.all_there.wait(), PATIENCE_SECONDS)
        return "met"


class Crowd:
    """A handler that notes how many calls are in it at once, and in which order they began and ended."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.inside = 0
        self.most = 0
        self.log: list[str] = []

    def __call__(self, args: Any, **kw: Any) -> str:
        with self.lock:
            self.inside += 1
            self.most = max(self.most, self.inside)
            self.log.append(f"+{args.get('n', '')}")
        threading.Event().wait(0.01)  # long enough for another to come in, if it may
        with self.lock:
            self.log.append(f"-{args.get('n', '')}")
            self.inside -= 1
        return "done"


class TestTogether:
    def test_read_only_tools_run_at_the_same_time(self, registry: ToolRegistry, run: Any) -> None:
        add(registry, "read", Meeting(8), read_only=True)
        assert contents(run([call("read", f"c{n}") for n in range(8)])) == ["met"] * 8

    def test_async_tools_run_at_the_same_time(self, registry: ToolRegistry, run: Any) -> None:
        add(registry, "read", AsyncMeeting(50), read_only=True, is_async=True)
        assert contents(run([call("read", f"c{n}") for n in range(50)])) == ["met"] * 50

    def test_sync_and_async_tools_run_at_the_same_time(self, registry: ToolRegistry, run: Any) -> None:
        barrier = threading.Barrier(2)

        async def on_loop(args: Any, **kw: Any) -> str:
            await asyncio.get_running_loop().run_in_executor(None, barrier.wait, PATIENCE_SECONDS)
            return "met"

        def on_thread(args: Any, **kw: Any) -> str:
            barrier.wait(PATIENCE_SECONDS)
            return "met"

        add(registry, "a", on_loop, read_only=True, is_async=True)
        add(registry, "b", on_thread, read_only=True)
        assert contents(run([call("a"), call("b")])) == ["met", "met"]

    def test_writes_to_different_paths_run_at_the_same_time(self, registry: ToolRegistry, run: Any) -> None:
        add(registry, "write", Meeting(3), resources=writing, schema=PATH)
        assert contents(run([call("write", path=f"/{n}") for n in "abc"])) == ["met"] * 3

    def test_reads_of_one_path_run_at_the_same_time(self, registry: ToolRegistry, run: Any) -> None:
        add(registry, "read", Meeting(3), resources=reading, schema=PATH)
        assert contents(run([call("read", path="/same")] * 3)) == ["met"] * 3


class TestInOrder:
    def test_writes_to_one_path_run_in_the_models_order(self, registry: ToolRegistry, run: Any) -> None:
        crowd = Crowd()
        schema = parameters(path={"type": "string"}, n={"type": "integer"})
        add(registry, "write", crowd, resources=writing, schema=schema)
        run([call("write", path="/same" if n % 2 else "/same/below", n=n) for n in range(6)])
        expected = [mark for n in (0, 1, 2, 3, 4, 5) for mark in (f"+{n}", f"-{n}")]
        assert crowd.log == expected

    def test_a_read_sees_what_was_written_before_it(self, registry: ToolRegistry, run: Any) -> None:
        disk: dict[str, str] = {}

        def write(args: Any, **kw: Any) -> str:
            threading.Event().wait(0.03)
            disk[args["path"]] = "new"
            return "written"

        add(registry, "write", write, resources=writing, schema=PATH)
        add(
            registry,
            "read",
            lambda args, **kw: disk.get(args["path"], "old"),
            resources=reading,
            read_only=True,
            schema=PATH,
        )
        messages = [call("read", path="/a"), call("write", path="/a"), call("read", path="/a"), call("read", path="/b")]
        assert contents(run(messages)) == ["old", "written", "new", "old"]

    def test_a_tool_that_says_nothing_about_itself_runs_alone(self, registry: ToolRegistry, run: Any) -> None:
        crowd = Crowd()
        add(registry, "ask", crowd)
        add(registry, "read", crowd, read_only=True)
        run([call("ask"), call("ask"), call("read"), call("ask")])
        assert crowd.most == 1

    def test_an_async_one_too(self, registry: ToolRegistry, run: Any) -> None:
        inside, most = 0, 0

        async def work(args: Any, **kw: Any) -> str:
            nonlocal inside, most
            inside += 1
            most = max(most, inside)
            await asyncio.sleep(0.005)
            inside -= 1
            return "done"

        add(registry, "ask", work, is_async=True)
        run([call("ask")] * 4)
        assert most == 1

    def test_what_a_tool_touches_is_asked_of_the_arguments_as_they_will_run(
        self, registry: ToolRegistry, run: Any, hook_manager: HookManager
    ) -> None:
        crowd = Crowd()
        add(registry, "write", crowd, resources=writing, schema=PATH)
        hook_manager.register_hook("pre_tool_call", lambda: Change({"path": "/one/place"}))
        run([call("write", path=f"/{n}") for n in "abcd"])
        assert crowd.most == 1

    def test_answers_come_in_the_models_order_with_their_ids(self, registry: ToolRegistry, run: Any) -> None:
        first_may_end = threading.Event()

        def first(args: Any, **kw: Any) -> str:
            first_may_end.wait(PATIENCE_SECONDS)
            return "first"

        def second(args: Any, **kw: Any) -> str:
            first_may_end.set()
            return "second"

        add(registry, "first", first, read_only=True)
        add(registry, "second", second, read_only=True)
        assert run([call("first", "id-1"), call("second", "id-2")]) == [
            {"role": "tool", "tool_call_id": "id-1", "name": "first", "content": "first"},
            {"role": "tool", "tool_call_id": "id-2", "name": "second", "content": "second"},
        ]


class TestFailing:
    @pytest.mark.parametrize(
        ("problem", "error_type"),
        [
            (ValueError("bug"), "tool_failed"),
            (StopIteration("empty"), "tool_failed"),
            (SystemExit(3), "tool_failed"),
            (asyncio.CancelledError(), "cancelled"),
            (ToolFailed("odd", where=object()), "tool_failed"),
            (RecursionError(), "tool_failed"),
        ],
        ids=lambda value: type(value).__name__,
    )
    @pytest.mark.parametrize("kind", ["sync", "async", "async in name"])
    def test_one_that_fails_has_its_answer_and_does_not_hurt_its_siblings(
        self, registry: ToolRegistry, batches: Batches, problem: BaseException, error_type: str, kind: str
    ) -> None:
        ended = threading.Event()

        def fail(args: Any, **kw: Any) -> str:
            raise copy.copy(problem)  # a fresh one: the original would keep every frame that it passed

        async def afail(args: Any, **kw: Any) -> str:
            raise copy.copy(problem)  # a fresh one: the original would keep every frame that it passed

        def sibling(args: Any, **kw: Any) -> str:
            ended.wait(0.05)
            return "fine"

        add(registry, "fail", afail if kind == "async" else fail, read_only=True, is_async=kind != "sync")
        add(registry, "sibling", sibling, read_only=True)
        with takes_less_than(30):
            messages = in_thread(
                lambda: run_async(
                    batches.run([call("sibling"), call("fail"), call("sibling")], timeout=PATIENCE_SECONDS)
                )
            )
        assert contents(messages)[::2] == ["fine", "fine"]
        assert error_in(messages[1]["content"])["error_type"] == error_type

    def test_leaving_the_program_in_one_batch_does_not_disturb_the_next(
        self, registry: ToolRegistry, batches: Batches
    ) -> None:
        add(registry, "leave", lambda args, **kw: sys.exit(3), read_only=True, is_async=True)
        add(registry, "fine", lambda args, **kw: "fine", read_only=True)

        def work() -> list[Any]:
            with contextlib.suppress(SystemExit):
                run_async(batches.run([call("leave")]))
            return contents(run_async(batches.run([call("fine")])))

        assert in_thread(work) == ["fine"]

    def test_every_kind_of_bad_call_has_its_answer(self, registry: ToolRegistry, run: Any) -> None:
        add(registry, "fine", lambda args, **kw: "fine", read_only=True, schema=PATH)
        messages = run(
            [
                call("fine", path="/"),
                call("unknown", "c2"),
                {"id": "c3", "function": {"name": "fine", "arguments": "{"}},
                {"id": "c4", "function": {}},
                "nonsense",
                None,
                call("fine", "c7"),
            ]
        )
        assert messages[0]["content"] == "fine"
        types = [error_in(message["content"])["error_type"] for message in messages[1:]]
        assert types == ["unknown_tool"] + ["invalid_arguments"] * 5
        assert [message["tool_call_id"] for message in messages] == ["fine", "c2", "c3", "c4", "", "", "c7"]

    @pytest.mark.parametrize("message", [None, "text", 5, {"content": "no calls"}])
    def test_a_message_without_calls_is_refused(self, run: Any, message: Any) -> None:
        with pytest.raises(InvalidArguments):
            run(message)

    def test_no_calls_no_answers(self, run: Any) -> None:
        assert run([]) == []


class TestTime:
    def test_a_batch_is_bounded_and_what_was_done_is_kept(
        self, registry: ToolRegistry, run: Any, held: threading.Event
    ) -> None:
        told = threading.Event()

        def hang(args: Any, *, context: ToolContext, **kw: Any) -> str:
            context.cancel.on_cancel(told.set)
            held.wait(PATIENCE_SECONDS)
            return "too late"

        add(registry, "hang", hang, read_only=True)
        add(registry, "quick", lambda args, **kw: "done", read_only=True)
        add(registry, "after", lambda args, **kw: "never")
        with takes_less_than(30):
            messages = run([call("quick"), call("hang"), call("after")], timeout=1)
        assert messages[0]["content"] == "done"
        assert [error_in(message["content"])["error_type"] for message in messages[1:]] == ["timeout", "timeout"]
        assert told.wait(PATIENCE_SECONDS)

    def test_async_calls_are_cancelled_and_clean_up(self, registry: ToolRegistry, run: Any) -> None:
        begun, cleaned = [], []

        async def hang(args: Any, **kw: Any) -> str:
            begun.append(1)  # on a busy machine the time may be over before all have begun
            try:
                await asyncio.sleep(PATIENCE_SECONDS)
            finally:
                cleaned.append(1)
            return "too late"

        add(registry, "hang", hang, read_only=True, is_async=True)
        with takes_less_than(30):
            messages = run([call("hang")] * 5, timeout=0.5)
        assert [error_in(message["content"])["error_type"] for message in messages] == ["timeout"] * 5
        assert len(cleaned) == len(begun) > 0

    def test_one_that_swallows_its_cancellation_does_not_hold_the_batch(
        self, registry: ToolRegistry, batches: Batches, stubborn: Any
    ) -> None:
        def work() -> list[dict[str, Any]]:
            with takes_less_than(30):
                messages = run_async(batches.run([call("stubborn")], timeout=0.1))
            stubborn.over.set()
            return messages

        add(registry, "stubborn", stubborn, read_only=True, is_async=True)
        assert error_in(in_thread(work)[0]["content"])["error_type"] == "timeout"

    def test_a_tools_own_time_is_kept_within_a_batch(
        self, registry: ToolRegistry, run: Any, held: threading.Event
    ) -> None:
        add(registry, "hang", lambda args, **kw: held.wait(PATIENCE_SECONDS), read_only=True, timeout=0.1)
        add(registry, "quick", lambda args, **kw: "done", read_only=True)
        with takes_less_than(30):
            messages = run([call("hang"), call("quick")])
        assert error_in(messages[0]["content"])["error_type"] == "timeout"
        assert messages[1]["content"] == "done"

    def test_the_configured_time_is_the_usual_one(self, registry: ToolRegistry, held: threading.Event) -> None:
        batches = Batches(Runtime(registry, config=Config(calls=CallsConfig(batch_timeout=0.1))))
        add(registry, "hang", lambda args, **kw: held.wait(PATIENCE_SECONDS), read_only=True)
        with takes_less_than(30):
            messages = run_async(batches.run([call("hang")]))
        assert error_in(messages[0]["content"])["error_type"] == "timeout"

    def test_a_slow_check_counts_too(self, batches: Batches, registry: ToolRegistry, held: threading.Event) -> None:
        add(registry, "slow", check_fn=lambda: held.wait(PATIENCE_SECONDS), read_only=True)
        with takes_less_than(30):
            messages = run_async(batches.run([call("slow")], timeout=0.1))
        assert error_in(messages[0]["content"])["error_type"] == "timeout"


class TestCancelling:
    def test_it_reaches_every_call_and_what_was_done_is_kept(
        self, registry: ToolRegistry, run: Any, held: threading.Event
    ) -> None:
        cancel, told, started = CancelToken(), [], threading.Barrier(4)

        def hang(args: Any, *, context: ToolContext, **kw: Any) -> str:
            context.cancel.on_cancel(lambda: told.append(1))
            started.wait(PATIENCE_SECONDS)
            held.wait(PATIENCE_SECONDS)
            return "too late"

        def stop() -> None:
            started.wait(PATIENCE_SECONDS)
            cancel.cancel("the user pressed stop")

        add(registry, "hang", hang, read_only=True)
        add(registry, "quick", lambda args, **kw: "done")
        threading.Thread(target=stop).start()
        messages = run([call("quick"), call("hang"), call("hang"), call("hang"), call("quick")], cancel=cancel)
        assert messages[0]["content"] == "done"
        for message in messages[1:]:
            error = error_in(message["content"])
            assert error["error_type"] == "cancelled"
            assert "the user pressed stop" in error["error"]
        wait_until(lambda: len(told) == 3)

    @pytest.mark.parametrize("beside", [0, 1])
    def test_what_a_call_had_by_then_is_kept(self, registry: ToolRegistry, run: Any, beside: int) -> None:
        cancel, started = CancelToken(), threading.Event()

        def work(args: Any, *, context: ToolContext, **kw: Any) -> str:
            told = threading.Event()
            context.cancel.on_cancel(told.set)
            started.set()
            told.wait(PATIENCE_SECONDS)
            return "half of it"

        def stop() -> None:
            started.wait(PATIENCE_SECONDS)
            cancel.cancel("the user pressed stop")

        add(registry, "work", work, read_only=True)
        add(registry, "quick", lambda args, **kw: "done", read_only=True)
        threading.Thread(target=stop).start()
        messages = run([call("work"), *[call("quick")] * beside], cancel=cancel)
        answer = error_in(messages[0]["content"])
        assert answer["error"] == "work was cancelled: the user pressed stop"
        assert answer["error_type"] == "cancelled"
        assert answer["partial"] == "half of it"

    def test_a_batch_that_was_cancelled_before_it_began_runs_nothing(self, registry: ToolRegistry, run: Any) -> None:
        ran: list[int] = []
        add(registry, "work", lambda args, **kw: ran.append(1) or "done", read_only=True)
        cancel = CancelToken()
        cancel.cancel()
        messages = run([call("work")] * 3, cancel=cancel)
        assert [error_in(message["content"])["error_type"] for message in messages] == ["cancelled"] * 3
        assert not ran

    def test_cancelling_the_callers_task_reaches_the_children(self, registry: ToolRegistry, batches: Batches) -> None:
        cleaned = []

        async def work(args: Any, **kw: Any) -> str:
            started.set()
            try:
                await asyncio.sleep(PATIENCE_SECONDS)
            finally:
                cleaned.append(1)
            return "too late"

        async def main() -> None:
            task = asyncio.create_task(batches.run([call("work")] * 3))
            await started.wait()
            await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

        started = asyncio.Event()
        add(registry, "work", work, read_only=True, is_async=True)
        asyncio.run(main())
        assert cleaned

    def test_the_callers_token_is_not_kept_busy_by_batches_that_are_over(
        self, registry: ToolRegistry, run: Any
    ) -> None:
        add(registry, "work", lambda args, **kw: "done", read_only=True)
        cancel = CancelToken()
        for _ in range(3):
            run([call("work")], cancel=cancel)
            with pytest.raises(InvalidArguments):
                run({"no": "calls"}, cancel=cancel)
        assert not cancel._callbacks
        assert not cancel.cancelled


class TestSharing:
    def test_what_the_calls_share_reaches_each(self, registry: ToolRegistry, run: Any) -> None:
        news: list[Progress] = []

        def who(args: Any, *, context: ToolContext, **kw: Any) -> str:
            context.progress("working")
            return f"{context.task_id} {context.session_id} {context.user_task} {context.tool_call_id}"

        add(registry, "who", who, read_only=True)
        messages = run(
            [call("who", "c1"), call("who", "c2")], task_id="t", session_id="s", user_task="u", on_progress=news.append
        )
        assert contents(messages) == ["t s u c1", "t s u c2"]
        assert sorted(item.tool_call_id for item in news) == ["c1", "c2"]

    def test_the_results_of_a_turn_fit_together(self, registry: ToolRegistry, results: FileResultStore) -> None:
        config = Config(results=ResultsConfig(max_chars=50_000, turn_max_chars=20_000))
        batches = Batches(Runtime(registry, results=results, config=config))
        add(registry, "long", lambda args, **kw: "x" * 40_000, read_only=True)
        messages = run_async(batches.run([call("long")] * 4))
        assert sum(len(message["content"]) for message in messages) <= 20_000
        assert all(results.get(json.loads(message["content"])["id"]) == "x" * 40_000 for message in messages)

    def test_a_result_that_is_no_strict_json_does_not_lose_the_others(
        self, registry: ToolRegistry, results: FileResultStore
    ) -> None:
        batches = Batches(
            Runtime(registry, results=results, config=Config(results=ResultsConfig(turn_max_chars=5_000)))
        )
        add(registry, "odd", lambda args, **kw: '{"x": NaN, "log": "' + "x" * 9_000 + '"}', read_only=True)
        add(registry, "fine", lambda args, **kw: "fine", read_only=True)
        messages = run_async(batches.run([call("odd"), call("fine")]))
        assert messages[1]["content"] == "fine"
        assert messages[0]["content"]

    def test_a_multimodal_result_is_given_as_its_parts(self, registry: ToolRegistry, run: Any) -> None:
        parts = [{"type": "text", "text": "x"}]
        add(registry, "look", lambda args, **kw: {"_multimodal": True, "content": parts}, read_only=True)
        assert contents(run([call("look")])) == [parts]

    def test_a_handler_that_writes_into_its_arguments_does_not_change_the_message(
        self, registry: ToolRegistry, run: Any
    ) -> None:
        add(registry, "tool", lambda args, **kw: args.pop("path"), schema=PATH, read_only=True)
        message = {
            "role": "assistant",
            "content": [{"type": "tool_use", "id": "1", "name": "tool", "input": {"path": "/x"}}],
        }
        run(message)
        assert message["content"][0]["input"] == {"path": "/x"}  # type: ignore[index]


class TestCaps:
    def batches(self, registry: ToolRegistry, **calls: Any) -> Batches:
        return Batches(Runtime(registry, config=Config(calls=CallsConfig(**calls))))

    def test_no_more_than_the_process_allows_run_at_once(self, registry: ToolRegistry) -> None:
        crowd = Crowd()
        batches = self.batches(registry, max_threads=3, max_threads_per_session=3)
        add(registry, "read", crowd, read_only=True)
        messages = run_async(batches.run([call("read")] * 20))
        assert contents(messages) == ["done"] * 20
        assert crowd.most == 3

    def test_no_more_than_the_process_allows_over_all_batches(self, registry: ToolRegistry) -> None:
        crowd = Crowd()
        batches = self.batches(registry, max_threads=4, max_threads_per_session=2)
        add(registry, "read", crowd, read_only=True)
        in_threads(6, lambda n: run_async(batches.run([call("read")] * 5, session_id=f"s{n % 3}")))
        assert crowd.most <= 4

    def test_no_more_than_a_session_may_have(self, registry: ToolRegistry) -> None:
        crowd = Crowd()
        batches = self.batches(registry, max_threads=50, max_threads_per_session=2)
        add(registry, "read", crowd, read_only=True)
        run_async(batches.run([call("read")] * 10, session_id="s"))
        assert crowd.most == 2

    def test_async_calls_are_capped_too(self, registry: ToolRegistry) -> None:
        inside, most = 0, 0

        async def work(args: Any, **kw: Any) -> str:
            nonlocal inside, most
            inside += 1
            most = max(most, inside)
            await asyncio.sleep(0.001)
            inside -= 1
            return "done"

        batches = self.batches(registry, max_async=5)
        add(registry, "read", work, read_only=True, is_async=True)
        assert contents(run_async(batches.run([call("read")] * 30))) == ["done"] * 30
        assert most == 5

    def test_a_greedy_session_does_not_hold_up_a_modest_one(
        self, registry: ToolRegistry, held: threading.Event
    ) -> None:
        started = threading.Semaphore(0)

        def work(args: Any, **kw: Any) -> str:
            started.release()
            if kw["session_id"] == "greedy":
                held.wait(PATIENCE_SECONDS)
            return "done"

        batches = self.batches(registry, max_threads=3, max_threads_per_session=2)
        add(registry, "work", work, read_only=True)
        greedy = threading.Thread(target=lambda: run_async(batches.run([call("work")] * 50, session_id="greedy")))
        greedy.start()
        for _ in range(2):
            assert started.acquire(timeout=PATIENCE_SECONDS)
        with takes_less_than(PATIENCE_SECONDS / 2):
            messages = run_async(batches.run([call("work")] * 5, session_id="modest"))
        assert contents(messages) == ["done"] * 5
        held.set()
        greedy.join(PATIENCE_SECONDS)

    def test_places_are_given_back_by_what_fails_and_what_is_cancelled(
        self, registry: ToolRegistry, held: threading.Event
    ) -> None:
        def fail(args: Any, **kw: Any) -> str:
            raise ValueError("bug")

        batches = self.batches(registry, max_threads=2, max_threads_per_session=2)
        add(registry, "fail", fail, read_only=True)
        add(registry, "hang", lambda args, **kw: held.wait(PATIENCE_SECONDS), read_only=True)
        add(registry, "fine", lambda args, **kw: "fine", read_only=True)
        run_async(batches.run([call("fail")] * 10))
        run_async(batches.run([call("hang")] * 10, timeout=0.1))
        with takes_less_than(30):
            assert contents(run_async(batches.run([call("fine")] * 10, timeout=PATIENCE_SECONDS))) == ["fine"] * 10


class TestReentry:
    def test_a_handler_may_run_a_batch_itself(self, registry: ToolRegistry, run: Any, batches: Batches) -> None:
        def outer(args: Any, **kw: Any) -> Any:
            return contents(run_async(batches.run([call("inner")] * 3)))

        async def aouter(args: Any, **kw: Any) -> Any:
            return contents(await batches.run([call("inner")] * 3))

        async def careless(args: Any, **kw: Any) -> Any:
            return contents(run_async(batches.run([call("inner")] * 3), timeout=PATIENCE_SECONDS))

        add(registry, "inner", lambda args, **kw: "in", read_only=True)
        add(registry, "outer", outer, read_only=True)
        add(registry, "aouter", aouter, read_only=True, is_async=True)
        add(registry, "careless", careless, read_only=True, is_async=True)
        messages = run([call("outer"), call("aouter"), call("careless"), call("outer")], timeout=PATIENCE_SECONDS)
        assert contents(messages) == ['["in", "in", "in"]'] * 4

    def test_batches_within_batches_do_not_lock_each_other_out(self, registry: ToolRegistry) -> None:
        config = Config(calls=CallsConfig(max_threads=2, max_threads_per_session=2))
        batches = Batches(Runtime(registry, config=config))

        def outer(args: Any, **kw: Any) -> Any:
            return contents(run_async(batches.run([call("inner")], session_id="s", timeout=PATIENCE_SECONDS)))

        add(registry, "inner", lambda args, **kw: "in", read_only=True)
        add(registry, "outer", outer, read_only=True)
        messages = run_async(batches.run([call("outer")] * 4, session_id="s", timeout=PATIENCE_SECONDS * 2))
        assert contents(messages) == ['["in"]'] * 4


class TestScale:
    def test_ten_thousand_async_calls_finish_soon(self, registry: ToolRegistry, batches: Batches) -> None:
        async def work(args: Any, **kw: Any) -> str:
            await asyncio.sleep(0)
            return "done"

        add(registry, "work", work, read_only=True, is_async=True)
        with costs_less_than(30):
            messages = run_async(batches.run([call("work")] * 10_000))
        assert contents(messages) == ["done"] * 10_000

    def test_of_a_hundred_calls_that_wait_many_do_so_at_once(self, registry: ToolRegistry, batches: Batches) -> None:
        at_once = threading.Barrier(25)

        def wait(args: Any, **kw: Any) -> str:
            at_once.wait(PATIENCE_SECONDS)
            return "done"

        add(registry, "wait", wait, read_only=True)
        assert contents(run_async(batches.run([call("wait")] * 100))) == ["done"] * 100

    def test_thousands_of_writes_to_one_path_finish_soon(self, registry: ToolRegistry, batches: Batches) -> None:
        async def write(args: Any, **kw: Any) -> str:
            return "done"

        add(registry, "write", write, is_async=True, resources=writing, schema=PATH)
        with costs_less_than(10):
            messages = run_async(batches.run([call("write", path="/same")] * 1_000))
        assert contents(messages) == ["done"] * 1_000
