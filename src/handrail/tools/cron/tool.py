"""`cronjob`: have something done at set times. `handrail cron run` does it; here it is only written down."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...core.builtin import registry
from ...core.registry import tool_result
from ...types import JsonDict, Resources

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...protocols import Action
    from ...store.jobs import Job
    from ...types import ToolContext

_ASKS = ("create", "update", "remove")


def cronjob(args: JsonDict, *, context: ToolContext | None = None, **_: object) -> str:
    import time
    from contextlib import closing

    from .job_requests import change, check_may_schedule, described, open_jobs, save
    from .lock import scheduler_pid

    action = args["action"]
    if action == "list":
        one = _meant(args, context) if args.get("job_id") else None
        with closing(open_jobs()) as jobs:
            jobs.mark_lost()
            chosen = jobs.all() if one is None else [one]
            found = [described(job, jobs.runs(job.id, limit=1 if one is None else 5)) for job in chosen]
        return tool_result(jobs=found, scheduler="runs" if scheduler_pid() else _NOBODY)
    check_may_schedule()
    job = _meant(args, context)
    if action in ("create", "update"):
        job = save(job)
    else:
        with closing(open_jobs()) as jobs:
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
        result["notice"] = _NOBODY
    return tool_result(result)


_NOBODY = "no scheduler runs, so no job does; the person starts one with `handrail cron run`"


def _meant(args: JsonDict, context: ToolContext | None) -> Job:
    """The job as it will be after the call, or the one that the call is about."""
    from contextlib import closing

    from ...errors import InvalidArguments, JobNotFound
    from .job_requests import open_jobs

    if args["action"] == "create":
        return _planned(args, context, None)
    if not args.get("job_id"):
        raise InvalidArguments(f"{args['action']} needs job_id; the action list shows them", argument="job_id")
    try:
        with closing(open_jobs()) as jobs:
            job = jobs.get(args["job_id"])
    except JobNotFound as error:
        raise InvalidArguments(str(error)) from None
    return _planned(args, context, job) if args["action"] == "update" else job


def _planned(args: JsonDict, context: ToolContext | None, before: Job | None) -> Job:
    from ...errors import ToolFailed
    from .job_requests import cwd_of, planned

    if context is None or context.tools is None:
        raise ToolFailed("this runtime knows no toolsets; use the runtime's own dispatch")
    return planned(args, registry, before, cwd=cwd_of(context), tools_of=context.tools.names_of)


def _actions(args: JsonDict, context: ToolContext) -> Sequence[Action]:
    from .job_requests import question

    return [question(args["action"], _meant(args, context))] if args["action"] in _ASKS else []


registry.register(
    name="cronjob",
    toolset="cronjob",
    schema={
        "description": (
            "Have something done at set times: a prompt for an agent, or one call of a tool. Schedules: cron "
            "('0 9 * * MON-FRI'), an interval ('30m', 'every 2h'), once ('in 2h', '2026-12-24T18:00'). Nobody is there when a "
            "job runs: say in its prompt all that it needs; what would ask a person is denied. The person is asked before a "
            "job is made or changed."
        ),
        "parameters": {
            "type": "object",
            "properties": {
                "action": {
                    "type": "string",
                    "enum": ["create", "list", "update", "pause", "resume", "remove", "run"],
                    "description": "list with job_id shows its last runs; run has it run once, now.",
                },
                "job_id": {"type": "string", "description": "A job's id or name; for all but create."},
                "schedule": {"type": "string", "maxLength": 200, "description": "When."},
                "timezone": {"type": "string", "description": "Such as Europe/Berlin. Default: the machine's."},
                "prompt": {"type": "string", "description": "What an agent is to do, complete in itself."},
                "tool": {"type": "string", "description": "Instead of prompt: a tool to call."},
                "arguments": {"type": "object", "description": "For tool."},
                "name": {"type": "string", "description": "What people call it."},
                "toolsets": {
                    "type": "array",
                    "items": {"type": "string"},
                    "description": 'What the run may use, such as ["web"]. Default handrail-cron.',
                },
                "deliver": {"type": "string", "description": "Where to send what it gives: a target for messages."},
                "missed": {
                    "type": "string",
                    "enum": ["once", "skip"],
                    "description": "Runs that were missed are made up once, or skipped. Default once.",
                },
                "repeat": {"type": "integer", "minimum": 1, "description": "How often in all. Default without end."},
                "timeout": {
                    "type": "number",
                    "exclusiveMinimum": 0,
                    "maximum": 86400,
                    "description": "Seconds that a run may take.",
                },
                "model": {"type": "string", "description": "For prompt: another model than usual."},
            },
            "required": ["action"],
        },
    },
    handler=cronjob,
    emoji="⏰",
    resources=lambda args: (
        Resources(reads=("cron/jobs",)) if args.get("action") == "list" else Resources(writes=("cron/jobs",))
    ),
    actions=_actions,
)
