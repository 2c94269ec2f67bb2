"""When jobs run: what is due is begun, so many at once; what was missed is made up once or skipped, as the job says.

A run is noted before it begins, together with when the job is due next, so that a killed scheduler neither repeats nor forgets
one: the next scheduler finds it, and says that it was lost.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, wait
from typing import NamedTuple

from ..base.workers import pool
from ..errors import InvalidArguments, StoreError
from ..settings.sections import ScheduleConfig
from ..store.jobs import Job, JobState, JobStore, Run, RunState
from ..tools.cron.schedule import read_schedule
from ..types import CancelToken
from .job_runner import Ended

log = logging.getLogger(__name__)

# A run that begins so much later than it was due was missed.
GRACE_SECONDS = 60.0
# Others may ask for a run, or make a job, at any time.
POLL_SECONDS = 1.0
_MAX_GOODBYE = 10.0


class _Running(NamedTuple):
    run: Run
    cancel: CancelToken
    future: Future[Ended]


class Scheduler:
    """`run` does one job. `on_event` is told what happens, as a line for people. `clock` gives the time, for tests."""

    def __init__(
        self,
        jobs: JobStore,
        run: Callable[[Job, CancelToken], Ended],
        settings: ScheduleConfig | None = None,
        *,
        on_event: Callable[[str], object] = log.info,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._jobs, self._run, self._clock, self._tell = jobs, run, clock, on_event
        self._settings = settings or ScheduleConfig()
        self._running: dict[str, _Running] = {}
        self._woken = threading.Event()

    def run_once(self, stop: CancelToken | None = None) -> int:
        """Run all that is due now, and wait for it. How many runs there were."""
        self._find_lost()
        count = 0
        while True:
            begun = self._begin_due()
            count += begun
            if not self._running:
                return count
            self._wait_for_one(stop)

    def run_until(self, stop: CancelToken) -> None:
        """Be the scheduler until told to stop. What runs then is cancelled."""
        self._find_lost()
        forget = stop.on_cancel(self._woken.set)
        try:
            while not stop.cancelled:
                try:
                    self._begin_due()
                except StoreError as error:
                    log.warning("the jobs cannot be read now: %s", error)
                self._woken.wait(POLL_SECONDS)
                self._woken.clear()
                self._collect()
        finally:
            forget()
            self._say_goodbye(stop.reason or "the scheduler stops")

    def _begin_due(self) -> int:
        begun = 0
        for job in self._jobs.due(self._clock()):
            if len(self._running) >= self._settings.max_parallel:
                break
            begun += self._begin(job)
        return begun

    def _begin(self, job: Job) -> bool:
        """Whether it runs now."""
        now = self._clock()
        try:
            after = _after(job, now)
        except InvalidArguments as error:  # a zone that this machine does not know
            self._jobs.update(job._replace(state=JobState.PAUSED))
            self._tell(f"{job.name} is paused: {error}")
            return False
        missed = job.requested is None and now - (job.next_run or now) > GRACE_SECONDS
        skipped = missed and job.work.missed == "skip"
        run = self._jobs.begin(job, after, state=RunState.MISSED if skipped else RunState.RUNNING, now=now)
        if run is None or skipped:
            if skipped:
                self._tell(f"{job.name} was missed, and is skipped")
            return False
        self._tell(f"{job.name} begins" + (", late" if missed else ""))
        cancel = CancelToken()
        timer = self._timer(job, cancel)
        future = pool.submit(self._run, job, cancel)
        future.add_done_callback(lambda _: self._over(timer))
        self._running[job.id] = _Running(run, cancel, future)
        return True

    def _over(self, timer: threading.Timer) -> None:
        timer.cancel()
        self._woken.set()

    def _timer(self, job: Job, cancel: CancelToken) -> threading.Timer:
        seconds = job.work.timeout or self._settings.timeout
        reason = f"it was not done after {seconds:g} seconds"
        timer = threading.Timer(seconds, lambda: cancel.cancel(reason, timed_out=True))
        timer.daemon = True
        timer.start()
        return timer

    def _wait_for_one(self, stop: CancelToken | None) -> None:
        forget = stop.on_cancel(lambda: self._cancel_all(stop.reason)) if stop is not None else None
        try:
            wait([each.future for each in self._running.values()], return_when="FIRST_COMPLETED")
        finally:
            if forget is not None:
                forget()
        self._collect()

    def _collect(self) -> None:
        for job_id, running in list(self._running.items()):
            if running.future.done():
                del self._running[job_id]
                self._keep(running, running.future.result())

    def _keep(self, running: _Running, ended: Ended) -> None:
        output = _bounded(ended.output, self._settings.max_output_chars)
        error = _bounded(ended.error, self._settings.max_output_chars)
        self._jobs.end(running.run.id, ended.state, output=output, error=error, delivered=ended.delivered)
        seconds = self._clock() - running.run.started
        said = f": {ended.error.splitlines()[0][:200]}" if ended.error else ""
        self._tell(f"{running.run.job} {ended.state.value} after {seconds:.1f} s{said}")

    def _cancel_all(self, reason: str) -> None:
        for running in self._running.values():
            running.cancel.cancel(reason)

    def _say_goodbye(self, reason: str) -> None:
        self._cancel_all(reason)
        wait([each.future for each in self._running.values()], timeout=_MAX_GOODBYE)
        self._collect()
        for running in self._running.values():
            self._keep(running, Ended(RunState.CANCELLED, error=f"{reason}, and it did not end"))
        self._running.clear()

    def _find_lost(self) -> None:
        for run in self._jobs.mark_lost():
            self._tell(f"a run of {run.job} was lost: {run.error}")


def _after(job: Job, now: float) -> Job:
    """The job as it is from the begin of this run on."""
    if job.requested is not None:
        return job
    runs_left = None if job.runs_left is None else job.runs_left - 1
    schedule = read_schedule(job.schedule, job.timezone, now=now)
    next_run = schedule.next_after(now, since=job.next_run or now) if runs_left != 0 else None
    state = JobState.FINISHED if next_run is None else job.state
    return job._replace(state=state, next_run=next_run, runs_left=runs_left)


def _bounded(text: str, most: int) -> str:
    """Head and tail of a text that is too long to be kept."""
    if len(text) <= most:
        return text
    head = most * 2 // 3
    tail = most - head
    return f"{text[:head]}\n[... {len(text) - most:,} characters were left out]\n{text[-tail:]}"
