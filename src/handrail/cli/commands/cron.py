"""Run jobs at set times, and see how they went.

Examples:
  handrail cron add '0 9 * * MON-FRI' 'Summarise the new issues.'
  handrail cron add 30m --tool terminal --arg command='df -h /'
  handrail cron list
  handrail cron run
"""

import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Annotated

from ...config.store import load_config
from ...errors import InvalidArguments, SchedulerRuns
from ...runtime.arguments import prepare
from ...scheduler.loop import Runner, Scheduler
from ...store.jobs import Job, JobStore
from ...tools.cron.job_requests import change, described, open_jobs, planned, save, times, usual_zone
from ...tools.cron.schedule import as_scheduler, first_run, read_schedule, scheduler_pid, shown
from ...types import CancelToken, JsonDict
from ..options import Exit, Json, Timeout, Toolsets, argument, new_cli, option
from ..output import ExitCode, as_typed, emit, emit_either, emit_json, emit_table, note, say, visible
from ..runtime import handling, open_runtime
from .call import read_arguments

cli = new_cli()
_NO_SCHEDULER = "no scheduler runs, so your jobs do not run; start `handrail cron run` or `handrail serve`"
JobName = Annotated[str, argument("JOB", "A job's id or name.", show_default=False)]
Zone = Annotated[str, option("--timezone ZONE", "Such as Europe/Berlin; default: the machine's own.")]
Schedule = Annotated[str, argument("SCHEDULE", "A schedule, such as '0 9 * * MON-FRI'.")]
Count = Annotated[int, option("--count N", "How many times to show.", min=1, max=100)]


@cli.command()
def run(once: Annotated[bool, option("--once", "Run what is due now and exit, for a system timer.")] = False) -> None:
    """Be the scheduler: run each job when it is due, until interrupted.

    There is one scheduler at a time. Nobody is asked while a job runs: what would need approval is denied, unless
    config.yaml allows it. A run that was cut off by the end of a scheduler is marked as lost, and not repeated.

    Exit codes: 0 ok, 1 another scheduler runs already (with --once that is 0).
    """
    app, stop = open_runtime(), CancelToken()
    # Told to end, the scheduler ends what runs first.
    ends = handling(lambda *_: stop.cancel("the scheduler was stopped"), signal.SIGINT, signal.SIGTERM)
    try:
        with as_scheduler(), closing(open_jobs(app.config)) as jobs, ends:
            scheduler = Scheduler(
                jobs, Runner(app), app.config.schedule, on_event=lambda line: note(f"{time.strftime('%F %T')} {line}")
            )
            if once:
                scheduler.run_once(stop)
            else:
                note(f"the scheduler runs; {len(jobs.all())} jobs")
                scheduler.run_until(stop)
                note(("\n" if sys.stderr.isatty() else "") + "The scheduler has stopped.")  # below the ^C
    except SchedulerRuns as error:
        say(str(error))
        raise Exit(ExitCode.OK if once else ExitCode.FAILED) from None


@cli.command()
def add(
    schedule: Annotated[str, argument("SCHEDULE", "When: '0 9 * * MON-FRI', 30m, 'in 2h', 2026-12-24T18:00.")],
    prompt: Annotated[str, argument("PROMPT", "What the agent should do.")] = "",
    tool: Annotated[str, option("--tool NAME", "Instead of a prompt: a tool to call.")] = "",
    arg: Annotated[list[str] | None, option("--arg NAME=VALUE", "An argument for the tool.")] = None,
    name: Annotated[str, option("--name NAME", "What to call the job.")] = "",
    timezone: Zone = "",
    toolset: Toolsets = None,
    deliver: Annotated[str, option("--deliver TARGET", "Where to send the output.")] = "",
    missed: Annotated[
        str, option("--missed once|skip", "Catch up once on runs that were missed, or skip them.")
    ] = "once",
    repeat: Annotated[int | None, option("--repeat N", "How often it runs in all; default: forever.", min=1)] = None,
    timeout: Timeout = None,
    as_json: Json = False,
) -> None:
    """Add a job, for an agent or for one tool, that runs in this folder.

    Examples:
      handrail cron add '0 9 * * MON-FRI' 'Summarise the new issues.'
      handrail cron add 30m --tool terminal --arg command='df -h /' --name disk
    """
    if missed not in ("once", "skip"):
        raise InvalidArguments(f"--missed is once or skip, not {missed!r}")
    app = open_runtime()
    registry = app.runtime.registry
    arguments: JsonDict = read_arguments(arg) if tool and arg else {}
    if (entry := registry.get_entry(tool)) is not None:  # text where it is text, fitted to what the tool takes
        arguments = prepare(entry.contract, arguments)
    given: JsonDict = {"schedule": schedule, "prompt": prompt or None, "name": name, "timezone": timezone}
    given |= {"tool": tool or None, "arguments": arguments if tool else None}
    given |= {"toolsets": toolset, "deliver": deliver, "missed": missed, "repeat": repeat, "timeout": timeout}
    job = planned(given, registry, None, config=app.config, cwd=os.getcwd(), tools_of=app.toolsets.select)
    _print(save(job, app.config), as_json=as_json)
    pid = scheduler_pid()
    say(f"the scheduler runs (process {pid})" if pid else as_typed(_NO_SCHEDULER))


