"""Scheduled jobs and their runs, in a file that the scheduler and everything that creates jobs share. Times are seconds since
1970. The caller computes when a job is due next; it is only stored here."""

import json
import secrets
import time
from collections.abc import Mapping
from enum import Enum
from pathlib import Path
from typing import Any, NamedTuple

from ..base.own_process import has_exited, runtime_id
from ..base.suggest import did_you_mean
from ..errors import JobNotFound, StoreError
from .database import Database, reading_entry


class JobState(Enum):
    ACTIVE = "active"
    PAUSED = "paused"
    FINISHED = "finished"  # it has run as often as it was to


class RunState(Enum):
    RUNNING = "running"
    OK = "ok"
    FAILED = "failed"
    TIMEOUT = "timeout"
    CANCELLED = "cancelled"
    MISSED = "missed"  # no scheduler ran when it was due, and the job skips such runs
    LOST = "lost"  # the scheduler was killed while it ran


class Work(NamedTuple):
    """What a job does: an agent gets `prompt`, or `tool` is called."""

    prompt: str = ""
    tool: str = ""
    arguments: Mapping[str, Any] = {}
    toolsets: tuple[str, ...] | None = None
    deliver: str = ""
    missed: str = "once"
    timeout: float | None = None
    model: str = ""
    cwd: str = ""


class Job(NamedTuple):
    """`requested`: when a run outside the schedule was requested. `runs_left` None: no limit. The id is empty until it is
    added."""

    id: str
    name: str
    schedule: str
    timezone: str
    work: Work
    state: JobState = JobState.ACTIVE
    next_run: float | None = None
    requested: float | None = None
    runs_left: int | None = None
    created: float = 0.0


class Run(NamedTuple):
    """`delivered` says where the output went, or why it did not."""

    id: int
    job: str
    due: float
    started: float
    ended: float | None
    state: RunState
    output: str
    error: str
    delivered: str
    owner: str


