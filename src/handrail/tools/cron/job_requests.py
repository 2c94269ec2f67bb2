"""Run a call of `cronjob`. Jobs, as it or the CLI asks for them, are planned, checked, described for approval, and saved."""

import json
import os
import time
from collections.abc import Callable, Collection, Sequence
from contextlib import closing
from typing import Any

from ...base.own_process import started_by_agent
from ...base.safe_text import unseen_in
from ...base.suggest import did_you_mean
from ...config.paths import state_dir
from ...core.builtin import registry
from ...core.outcome import tool_result
from ...core.registry import ToolRegistry
from ...errors import Denied, InvalidArguments, JobNotFound, ToolFailed, UnknownToolset
from ...protocols import Action, ActionKind
from ...settings.schema import Config
from ...store.jobs import Job, JobState, JobStore, Run, Work
from ...types import JsonDict, ToolContext
from .schedule import Schedule, first_run, local_zone, read_schedule, scheduler_pid, shown

STORE_NAME = "jobs.db"
MAX_PROMPT_CHARS = 8_000
USUAL_TOOLSETS = ("handrail-cron",)
_MAX_NAME_CHARS = 80
_EXCERPT_CHARS = 2_000
ToolsOf = Callable[[Sequence[str]], Collection[str]]
"""The names of the tools of toolsets. Raises UnknownToolset."""
_NEED_APPROVAL = ("create", "update", "remove")
_NO_SCHEDULER = "no scheduler is running, so no job runs; the user starts one with `handrail cron run`"


def open_jobs(config: Config) -> JobStore:
    """The user's jobs. To be closed."""
    settings = config.schedule
    return JobStore(state_dir() / STORE_NAME, max_jobs=settings.max_jobs, keep_runs=settings.keep_runs)


def planned(
    args: JsonDict, registry: ToolRegistry, before: Job | None, *, config: Config, cwd: str, tools_of: ToolsOf
) -> Job:
    """The job as a call would make or change it. Raises InvalidArguments. Nothing is written."""
    given = {name: value for name, value in args.items() if value is not None}
    now = time.time()
    work = _work(given, before.work if before else Work(cwd=cwd), registry)
    _check_can_run(work, config, tools_of)
    zone = str(given.get("timezone") or (before.timezone if before else usual_zone(config)))
    text = given.get("schedule") or (before.schedule if before else "")
    if not text:
        raise InvalidArguments("schedule is needed, such as '0 9 * * MON-FRI', '30m' or 'in 2h'")
    schedule = read_schedule(text, zone, now=now)
    state, next_run = (before.state, before.next_run) if before else (JobState.ACTIVE, None)
    if before is None or {"schedule", "timezone"} & given.keys():
        next_run = first_run(schedule, now)
        state = JobState.ACTIVE if state is JobState.FINISHED else state
    runs_left = 1 if schedule.once else given.get("repeat", _still_left(before, now))
    words = " ".join((work.prompt or work.tool).split())
    usual = before.name if before else words if len(words) <= 40 else f"{words[:39]}…"
    name = str(given.get("name") or usual)
    if len(name) > _MAX_NAME_CHARS or not name.isprintable() or not name.strip():
        raise InvalidArguments(f"a name has 1 to {_MAX_NAME_CHARS} printable characters")
    job = Job("", name, schedule.text, zone, work, state, next_run, runs_left=runs_left)
    return job._replace(id=before.id, requested=before.requested, created=before.created) if before else job


def question(action: str, job: Job) -> Action:
    """The question for the gate: all that the job will do, and when."""
    about = {name: value for name, value in described(job).items() if name not in ("job_id", "state")}
    lines = [f"{name}: {value if isinstance(value, str) else json.dumps(value)}" for name, value in about.items()]
    why = "removes a job" if action == "remove" else "runs later, repeatedly, when nobody watches"
    details = {"why": why, "rule": f"cron.{'remove' if action == 'remove' else 'write'}"}
    return Action(ActionKind.TOOL, "\n".join([f"{action} a job", *lines]), details=details)


def described(job: Job, runs: list[Run] | None = None, *, whole: bool = False) -> JsonDict:
    """A job as a model or a program sees it; `whole` with the output of its last runs."""
    about: JsonDict = {
        "job_id": job.id,
        "name": job.name,
        "state": job.state.value,
        "schedule": job.schedule,
        "timezone": job.timezone,
        "next_run": shown(job.next_run, job.timezone) if job.state is JobState.ACTIVE else "",
        "runs_left": job.runs_left,
        **job.work._asdict(),
    }
    about["arguments"], about["toolsets"] = dict(about["arguments"]), list(about["toolsets"] or ())
    about = {name: value for name, value in about.items() if value not in (None, "", {}, [])}
    if runs:
        about["runs"] = [_run_described(run, job.timezone, whole=whole) for run in runs]
    return about


def change(job: Job, action: str, now: float) -> Job:
    """Pause or resume. Runs that were due during a pause are skipped."""
    if job.state is JobState.FINISHED:
        raise InvalidArguments(f"{job.name} is finished; give it another schedule with update")
    if action == "pause":
        return job._replace(state=JobState.PAUSED)
    schedule = read_schedule(job.schedule, job.timezone, now=now)
    return job._replace(state=JobState.ACTIVE, next_run=first_run(schedule, now))


def save(job: Job, config: Config) -> Job:
    """Write a planned job: a new one gets its id here."""
    with closing(open_jobs(config)) as jobs:
        if not job.id:
            return jobs.add(job)
        jobs.update(job)
        return job


def _still_left(before: Job | None, now: float) -> int | None:
    """How often a changed job still runs. One that was to run once, or has no runs left, gets no limit with a new schedule."""
    if before is None or not before.runs_left:
        return None
    return None if read_schedule(before.schedule, before.timezone, now=now).once else before.runs_left


