"""Run one job: by an agent or as a plain tool call, with its own tools, and nobody to approve anything."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import NamedTuple

from ..agent import End, open_agent
from ..app import Handrail
from ..core.outcome import error_of
from ..errors import HandrailError, ToolFailed
from ..store.jobs import Job, RunState
from ..tools.cron.job_requests import USUAL_TOOLSETS
from ..types import CancelToken

SCHEDULING = "cronjob"
_SEND = "send_message"
_MAX_DELIVERED_CHARS = 4_000
_ALONE = "[This is the scheduled job {name!r}. Nobody can answer questions now; only your last message is kept.]"


class Ended(NamedTuple):
    """How a run ended."""

    state: RunState
    output: str = ""
    error: str = ""
    delivered: str = ""


RunPrompt = Callable[[Job, "tuple[str, ...]", "tuple[str, ...]", CancelToken], str]
"""Runs a job's prompt by an agent, with its enabled and disabled toolsets, and returns the answer."""


class Runner:
    """Runs jobs in one app that nothing else uses: its gate is set to unattended.

    Without `run_prompt`, the built-in agent runs prompts.
    """

    def __init__(self, app: Handrail, *, run_prompt: RunPrompt | None = None) -> None:
        self._app = app
        self._run_prompt = run_prompt or self._by_agent
        may_schedule = app.config.schedule.jobs_may_schedule
        self._without = (*app.config.tools.disabled_toolsets, *(() if may_schedule else (SCHEDULING,)))
        app.runtime.approver = app.runtime.person = None
        app.gate.settings.leave_unattended()

    def __call__(self, job: Job, cancel: CancelToken) -> Ended:
        """Run it. Every failure is in the result."""
        try:
            if job.work.cwd and not os.path.isdir(job.work.cwd):
                raise ToolFailed(f"its folder {job.work.cwd} does not exist any more")
            text = self._call(job, cancel) if job.work.tool else self._prompted(job, cancel)
            ended = Ended(RunState.OK, text)
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
        failure = error_of(outcome)
        if failure is not None:
            raise ToolFailed(str(failure["error"]))
        return outcome if isinstance(outcome, str) else "[not text]"

    def _prompted(self, job: Job, cancel: CancelToken) -> str:
        return self._run_prompt(job, self._toolsets(job), self._without, cancel)

    def _by_agent(self, job: Job, toolsets: tuple[str, ...], without: tuple[str, ...], cancel: CancelToken) -> str:
        work = job.work
        with open_agent(
            self._app,
            model=work.model or None,
            toolsets=toolsets,
            without=without,
            platform="cron",
            cwd=work.cwd or None,
        ) as agent:
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
