"""Async code from sync code, wherever that happens to run."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import copy
import gc
import subprocess
import sys
import threading
import time
import warnings
import weakref
from collections.abc import Coroutine
from typing import Any

import pytest

from handrail.base.workers import run_async
from handrail.errors import CallCancelled, CallTimeout
from handrail.types import CancelToken
from tests.support import PATIENCE_SECONDS, in_thread, in_threads, takes_less_than, wait_until


async def loop_here() -> asyncio.AbstractEventLoop:
    return asyncio.get_running_loop()


def nested(coroutine: Coroutine[Any, Any, Any], **more: Any) -> Any:
    """`run_async` from inside a running loop."""

    async def main() -> Any:
        return run_async(coroutine, **more)

    return asyncio.run(main())


PLACES = {
    "main thread": run_async,
    "worker thread": lambda coroutine, **more: in_thread(lambda: run_async(coroutine, **more)),
    "inside a loop": nested,
    "inside a loop on a worker": lambda coroutine, **more: in_thread(lambda: nested(coroutine, **more)),
}


@pytest.fixture(params=PLACES.values(), ids=PLACES.keys())
def run(request: pytest.FixtureRequest) -> Any:
    return request.param


class TestEverywhere:
    def test_the_result_comes_back(self, run: Any) -> None:
        async def work() -> str:
            await asyncio.sleep(0)
            return "done"

        assert run(work()) == "done"

    @pytest.mark.parametrize("problem", [ValueError("x"), KeyError(), TimeoutError("own"), StopAsyncIteration()])
    def test_an_exception_comes_back_as_itself(self, run: Any, problem: BaseException) -> None:
        async def fail() -> None:
            raise copy.copy(problem)  # a fresh one: the original would keep every frame that it passed

        with pytest.raises(type(problem)) as raised:
            run(fail())
        assert not isinstance(raised.value, CallTimeout)

    def test_context_variables_travel_along(self, run: Any) -> None:
        user: contextvars.ContextVar[str] = contextvars.ContextVar("user", default="nobody")

        async def who() -> str:
            await asyncio.sleep(0)
            return user.get()

        def work() -> Any:
            user.set("ada")
            return run(who())

        if run is run_async or run is nested:
            assert contextvars.copy_context().run(work) == "ada"
        else:  # the thread is the test's own, with a context of its own: set it there

            async def inner() -> str:
                user.set("ada")
                return run_async(who())

            assert run(inner()) == "ada"

    def test_what_the_coroutine_sets_stays_with_it(self, run: Any) -> None:
        user: contextvars.ContextVar[str] = contextvars.ContextVar("user", default="nobody")

        async def change() -> None:
            user.set("eve")

        run(change())
        assert user.get() == "nobody"

    def test_past_its_time_the_coroutine_is_cancelled_and_cleans_up(self, run: Any) -> None:
        cleaned: list[str] = []

        async def hang() -> None:
            try:
                await asyncio.sleep(PATIENCE_SECONDS)
            finally:
                await asyncio.sleep(0)
                cleaned.append("up")

        with takes_less_than(30), pytest.raises(CallTimeout, match=r"0\.1 s"):
            run(hang(), timeout=0.1)
        assert cleaned == ["up"]

    def test_a_token_cancels_it(self, run: Any) -> None:
        token, cleaned = CancelToken(), []

        async def hang() -> None:
            threading.Thread(target=token.cancel, args=("enough",)).start()
            try:
                await asyncio.sleep(PATIENCE_SECONDS)
            finally:
                cleaned.append("up")

        with takes_less_than(30), pytest.raises(CallCancelled, match="enough"):
            run(hang(), cancel=token)
        assert cleaned == ["up"]

    def test_a_token_that_was_cancelled_before_stops_it_too(self, run: Any) -> None:
        token, ran = CancelToken(), []
        token.cancel("enough")

        async def work() -> None:
            await asyncio.sleep(0.05)
            ran.append(1)

        with pytest.raises(CallCancelled, match="enough"):
            run(work(), cancel=token)
        assert not ran

    def test_one_that_cancels_itself_does_not_cancel_the_caller(self, run: Any) -> None:
        async def give_up() -> None:
            task = asyncio.current_task()
            assert task is not None
            task.cancel()
            await asyncio.sleep(PATIENCE_SECONDS)

        with pytest.raises(CallCancelled):
            run(give_up())

    def test_awaitables_that_are_not_coroutines_work(self, run: Any) -> None:
        class Later:
            def __await__(self) -> Any:
                yield from asyncio.sleep(0).__await__()
                return "done"

        assert run(Later()) == "done"

    def test_nothing_is_said_about_coroutines_that_were_never_awaited(self, run: Any) -> None:
        async def work() -> None:
            await asyncio.sleep(0)

        with warnings.catch_warnings():
            warnings.simplefilter("error")
            run(work())
            gc.collect()


class TestLoops:
    def test_a_thread_keeps_its_loop_between_calls(self) -> None:
        assert run_async(loop_here()) is run_async(loop_here())
        assert in_thread(lambda: run_async(loop_here()) is run_async(loop_here()))

    def test_what_lives_on_the_loop_lives_on_between_calls(self) -> None:
        async def start() -> asyncio.Queue[str]:
            queue: asyncio.Queue[str] = asyncio.Queue()

            async def client() -> None:
                await queue.put("still alive")

            queue.task = asyncio.create_task(client())  # type: ignore[attr-defined]
            return queue

        queue = run_async(start())
        assert run_async(queue.get()) == "still alive"

    def test_threads_have_loops_of_their_own(self) -> None:
        loops = in_threads(8, lambda _: id(run_async(loop_here())))
        assert id(run_async(loop_here())) not in loops

    def test_a_loop_is_closed_when_its_thread_ends(self) -> None:
        loop = in_thread(lambda: run_async(loop_here()))
        wait_until(loop.is_closed)

    def test_even_when_an_exception_from_it_is_kept(self) -> None:
        loops: list[asyncio.AbstractEventLoop] = []
        kept: list[BaseException] = []

        async def fail() -> None:
            loops.append(asyncio.get_running_loop())
            raise ValueError("kept")

        def work() -> None:
            try:
                run_async(fail())
            except ValueError as error:
                kept.append(error)

        thread = threading.Thread(target=work)
        thread.start()
        thread.join(PATIENCE_SECONDS)
        assert kept
        try:
            wait_until(loops[0].is_closed)
        finally:
            kept.clear()

    def test_even_when_its_last_call_left_the_program(self) -> None:
        loops: list[asyncio.AbstractEventLoop] = []

        async def leave() -> None:
            loops.append(asyncio.get_running_loop())
            sys.exit(3)

        def work() -> None:
            with contextlib.suppress(SystemExit):
                run_async(leave())

        in_thread(work)
        gc.collect()
        closed = loops[0].is_closed()
        if not closed:
            loops[0].close()
        assert closed

    def test_a_loop_that_is_let_go_inside_another_one_is_closed(self) -> None:
        loops: list[asyncio.AbstractEventLoop] = []
        kept: list[BaseException] = []

        async def fail() -> None:
            loops.append(asyncio.get_running_loop())
            raise ValueError("kept")

        def work() -> None:
            try:
                run_async(fail())
            except ValueError as error:
                kept.append(error)

        async def let_go() -> None:
            kept.clear()
            gc.collect()

        thread = threading.Thread(target=work)
        thread.start()
        thread.join(PATIENCE_SECONDS)
        del thread
        unraisable: list[str] = []
        before, sys.unraisablehook = sys.unraisablehook, lambda args: unraisable.append(repr(args.exc_value))
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                asyncio.run(let_go())
        finally:
            sys.unraisablehook = before
        closed = loops[0].is_closed()
        if not closed:
            loops[0].close()
        assert not unraisable
        assert closed

    def test_tasks_left_on_a_loop_are_cancelled_when_its_thread_ends(self) -> None:
        cleaned = threading.Event()

        async def background() -> None:
            try:
                await asyncio.sleep(PATIENCE_SECONDS)
            finally:
                cleaned.set()

        async def start() -> Any:
            task = asyncio.create_task(background())
            await asyncio.sleep(0)
            return weakref.ref(task), task

        kept: list[Any] = []
        in_thread(lambda: kept.append(run_async(start())))
        assert cleaned.wait(PATIENCE_SECONDS)

    def test_a_closed_loop_is_replaced(self) -> None:
        def work() -> bool:
            first = run_async(loop_here())
            first.close()
            return run_async(loop_here()) is not first

        assert in_thread(work)

    def test_inside_a_loop_another_thread_with_a_loop_of_its_own_does_it(self) -> None:
        async def main() -> tuple[Any, Any]:
            return run_async(who()), (threading.get_ident(), asyncio.get_running_loop())

        async def who() -> tuple[int, Any]:
            return threading.get_ident(), asyncio.get_running_loop()

        inner, outer = asyncio.run(main())
        assert inner[0] != outer[0]
        assert inner[1] is not outer[1]
        assert inner[1].is_closed()

    def test_loops_within_loops_within_loops(self) -> None:
        async def down(depth: int) -> int:
            await asyncio.sleep(0)
            return depth if depth == 0 else run_async(down(depth - 1)) + 1

        assert run_async(down(6)) == 6
        assert asyncio.run(down(6)) == 6

    def test_sync_in_async_in_sync_in_async(self) -> None:
        async def inner() -> str:
            return await asyncio.to_thread(lambda: run_async(leaf()))

        async def leaf() -> str:
            return "leaf"

        async def outer() -> str:
            return run_async(inner())

        assert asyncio.run(outer()) == "leaf"

    def test_no_threads_pile_up(self) -> None:
        async def work() -> int:
            return 1

        async def main() -> None:
            for _ in range(50):
                assert run_async(work()) == 1

        asyncio.run(main())
        before = threading.active_count()
        asyncio.run(main())
        assert threading.active_count() <= before


class TestStubborn:
    def test_one_inside_a_loop_that_swallows_its_cancellation_is_left_behind(self) -> None:
        over = threading.Event()

        async def stubborn() -> None:
            end = time.monotonic() + PATIENCE_SECONDS
            while not over.is_set() and time.monotonic() < end:
                with contextlib.suppress(asyncio.CancelledError):
                    await asyncio.sleep(0.05)

        try:
            with takes_less_than(30), pytest.raises(CallTimeout):
                nested(stubborn(), timeout=0.1)
        finally:
            over.set()

    def test_one_inside_a_loop_that_blocks_its_thread_is_left_behind(self, held: threading.Event) -> None:
        async def block() -> None:
            held.wait(PATIENCE_SECONDS)

        with takes_less_than(30), pytest.raises(CallTimeout):
            nested(block(), timeout=0.1)


class TestInterrupting:
    def test_the_coroutine_cleans_up_before_the_interrupt_goes_on(self) -> None:
        cleaned: list[str] = []

        def interrupt() -> None:
            raise KeyboardInterrupt

        async def work() -> None:
            asyncio.get_running_loop().call_soon(interrupt)
            try:
                await asyncio.sleep(PATIENCE_SECONDS)
            finally:
                await asyncio.sleep(0)
                cleaned.append("up")

        with takes_less_than(30), pytest.raises(KeyboardInterrupt):
            run_async(work())
        assert cleaned == ["up"]
        assert run_async(loop_here()) is run_async(loop_here()), "the loop is still good"

    def test_a_real_signal_does_the_same(self) -> None:
        code = (
            "import asyncio, os, signal\nfrom handrail.base.workers import run_async\n"
            "async def work():\n"
            "    asyncio.get_running_loop().call_later(0.05, os.kill, os.getpid(), signal.SIGINT)\n"
            "    try:\n        await asyncio.sleep(60)\n    finally:\n        print('cleaned')\n"
            "try:\n    run_async(work())\nexcept KeyboardInterrupt:\n    print('interrupted')\n"
        )
        done = subprocess.run(
            [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, timeout=50, check=False
        )
        assert done.stdout.split() == ["cleaned", "interrupted"]
        assert done.stderr == ""

    def test_leaving_the_program_is_not_told_twice(self, caplog: pytest.LogCaptureFixture) -> None:
        async def leave() -> None:
            sys.exit(3)

        with pytest.raises(SystemExit):
            run_async(leave())
        gc.collect()
        assert "never retrieved" not in caplog.text
        assert run_async(loop_here())


def test_a_process_that_used_it_ends_cleanly() -> None:
    code = (
        "import asyncio, logging, threading\nfrom handrail.base.workers import run_async\n"
        "logging.getLogger('asyncio').setLevel(logging.ERROR)\n"  # that a busy machine was slow is a warning
        "async def work():\n    await asyncio.sleep(0)\n    return 1\n"
        "async def main():\n    return run_async(work())\n"
        "run_async(work()); asyncio.run(main())\n"
        "t = threading.Thread(target=lambda: run_async(work())); t.start(); t.join()\n"
    )
    start = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-X", "dev", "-W", "error", "-c", code],
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert time.perf_counter() - start < 30
