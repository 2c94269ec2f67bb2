"""Threads that can be waited for with a limit, and left behind."""

from __future__ import annotations

import contextvars
import gc
import os
import subprocess
import sys
import threading
import weakref
from concurrent.futures import Future
from typing import Any

import pytest

from handrail.base import workers
from handrail.base.workers import WorkerPool, run_bounded
from handrail.errors import CallCancelled, CallTimeout
from handrail.types import CancelToken
from tests.support import PATIENCE_SECONDS, in_threads, takes_less_than, wait_until


def living(pool_threads: set[int]) -> int:
    return sum(thread.ident in pool_threads for thread in threading.enumerate())


class TestRunning:
    def test_the_result_or_the_exception_comes_back(self) -> None:
        assert run_bounded(lambda a, b: a + b, 1, 2) == 3
        with pytest.raises(ZeroDivisionError):
            run_bounded(lambda: 1 / 0)
        with pytest.raises(StopIteration):
            run_bounded(lambda: next(iter(())))

    def test_it_runs_on_another_thread_in_a_copy_of_the_callers_context(self) -> None:
        user: contextvars.ContextVar[str] = contextvars.ContextVar("user", default="nobody")
        user.set("ada")

        def work() -> tuple[int, str]:
            seen = user.get()
            user.set("eve")
            return threading.get_ident(), seen

        ident, seen = run_bounded(work)
        assert ident != threading.get_ident()
        assert seen == "ada"
        assert user.get() == "ada"

    def test_past_its_time_it_is_left_behind(self, held: threading.Event) -> None:
        with takes_less_than(30), pytest.raises(CallTimeout, match=r"0\.05 s"):
            run_bounded(held.wait, PATIENCE_SECONDS, timeout=0.05)

    def test_when_cancelled_it_is_left_behind(self, held: threading.Event) -> None:
        cancel, started = CancelToken(), threading.Event()

        def work() -> None:
            started.set()
            held.wait(PATIENCE_SECONDS)

        threading.Thread(target=lambda: started.wait(PATIENCE_SECONDS) and cancel.cancel("enough")).start()
        with takes_less_than(30), pytest.raises(CallCancelled, match="enough"):
            run_bounded(work, cancel=cancel)

    def test_work_that_hears_of_the_cancel_may_end_by_itself_within_a_grace(self) -> None:
        cancel = CancelToken()

        def work() -> str:
            cancel.cancel("enough")
            return "what there was"

        assert run_bounded(work, cancel=cancel, grace=PATIENCE_SECONDS) == "what there was"

    @pytest.mark.parametrize("timeout", [float("inf"), 1e10, 1e300, threading.TIMEOUT_MAX])
    def test_a_very_long_time_is_no_mistake(self, timeout: float) -> None:
        entered = threading.Event()

        def work() -> str:
            entered.wait(0.05)
            return "done"

        assert run_bounded(work, timeout=timeout) == "done"


class TestPool:
    def test_idle_threads_are_used_again(self) -> None:
        pool = WorkerPool()
        first = pool.submit(threading.get_ident).result(PATIENCE_SECONDS)
        wait_until(lambda: pool._idle)
        assert pool.submit(threading.get_ident).result(PATIENCE_SECONDS) == first

    def test_idle_threads_end_after_a_while(self) -> None:
        pool = WorkerPool(idle_seconds=0.02)
        barrier = threading.Barrier(6)

        def work() -> int:
            barrier.wait(PATIENCE_SECONDS)
            return threading.get_ident()

        threads = {future.result(PATIENCE_SECONDS) for future in [pool.submit(work) for _ in range(6)]}
        assert len(threads) == 6
        wait_until(lambda: living(threads) == 0)

    def test_a_thread_per_piece_of_work_that_waits(self) -> None:
        pool = WorkerPool()
        barrier = threading.Barrier(50)
        for future in [pool.submit(barrier.wait, PATIENCE_SECONDS) for _ in range(50)]:
            future.result(PATIENCE_SECONDS)

    def test_what_was_given_up_before_it_began_does_not_run(self) -> None:
        pool = WorkerPool()
        ran: list[int] = []
        real = workers._Worker.__init__

        def late(self: Any, pool: WorkerPool, job: Any) -> None:
            job[3].cancel()
            real(self, pool, job)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(workers._Worker, "__init__", late)
            assert pool.submit(ran.append, 1).cancelled()
        assert pool.submit(lambda: "next").result(PATIENCE_SECONDS) == "next"
        assert not ran

    def test_a_thread_that_waits_keeps_nothing_of_its_last_work_alive(self) -> None:
        class Big:
            pass

        pool = WorkerPool()
        thing = Big()
        reference = weakref.ref(thing)
        pool.submit(lambda x: None, thing).result(PATIENCE_SECONDS)
        del thing
        wait_until(lambda: gc.collect() >= 0 and reference() is None)

    @pytest.mark.usefixtures("restless_threads")
    def test_no_work_is_lost_when_threads_come_and_go(self) -> None:
        pool = WorkerPool(idle_seconds=0.0005)

        def work(number: int) -> None:
            pause = threading.Event()
            for index in range(100):
                assert pool.submit(lambda x: x, index).result(PATIENCE_SECONDS) == index
                pause.wait(0.0005)  # about the time after which a thread goes

        in_threads(8, work)

    def test_work_given_at_the_moment_a_thread_goes_is_done(self, monkeypatch: pytest.MonkeyPatch) -> None:
        pool = WorkerPool(idle_seconds=0.01)
        assert pool.submit(lambda: "warm").result(PATIENCE_SECONDS) == "warm"
        wait_until(lambda: pool._idle)
        given = workers._Worker.give
        futures: list[Future[str]] = []

        def slow(self: Any, job: Any) -> None:
            # The thread was taken from the idle ones and has not been told yet; meanwhile its time is over.
            monkeypatch.setattr(workers._Worker, "give", given)
            threading.Event().wait(0.1)
            futures.append(pool.submit(lambda: "second"))
            given(self, job)

        monkeypatch.setattr(workers._Worker, "give", slow)
        first = pool.submit(lambda: "first")
        assert first.result(PATIENCE_SECONDS) == "first"
        if futures:
            assert futures[0].result(PATIENCE_SECONDS) == "second"

    @pytest.mark.skipif(not hasattr(os, "fork"), reason="forking is a thing of Unix")
    def test_a_forked_process_has_threads_of_its_own(self) -> None:
        code = (
            "import os\nfrom handrail.base.workers import run_bounded\n"
            "run_bounded(lambda: None)\n"
            "pid = os.fork()\n"
            "if pid == 0:\n    os._exit(run_bounded(lambda: 7, timeout=60))\n"
            "print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))\n"
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=90, check=False)
        assert done.stdout == "7\n", done.stderr

    def test_a_thread_that_never_ends_does_not_hold_the_program(self) -> None:
        code = (
            "import threading\nfrom handrail.base.workers import run_bounded\n"
            "try:\n    run_bounded(threading.Event().wait, timeout=0.05)\nexcept TimeoutError:\n    print('left behind')\n"
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=90, check=False)
        assert (done.returncode, done.stdout, done.stderr) == (0, "left behind\n", "")
