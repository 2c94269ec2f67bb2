"""When jobs run: with a clock that the test turns, and real runs on real threads."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from handrail.scheduler.loop import GRACE_SECONDS, Ended, Scheduler
from handrail.settings.sections import ScheduleConfig
from handrail.store.jobs import Job, JobState, JobStore, RunState, Work
from handrail.types import CancelToken

from ..support import in_thread, wait_until

START = 1_790_000_000.0
HALF_HOUR = 1800.0


class Bench:
    """Jobs, a clock, and what ran."""

    def __init__(self, path: Path) -> None:
        self.jobs = JobStore(path)
        self.now = START
        self.ran: list[tuple[str, float]] = []
        self.told: list[str] = []

    def add(self, name: str = "job", schedule: str = "30m", *, runs_left: int | None = None, **work: Any) -> str:
        made = Work(prompt="x", **work)
        next_run = START + HALF_HOUR
        return self.jobs.add(Job("", name, schedule, "UTC", made, next_run=next_run, runs_left=runs_left)).id

    def run(self, job: Job, cancel: CancelToken) -> Ended:
        self.ran.append((job.name, self.now))
        return Ended(RunState.OK, f"{job.name} did it")

    def scheduler(self, run: Callable[[Job, CancelToken], Ended] | None = None, **settings: Any) -> Scheduler:
        return Scheduler(
            self.jobs, run or self.run, ScheduleConfig(**settings), clock=lambda: self.now, on_event=self.told.append
        )

    def look(self, later: float, **settings: Any) -> int:
        """What a scheduler does so many seconds after the start."""
        self.now = START + later
        return self.scheduler(**settings).run_once()


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    bench = Bench(tmp_path / "jobs.db")
    yield bench
    bench.jobs.close()


def test_a_job_runs_when_it_is_due_and_not_before(bench: Bench) -> None:
    number = bench.add()
    assert bench.look(HALF_HOUR - 1) == 0
    assert bench.look(HALF_HOUR) == 1
    assert bench.look(HALF_HOUR + 5) == 0
    assert bench.look(2 * HALF_HOUR) == 1
    assert [run.output for run in bench.jobs.runs(number)] == ["job did it"] * 2


def test_missed_runs_are_made_up_once_and_the_rhythm_stays(bench: Bench) -> None:
    number = bench.add()
    assert bench.look(10 * HALF_HOUR + 700) == 1
    assert bench.jobs.get(number).next_run == START + 11 * HALF_HOUR
    assert bench.jobs.runs(number)[0].due == START + HALF_HOUR


def test_missed_runs_are_skipped_when_the_job_says_so(bench: Bench) -> None:
    number = bench.add(missed="skip")
    assert bench.look(HALF_HOUR + GRACE_SECONDS + 1) == 0
    assert bench.jobs.get(number).next_run == START + 2 * HALF_HOUR
    assert bench.jobs.runs(number)[0].state is RunState.MISSED
    assert bench.look(2 * HALF_HOUR + GRACE_SECONDS - 1) == 1


def test_one_time_is_run_once_and_a_missed_one_too_unless_it_is_to_be_skipped(bench: Bench) -> None:
    at = "2026-09-21T15:03:20+00:00"
    late, skipped = bench.add("late", at), bench.add("skipped", at, missed="skip")
    assert bench.look(90_000) == 1
    assert bench.ran == [("late", START + 90_000)]
    assert [bench.jobs.get(job).state for job in (late, skipped)] == [JobState.FINISHED] * 2
    assert bench.look(99_000) == 0


def test_a_job_ends_when_it_has_run_as_often_as_it_was_to(bench: Bench) -> None:
    number = bench.add(runs_left=2)
    for times in range(1, 5):
        bench.look(times * HALF_HOUR)
    assert len(bench.ran) == 2
    assert bench.jobs.get(number).state is JobState.FINISHED


def test_a_run_that_was_asked_for_changes_no_rhythm_and_works_in_a_pause(bench: Bench) -> None:
    number = bench.add()
    bench.jobs.update(bench.jobs.get(number)._replace(state=JobState.PAUSED))
    bench.jobs.request(number)
    assert bench.look(7) == 1
    job = bench.jobs.get(number)
    assert (job.state, job.next_run, job.requested) == (JobState.PAUSED, START + HALF_HOUR, None)
    assert bench.look(2 * HALF_HOUR) == 0


def test_a_job_that_takes_longer_than_its_interval_does_not_run_twice_at_once(bench: Bench) -> None:
    number = bench.add()
    began, finish = threading.Event(), threading.Event()
    at_once: list[int] = []

    def slow(job: Job, cancel: CancelToken) -> Ended:
        at_once.append(len(at_once))
        began.set()
        assert finish.wait(60)
        return Ended(RunState.OK)

    stop = CancelToken()
    scheduler = bench.scheduler(slow)
    bench.now = START + HALF_HOUR
    thread = threading.Thread(target=scheduler.run_until, args=(stop,))
    thread.start()
    try:
        assert began.wait(60)
        bench.now = START + 3 * HALF_HOUR
        assert bench.scheduler().run_once() == 0
        assert len(at_once) == 1
        finish.set()
        wait_until(lambda: len(at_once) == 2)
    finally:
        finish.set()
        stop.cancel()
        thread.join(60)
    assert bench.jobs.get(number).next_run == START + 4 * HALF_HOUR


def test_only_so_many_jobs_run_at_once(bench: Bench) -> None:
    for number in range(6):
        bench.add(f"job-{number}")
    now, most = [0], [0]
    lock = threading.Lock()

    def counted(job: Job, cancel: CancelToken) -> Ended:
        with lock:
            now[0] += 1
            most[0] = max(most[0], now[0])
        cancel.wait(0.02)
        with lock:
            now[0] -= 1
        return Ended(RunState.OK)

    bench.now = START + HALF_HOUR
    assert bench.scheduler(counted, max_parallel=2).run_once() == 6
    assert most[0] <= 2


def test_a_run_over_its_time_is_cancelled_and_says_so(bench: Bench) -> None:
    number = bench.add(timeout=0.05)

    def slow(job: Job, cancel: CancelToken) -> Ended:
        assert cancel.wait(60)
        return Ended(RunState.TIMEOUT, "half of it", cancel.reason)

    bench.now = START + HALF_HOUR
    assert in_thread(bench.scheduler(slow).run_once) == 1
    run = bench.jobs.runs(number)[0]
    assert (run.state, run.output) == (RunState.TIMEOUT, "half of it")
    assert "0.05 s" in run.error


def test_a_scheduler_that_is_stopped_cancels_what_runs(bench: Bench) -> None:
    number = bench.add()
    began = threading.Event()

    def slow(job: Job, cancel: CancelToken) -> Ended:
        began.set()
        assert cancel.wait(60)
        return Ended(RunState.CANCELLED, error=cancel.reason)

    stop = CancelToken()
    bench.now = START + HALF_HOUR
    thread = threading.Thread(target=bench.scheduler(slow).run_until, args=(stop,))
    thread.start()
    assert began.wait(60)
    stop.cancel("enough")
    thread.join(60)
    assert bench.jobs.runs(number)[0].state is RunState.CANCELLED


def test_a_long_output_keeps_its_head_and_its_tail(bench: Bench) -> None:
    number = bench.add()
    bench.now = START + HALF_HOUR
    text = "a" * 5000 + "b" * 5000
    bench.scheduler(lambda job, cancel: Ended(RunState.OK, text), max_output_chars=3000).run_once()
    kept = bench.jobs.runs(number)[0].output
    assert kept.startswith("a" * 2000 + "\n[... 7,000 characters")
    assert kept.endswith("b" * 1000)


def test_a_job_whose_zone_this_machine_does_not_know_is_paused(bench: Bench) -> None:
    work = Work(prompt="x")
    number = bench.jobs.add(Job("", "far", "0 9 * * *", "Mars/Olympus", work, next_run=START)).id
    assert bench.look(10) == 0
    assert bench.jobs.get(number).state is JobState.PAUSED
    assert "Mars/Olympus" in bench.told[-1]


def test_a_clock_that_was_ahead_once_does_not_silence_an_interval_job(bench: Bench) -> None:
    number = bench.add()
    bench.now = START + 40 * 86_400
    assert bench.scheduler().run_once() == 1
    assert (bench.jobs.get(number).next_run or 0) > START + 40 * 86_400
    bench.now = START + HALF_HOUR
    bench.scheduler().run_once()
    assert (bench.jobs.get(number).next_run or 0) <= bench.now + HALF_HOUR
    assert any("clock" in line for line in bench.told)
    bench.now += HALF_HOUR
    assert bench.scheduler().run_once() == 1


def test_a_job_for_one_time_and_one_for_a_far_date_stay_as_they_are(bench: Bench) -> None:
    once = bench.jobs.add(Job("", "once", "2037-01-01T00:00", "UTC", Work(prompt="x"), next_run=2114380800.0)).id
    yearly = bench.jobs.add(
        Job("", "yearly", "@yearly", "UTC", Work(prompt="x"), next_run=first_of_next_year(START))
    ).id
    before = [bench.jobs.get(each).next_run for each in (once, yearly)]
    bench.now = START
    bench.scheduler().run_once()
    assert [bench.jobs.get(each).next_run for each in (once, yearly)] == before


def first_of_next_year(now: float) -> float:
    return datetime(datetime.fromtimestamp(now, UTC).year + 1, 1, 1, tzinfo=UTC).timestamp()