def _work(given: JsonDict, before: Work, registry: ToolRegistry) -> Work:
    changes: dict[str, Any] = {name: given[name] for name in Work._fields if name in given}
    if "prompt" in changes and "tool" in changes:
        raise InvalidArguments("give prompt for an agent, or tool with arguments; a job is one of them")
    if "prompt" in changes:
        changes |= {"tool": "", "arguments": {}}
    elif "tool" in changes:
        changes |= {"prompt": "", "arguments": given.get("arguments", {})}
    if "toolsets" in changes:
        changes["toolsets"] = tuple(changes["toolsets"])
    work = before._replace(**changes)
    if not work.prompt.strip() and not work.tool:
        raise InvalidArguments("say what to do: prompt for an agent, or tool with arguments")
    if work.tool:
        _check_tool(work, registry)
    texts = (work.prompt, json.dumps(dict(work.arguments), ensure_ascii=False), work.deliver, work.model)
    if found := next(filter(None, map(unseen_in, texts)), None):
        raise InvalidArguments(f"the job {found}; leave them out: the user must be able to see what it does")
    if max(map(len, texts)) > MAX_PROMPT_CHARS:
        raise InvalidArguments(f"a job's text has at most {MAX_PROMPT_CHARS:,} characters; put the rest into a file")
    return work


def _check_can_run(work: Work, config: Config, tools_of: ToolsOf) -> None:
    """Report now, while a user is there, what would fail at every run."""
    sets = USUAL_TOOLSETS if work.toolsets is None else work.toolsets
    try:
        tools = tools_of(sets)
    except UnknownToolset as error:
        raise InvalidArguments(str(error), argument="toolsets") from None
    if work.tool and work.tool not in tools:
        raise InvalidArguments(
            f"{work.tool} is not among the tools of the job: {', '.join(sets)}; name its toolset in toolsets",
            argument="toolsets",
        )
    targets = config.messages.targets
    if work.deliver and work.deliver not in targets:
        known = did_you_mean(work.deliver, targets) if targets else "none is configured: messages.targets"
        raise InvalidArguments(f"there is no target {work.deliver!r}; {known}", argument="deliver")


def _check_tool(work: Work, registry: ToolRegistry) -> None:
    if (entry := registry.get_entry(work.tool)) is None:
        raise InvalidArguments(f"unknown tool {work.tool!r}; {did_you_mean(work.tool, registry.get_all_tool_names())}")
    if entry.needs_agent or entry.toolset == "cronjob":
        raise InvalidArguments(f"{work.tool} cannot be a job of its own; give a prompt")
    if (problem := next(entry.contract.errors(dict(work.arguments)), None)) is not None:
        raise InvalidArguments(f"arguments for {work.tool}: {problem.message}")


def usual_zone(config: Config) -> str:
    return config.schedule.timezone or local_zone()


def _run_described(run: Run, zone: str, *, whole: bool) -> JsonDict:
    output = run.output if whole or len(run.output) <= _EXCERPT_CHARS else f"{run.output[:_EXCERPT_CHARS]}…"
    about = {
        "started": shown(run.started, zone),
        "state": run.state.value,
        "seconds": None if run.ended is None else round(run.ended - run.started, 1),
        "output": output,
        "error": run.error,
        "delivered": run.delivered,
    }
    return {name: value for name, value in about.items() if value not in (None, "")}


def times(schedule: Schedule, now: float, count: int) -> list[str]:
    found: list[str] = []
    at: float | None = now
    while at is not None and len(found) < count:
        if (at := schedule.next_after(at, since=now)) is not None:
            found.append(shown(at, schedule.zone))
    return found


def cronjob(args: JsonDict, *, context: ToolContext, **_: object) -> str:
    action, config = args["action"], context.config
    if action == "list":
        one = _meant(args, context) if args.get("job_id") else None
        with closing(open_jobs(config)) as jobs:
            jobs.mark_lost()
            chosen = jobs.all() if one is None else [one]
            found = [described(job, jobs.runs(job.id, limit=1 if one is None else 5)) for job in chosen]
        return tool_result(jobs=found, scheduler="runs" if scheduler_pid() else _NO_SCHEDULER)
    if started_by_agent():  # it would bypass approval
        why = "this process was started by one of its tools"
        raise Denied(f"an agent schedules with its tool, not from its own shell; {why}")
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
    notice = {} if scheduler_pid() else {"notice": _NO_SCHEDULER}
    return tool_result(job=described(job), **notice)


def _meant(args: JsonDict, context: ToolContext) -> Job:
    """The job that the call is about, as it will be after the call."""
    action, before = args["action"], None
    if action != "create":
        if not args.get("job_id"):
            raise InvalidArguments(f"{action} needs job_id; the action list shows them", argument="job_id")
        try:
            with closing(open_jobs(context.config)) as jobs:
                before = jobs.get(args["job_id"])
        except JobNotFound as error:
            raise InvalidArguments(str(error)) from None
        if action != "update":
            return before
    if context.tools is None:
        raise ToolFailed("this runtime has no toolsets; use the runtime's own dispatch")
    environments = context.environments
    is_here = environments is not None and environments.has_host_paths(context.task_id)
    cwd = environments.cwd(context.task_id) if environments is not None and is_here else os.getcwd()
    return planned(args, registry, before, config=context.config, cwd=cwd, tools_of=context.tools.names_of)


def actions(args: JsonDict, context: ToolContext) -> list[Action]:
    return [question(args["action"], _meant(args, context))] if args["action"] in _NEED_APPROVAL else []
