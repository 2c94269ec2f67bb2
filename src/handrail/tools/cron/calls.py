"""Run a call of `cronjob`."""

from __future__ import annotations

import time
from contextlib import closing

from ...core.builtin import registry
from ...core.outcome import tool_result
from ...errors import InvalidArguments, JobNotFound, ToolFailed
from ...protocols import Action
from ...store.jobs import Job
from ...types import JsonDict, ToolContext
from .job_requests import change, check_may_schedule, cwd_of, described, open_jobs, planned, question, save
from .schedule import scheduler_pid

_NEED_APPROVAL = ("create", "update", "remove")
_NO_SCHEDULER = "no scheduler is running, so no job runs; the user starts one with `handrail cron run`"


def cronjob(args: JsonDict, *, context: ToolContext | None = None, **_: object) -> str:
    action, config = args["action"], (context or ToolContext()).config
    if action == "list":
        one = _meant(args, context) if args.get("job_id") else None
        with closing(open_jobs(config)) as jobs:
            jobs.mark_lost()
            chosen = jobs.all() if one is None else [one]
            found = [described(job, jobs.runs(job.id, limit=1 if one is None else 5)) for job in chosen]
        return tool_result(jobs=found, scheduler="runs" if scheduler_pid() else _NO_SCHEDULER)
    check_may_schedule()
    job = _meant(args, context)
    if action in ("create", "update"):
        job = save(job, config)
    else:
        with closing(open_jobs(config)) as jobs:
            if action == "remove":
                jobs.remove(job.id)
                return tool_result(removed=job.id, name=job.name)
            if action == "run":
                jobs.request(job.id)
            else:
                job = change(job, action, time.time())
                jobs.update(job)
    result: JsonDict = {"job": described(job)}
    if not scheduler_pid():
        result["notice"] = _NO_SCHEDULER
    return tool_result(result)


def _meant(args: JsonDict, context: ToolContext | None) -> Job:
    """The job that the call is about, as it will be after the call."""
    if args["action"] == "create":
        return _planned(args, context, None)
    if not args.get("job_id"):
        raise InvalidArguments(f"{args['action']} needs job_id; the action list shows them", argument="job_id")
    try:
        with closing(open_jobs((context or ToolContext()).config)) as jobs:
            job = jobs.get(args["job_id"])
    except JobNotFound as error:
        raise InvalidArguments(str(error)) from None
    return _planned(args, context, job) if args["action"] == "update" else job


def _planned(args: JsonDict, context: ToolContext | None, before: Job | None) -> Job:
    if context is None or context.tools is None:
        raise ToolFailed("this runtime has no toolsets; use the runtime's own dispatch")
    return planned(args, registry, before, config=context.config, cwd=cwd_of(context), tools_of=context.tools.names_of)


def actions(args: JsonDict, context: ToolContext) -> list[Action]:
    return [question(args["action"], _meant(args, context))] if args["action"] in _NEED_APPROVAL else []
