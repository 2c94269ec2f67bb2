"""When jobs run: due jobs are started, up to a maximum at a time; a missed run is made up once or skipped, as the job says.

A run is recorded before it starts, together with the job's next due time, so that a killed scheduler neither repeats nor
forgets one: the next scheduler finds it and reports it as lost. A job runs by an agent or as a plain tool call, with its own
tools, and nobody to approve anything.
"""

import contextlib
import logging
import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, wait
from typing import Any, NamedTuple

from ..agent import End, open_agent
from ..app import Handrail
from ..base.workers import pool
from ..core.outcome import error_of
from ..errors import HandrailError, InvalidArguments, StoreError, ToolFailed
from ..settings.sections import ScheduleConfig
from ..store.jobs import Job, JobState, JobStore, Run, RunState
from ..tools.cron.job_requests import USUAL_TOOLSETS
from ..tools.cron.schedule import MIN_SECONDS, read_schedule
from ..types import CancelToken

log = logging.getLogger(__name__)
# A run that starts this much later than it was due was missed.
GRACE_SECONDS = 60.0
# Others may request a run, or create a job, at any time.
POLL_SECONDS = 1.0
_MAX_SHUTDOWN_SECONDS = 10.0
SCHEDULING = "cronjob"
_SEND = "send_message"
_MAX_DELIVERED_CHARS = 4_000
_ALONE = "[This is the scheduled job {name!r}. Nobody can answer questions now; only your last message is kept.]"


class Ended(NamedTuple):
    state: RunState
    output: str = ""
    error: str = ""
    delivered: str = ""


class Runner:
    """Runs jobs in one app that nothing else uses: its gate is set to unattended."""

    def __init__(self, app: Handrail) -> None:
        self._app = app
        may_schedule = app.config.schedule.jobs_may_schedule
        self._without = (*app.config.tools.disabled_toolsets, *(() if may_schedule else (SCHEDULING,)))
        app.runtime.approver = app.runtime.person = None
        app.gate.settings.leave_unattended()

    def __call__(self, job: Job, cancel: CancelToken) -> Ended:
        """Run it. Every failure is in the result."""
        try:
            if job.work.cwd and not os.path.isdir(job.work.cwd):
                raise ToolFailed(f"its folder {job.work.cwd} does not exist any more")
            ended = Ended(RunState.OK, self._call(job, cancel) if job.work.tool else self._by_agent(job, cancel))
        except HandrailError as error:
            ended = Ended(RunState.FAILED, error=str(error))
        except Exception as error:  # noqa: BLE001  one job's failure must not end the scheduler
            ended = Ended(RunState.FAILED, error=f"{type(error).__name__}: {error}")
        if cancel.cancelled:
            timed_out = isinstance(cancel.error(), TimeoutError)
            ended = ended._replace(state=RunState.TIMEOUT if timed_out else RunState.CANCELLED, error=cancel.reason)
        return self._delivered(job, ended) if job.work.deliver else ended

    def _toolsets(self, job: Job) -> tuple[str, ...]:
        return USUAL_TOOLSETS if job.work.toolsets is None else job.work.toolsets

    def _call(self, job: Job, cancel: CancelToken) -> str:
        work, task = job.work, f"cron-{job.id}"
        given = frozenset(self._app.toolsets.select(self._toolsets(job), self._without))
        if work.tool not in given:
            raise ToolFailed(f"{work.tool} is not among the tools of this job: {', '.join(self._toolsets(job))}")
        if work.cwd:
            self._app.environments.override(task, {"cwd": work.cwd})
        try:
            outcome = self._app.runtime.handle(
                work.tool, dict(work.arguments), task, job.name, task, cancel=cancel, enabled_tools=given
            )
        finally:
            self._app.environments.close(task)
            self._app.environments.clear_overrides(task)
        if (failure := error_of(outcome)) is not None:
            raise ToolFailed(str(failure["error"]))
        return outcome if isinstance(outcome, str) else "[not text]"

    def _by_agent(self, job: Job, cancel: CancelToken) -> str:
        work = job.work
        tools: Any = {"toolsets": self._toolsets(job), "without": self._without}
        with open_agent(self._app, model=work.model or None, platform="cron", cwd=work.cwd or None, **tools) as agent:
            forget = cancel.on_cancel(lambda: agent.interrupt(cancel.reason))
            try:
                ended = agent.run(f"{work.prompt}\n\n{_ALONE.format(name=job.name)}")
            finally:
                forget()
        if ended.end is not End.ANSWERED and not cancel.cancelled:
            raise ToolFailed(ended.reason or f"the agent stopped: {ended.end.value}")
        return ended.answer

    def _delivered(self, job: Job, ended: Ended) -> Ended:
        """Send the output to the job's target. A run that succeeded does not fail because it could not be delivered."""
        target = job.work.deliver
        if self._app.runtime.registry.get_entry(_SEND) is None:
            return ended._replace(delivered=f"not sent to {target}: the tool {_SEND} is missing")
        text = ended.output if ended.state is RunState.OK else f"[{ended.state.value}] {ended.error}\n{ended.output}"
        cut = text[:_MAX_DELIVERED_CHARS] + ("…" if len(text) > _MAX_DELIVERED_CHARS else "")
        message = {"target": target, "subject": job.name, "message": cut.strip() or "(nothing)"}
        outcome = self._app.runtime.handle(_SEND, message, f"cron-{job.id}")
        failure = error_of(outcome)
        return ended._replace(delivered=f"not sent to {target}: {failure['error']}" if failure else f"sent to {target}")