@cli.command("list")
def list_jobs(as_json: Json = False) -> None:
    """List the jobs, when each runs next, and how its last run went."""
    with closing(open_jobs(load_config())) as jobs:
        jobs.mark_lost()
        found = [(job, jobs.runs(job.id, limit=1)) for job in jobs.all()]
    rows = []
    for job, runs in found:
        last = f"{runs[0].state.value} {shown(runs[0].started, job.timezone)}" if runs else ""
        due = shown(job.next_run, job.timezone) if job.state.value == "active" else ""
        rows.append((job.id, job.state.value, job.schedule, due, last, visible(job.name)))
    empty = "No jobs. `handrail cron add '0 9 * * *' 'what to do'` adds one for every morning at nine."
    headers = ("ID", "STATE", "SCHEDULE", "NEXT", "LAST", "NAME")
    views = [described(job, runs) for job, runs in found]
    emit_table(headers, rows, views, as_json=as_json, wide=5, empty=empty)
    if rows and not as_json and not scheduler_pid():
        say(as_typed(_NO_SCHEDULER))


@cli.command()
def show(job: JobName) -> None:
    """Show a job and its last runs, with their results."""
    with _opened(job) as (jobs, found):
        jobs.mark_lost()
        emit_json(described(found, jobs.runs(found.id, limit=20), whole=True))


@cli.command("next")
def upcoming(schedule: Schedule, timezone: Zone = "", count: Count = 5) -> None:
    """Show when a schedule would run, without making a job."""
    now = time.time()
    read = read_schedule(schedule, timezone or usual_zone(load_config()), now=now)
    first_run(read, now)
    for at in times(read, now, count):
        emit(at)


@cli.command()
def pause(job: JobName) -> None:
    """Keep a job from running until it is resumed."""
    _change(job, "pause")


@cli.command()
def resume(job: JobName) -> None:
    """Let a paused job run again, from its next time on."""
    _change(job, "resume")


@cli.command()
def now(job: JobName) -> None:
    """Run a job once, as soon as the scheduler polls."""
    with _opened(job) as (jobs, found):
        jobs.request(found.id)
    emit(f"{found.id} runs when the scheduler polls next")


@cli.command()
def remove(job: JobName) -> None:
    """Remove a job, with the records of its runs."""
    with _opened(job) as (jobs, found):
        jobs.remove(found.id)
    emit(f"{found.id} is removed")


@contextmanager
def _opened(job: str) -> Iterator[tuple[JobStore, Job]]:
    with closing(open_jobs(load_config())) as jobs:
        yield jobs, jobs.get(job)


def _change(name: str, action: str) -> None:
    with _opened(name) as (jobs, found):
        changed = change(found, action, time.time())
        jobs.update(changed)
    _print(changed, as_json=False)


def _print(job: Job, *, as_json: bool) -> None:
    about = described(job)
    following = f", next {about['next_run']}" if "next_run" in about else ""
    emit_either(about, f"{job.id} {about['state']}{following}", as_json=as_json)