class JobStore:
    """Threads and processes may share it. `path` None keeps it in memory."""

    def __init__(self, path: Path | None = None, *, max_jobs: int = 200, keep_runs: int = 20) -> None:
        self._database = Database(path, Path(__file__).with_suffix(".sql"), durable=True)
        self._max_jobs, self._keep_runs = max_jobs, keep_runs

    def close(self) -> None:
        self._database.close()

    def add(self, job: Job) -> Job:
        """The job with its id. Raises StoreError when the maximum number of jobs is reached."""
        job = job._replace(id=secrets.token_hex(4), created=time.time())
        with self._database.transaction() as connection:
            count = connection.execute("SELECT count(*) FROM jobs").fetchone()[0]
            if count >= self._max_jobs:
                raise StoreError(f"there are {count} jobs, the maximum; remove some, or raise schedule.max_jobs")
            values = (*job[:4], json.dumps(job.work._asdict()), job.state.value, *job[6:])
            connection.execute(f"INSERT INTO jobs VALUES ({', '.join('?' * len(values))})", values)
        return job

    def all(self) -> list[Job]:
        """The oldest first."""
        return [_job(row) for row in self._database.rows("SELECT * FROM jobs ORDER BY created, id")]

    def get(self, name: str) -> Job:
        """By its id or its name. Raises JobNotFound."""
        rows = self._database.rows("SELECT * FROM jobs WHERE id = ? OR name = ?", (name, name))
        exact = [row for row in rows if row["id"] == name] or rows
        if len(exact) > 1:
            raise JobNotFound(f"{len(exact)} jobs are called {name!r}; use the id")
        if not exact:
            known = [each for job in self.all() for each in (job.id, job.name)]
            raise JobNotFound(f"no job {name!r}; {did_you_mean(name, known)}")
        return _job(exact[0])

    def update(self, job: Job) -> None:
        """Write everything but whether a run was requested. Raises JobNotFound when the job is gone."""
        names = "name = ?, schedule = ?, timezone = ?, work = ?, state = ?, next_run = ?, runs_left = ?"
        written = (*job[1:4], json.dumps(job.work._asdict()), job.state.value, job.next_run, job.runs_left)
        if not self._database.change(f"UPDATE jobs SET {names} WHERE id = ?", (*written, job.id)):
            raise JobNotFound(f"no job {job.id}: it was removed")

    def request(self, job_id: str) -> None:
        """Request one run at the scheduler's next poll, whatever the schedule says."""
        self._database.change("UPDATE jobs SET requested = ? WHERE id = ?", (time.time(), job_id))

    def remove(self, job_id: str) -> None:
        """Remove the job and its runs."""
        with self._database.transaction() as connection:
            connection.execute("DELETE FROM jobs WHERE id = ?", (job_id,))
            connection.execute("DELETE FROM runs WHERE job = ?", (job_id,))

    def due(self, now: float) -> list[Job]:
        """The jobs that are due and not running, the longest due first."""
        rows = self._database.rows(
            "SELECT * FROM jobs WHERE (requested IS NOT NULL OR (state = 'active' AND next_run <= ?)) "
            "AND id NOT IN (SELECT job FROM runs WHERE state = 'running') ORDER BY coalesce(requested, next_run)",
            (now,),
        )
        return [_job(row) for row in rows]

    def later(self, than: float) -> list[Job]:
        """The active jobs that are due after this."""
        rows = self._database.rows("SELECT * FROM jobs WHERE state = 'active' AND next_run > ?", (than,))
        return [_job(row) for row in rows]

    def begin(self, job: Job, after: Job, *, state: RunState = RunState.RUNNING, now: float) -> Run | None:
        """Record that a run starts, with the job as it is from then on. None when the job has changed since it was read, or
        is running: exactly one caller starts a run."""
        due = job.requested if job.requested is not None else job.next_run
        ended = None if state is RunState.RUNNING else now
        as_read = (job.id, job.state.value, job.next_run, job.requested)
        with self._database.transaction() as connection:
            changed = connection.execute(
                "UPDATE jobs SET state = ?, next_run = ?, requested = NULL, runs_left = ? WHERE id = ? AND state = ? "
                "AND next_run IS ? AND requested IS ? AND id NOT IN (SELECT job FROM runs WHERE state = 'running')",
                (after.state.value, after.next_run, after.runs_left, *as_read),
            ).rowcount
            if not changed:
                return None
            names = "job, due, started, ended, state, output, error, delivered, owner"
            values = (job.id, due, now, ended, state.value, "", "", "", runtime_id())
            query = f"INSERT INTO runs ({names}) VALUES ({', '.join('?' * len(values))})"
            number = connection.execute(query, values).lastrowid
            latest = "SELECT id FROM runs WHERE job = ? ORDER BY id DESC LIMIT ?"
            query = f"DELETE FROM runs WHERE job = ? AND state != 'running' AND id NOT IN ({latest})"
            connection.execute(query, (job.id, job.id, self._keep_runs))
        return self.run(int(number or 0))

    def end(self, run_id: int, state: RunState, *, output: str = "", error: str = "", delivered: str = "") -> None:
        names = "state = ?, ended = ?, output = ?, error = ?, delivered = ?"
        values = (state.value, time.time(), output, error, delivered, run_id)
        self._database.change(f"UPDATE runs SET {names} WHERE id = ? AND state = 'running'", values)

    def mark_lost(self) -> list[Run]:
        """Mark the runs whose scheduler has exited as lost. They are not repeated: nobody knows how far they got."""
        rows = self._database.rows("SELECT * FROM runs WHERE state = 'running'")
        lost = [_run(row) for row in rows if has_exited(row["owner"])]
        for run in lost:
            self.end(run.id, RunState.LOST, error="the scheduler exited while it ran; how far it got is not known")
        return [self.run(run.id) for run in lost]

    def run(self, run_id: int) -> Run:
        """Raises JobNotFound."""
        rows = self._database.rows("SELECT * FROM runs WHERE id = ?", (run_id,))
        if not rows:
            raise JobNotFound(f"no run {run_id}")
        return _run(rows[0])

    def runs(self, job_id: str, *, limit: int = 5) -> list[Run]:
        """The latest first."""
        rows = self._database.rows("SELECT * FROM runs WHERE job = ? ORDER BY id DESC LIMIT ?", (job_id, limit))
        return [_run(row) for row in rows]


def _job(row: Any) -> Job:
    with reading_entry(f"the job {row['id']!r}"):
        fields = {name: row[name] for name in Job._fields}
        work = json.loads(fields["work"])
        work["toolsets"] = None if work["toolsets"] is None else tuple(work["toolsets"])
        return Job(**{**fields, "work": Work(**work), "state": JobState(fields["state"])})


def _run(row: Any) -> Run:
    return Run(**{name: row[name] for name in Run._fields if name != "state"}, state=RunState(row["state"]))