class _Running(NamedTuple):
    run: Run
    cancel: CancelToken
    future: Future[Ended]


class Scheduler:
    """`run` runs one job. `on_event` gets a line of text per event. `clock` returns the time, for tests."""

    def __init__(
        self,
        jobs: JobStore,
        run: Callable[[Job, CancelToken], Ended],
        settings: ScheduleConfig | None = None,
        *,
        on_event: Callable[[str], object] = log.info,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._jobs, self._run, self._clock, self._notify = jobs, run, clock, on_event
        self._settings = settings or ScheduleConfig()
        self._running: dict[str, _Running] = {}
        self._woken = threading.Event()

    def run_once(self, stop: CancelToken | None = None) -> int:
        """Run everything that is due now, and wait for it. Returns the number of runs."""
        self._find_lost()
        token, count = stop or CancelToken(), 0
        while True:
            count += self._start_due()
            if not self._running:
                return count
            forget = token.on_cancel(lambda: self._cancel_all(token.reason))
            try:
                wait([each.future for each in self._running.values()], return_when="FIRST_COMPLETED")
            finally:
                forget()
            self._collect()

    def run_until(self, stop: CancelToken) -> None:
        """Run until `stop` is cancelled. Running jobs are cancelled then."""
        self._find_lost()
        forget = stop.on_cancel(self._woken.set)
        try:
            while not stop.cancelled:
                try:
                    self._start_due()
                except StoreError as error:
                    log.warning("the jobs cannot be read now: %s", error)
                self._woken.wait(POLL_SECONDS)
                self._woken.clear()
                self._collect()
        finally:
            forget()
            reason = stop.reason or "the scheduler stops"
            self._cancel_all(reason)
            wait([each.future for each in self._running.values()], timeout=_MAX_SHUTDOWN_SECONDS)
            self._collect()
            for running in self._running.values():
                self._keep(running, Ended(RunState.CANCELLED, error=f"{reason}, and it did not end"))
            self._running.clear()

    def _start_due(self) -> int:
        started, now = 0, self._clock()
        # A clock that was ahead for a while has left times that no interval can give from now on: they are set anew.
        for job in self._jobs.later(now + MIN_SECONDS):
            with contextlib.suppress(InvalidArguments):  # reported when it is due
                schedule = read_schedule(job.schedule, job.timezone, now=now)
                after = schedule.next_after(now, since=now)
                if not schedule.once and after is not None and (job.next_run or now) > after + GRACE_SECONDS:
                    self._jobs.update(job._replace(next_run=after))
                    why = "was due too late, as if the clock had been wrong"
                    self._notify(f"{job.name} {why}; its next run is set anew")
        for job in self._jobs.due(now):
            if len(self._running) >= self._settings.max_parallel:
                break
            started += self._start(job)
        return started

    def _start(self, job: Job) -> bool:
        """Whether it was started."""
        now = self._clock()
        try:
            after = _after(job, now)
        except InvalidArguments as error:  # a zone that this machine does not know
            self._jobs.update(job._replace(state=JobState.PAUSED))
            self._notify(f"{job.name} is paused: {error}")
            return False
        missed = job.requested is None and now - (job.next_run or now) > GRACE_SECONDS
        skipped = missed and job.work.missed == "skip"
        run = self._jobs.begin(job, after, state=RunState.MISSED if skipped else RunState.RUNNING, now=now)
        if run is None or skipped:
            if skipped:
                self._notify(f"{job.name} was missed, and is skipped")
            return False
        self._notify(f"{job.name} starts" + (", late" if missed else ""))
        cancel, seconds = CancelToken(), job.work.timeout or self._settings.timeout
        timer = threading.Timer(seconds, cancel.cancel, (f"timed out after {seconds:g} s",), {"timed_out": True})
        timer.daemon = True
        timer.start()
        future = pool.submit(self._run, job, cancel)
        future.add_done_callback(lambda _: timer.cancel())
        future.add_done_callback(lambda _: self._woken.set())
        self._running[job.id] = _Running(run, cancel, future)
        return True

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
        reason = f": {ended.error.splitlines()[0][:200]}" if ended.error else ""
        self._notify(f"{running.run.job} {ended.state.value} after {seconds:.1f} s{reason}")

    def _cancel_all(self, reason: str) -> None:
        for running in self._running.values():
            running.cancel.cancel(reason)

    def _find_lost(self) -> None:
        for run in self._jobs.mark_lost():
            self._notify(f"a run of {run.job} was lost: {run.error}")


def _after(job: Job, now: float) -> Job:
    """The job as it is once this run has started."""
    if job.requested is not None:
        return job
    runs_left = None if job.runs_left is None else job.runs_left - 1
    schedule = read_schedule(job.schedule, job.timezone, now=now)
    next_run = schedule.next_after(now, since=job.next_run or now) if runs_left != 0 else None
    state = JobState.FINISHED if next_run is None else job.state
    return job._replace(state=state, next_run=next_run, runs_left=runs_left)


def _bounded(text: str, max_chars: int) -> str:
    """The text, or its head and tail if it is too long to be stored."""
    if len(text) <= max_chars:
        return text
    head = max_chars * 2 // 3
    return f"{text[:head]}\n[... {len(text) - max_chars:,} characters were left out]\n{text[head - max_chars :]}"
