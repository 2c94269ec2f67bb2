"""Jobs on disk: shared by processes, begun exactly once, and honest about what was cut off."""

from __future__ import annotations

import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

from handrail.errors import JobNotFound, StoreError
from handrail.store.jobs import Job, JobState, JobStore, RunState, Work

from ..support import in_threads


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "jobs.db"


def _add(jobs: JobStore, name: str = "disk", next_run: float = 100.0) -> str:
    work = Work(tool="terminal", arguments={"command": "df"}, toolsets=("terminal",), timeout=5)
    return jobs.add(Job("", name, "30m", "UTC", work, next_run=next_run)).id


def test_a_job_comes_back_as_it_was_written(path: Path) -> None:
    with closing(JobStore(path)) as jobs:
        number = _add(jobs)
    with closing(JobStore(path)) as jobs:
        job = jobs.get("disk")
        assert job == jobs.get(number)
        assert job.work == Work(tool="terminal", arguments={"command": "df"}, toolsets=("terminal",), timeout=5)
        jobs.update(job._replace(name="other", state=JobState.PAUSED))
        assert jobs.all()[0].state is JobState.PAUSED
        with pytest.raises(JobNotFound, match="did you mean 'other'"):
            jobs.get("othr")
        jobs.remove(number)
        with pytest.raises(JobNotFound, match="removed"):
            jobs.update(job)


def test_two_jobs_of_one_name_are_told_apart_by_id(path: Path) -> None:
    with closing(JobStore(path)) as jobs:
        first, _ = _add(jobs), _add(jobs)
        assert jobs.get(first).id == first
        with pytest.raises(JobNotFound, match="2 jobs"):
            jobs.get("disk")


def test_there_are_only_so_many_jobs(path: Path) -> None:
    with closing(JobStore(path, max_jobs=2)) as jobs:
        _add(jobs), _add(jobs)
        with pytest.raises(StoreError, match="the maximum"):
            _add(jobs)


def test_of_many_who_begin_a_run_one_does(path: Path) -> None:
    with closing(JobStore(path)) as jobs:
        _add(jobs)
        job = jobs.due(200)[0]

    def begin(_: int) -> bool:
        with closing(JobStore(path)) as mine:
            return mine.begin(job, job._replace(next_run=300), now=200) is not None

    assert sum(in_threads(8, begin)) == 1
    with closing(JobStore(path)) as jobs:
        assert jobs.due(400) == []  # it still runs
        run = jobs.runs(job.id)[0]
        assert (run.state, run.due) == (RunState.RUNNING, 100.0)
        jobs.end(run.id, RunState.OK, output="fine")
        assert jobs.runs(job.id)[0].output == "fine"
        assert [each.next_run for each in jobs.due(400)] == [300]


def test_only_so_many_runs_are_remembered(path: Path) -> None:
    with closing(JobStore(path, keep_runs=3)) as jobs:
        number = _add(jobs)
        for at in range(200, 210):
            job = jobs.get(number)
            run = jobs.begin(job, job._replace(next_run=float(at)), now=at)
            assert run is not None
            jobs.end(run.id, RunState.OK, output=str(at))
        assert [run.output for run in jobs.runs(number, limit=50)] == ["209", "208", "207"]


def test_a_run_whose_process_was_killed_is_found_and_marked(path: Path) -> None:
    code = (
        "import sys, time\nfrom pathlib import Path\nfrom handrail.store.jobs import Job, JobStore, Work\n"
        "jobs = JobStore(Path(sys.argv[1]))\n"
        "job = jobs.add(Job('', 'a', '30m', 'UTC', Work(prompt='x'), next_run=1.0))\n"
        "jobs.begin(job, job._replace(next_run=2.0), now=1.0)\nprint('begun', flush=True)\ntime.sleep(600)\n"
    )
    process = subprocess.Popen([sys.executable, "-c", code, str(path)], stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"begun\n"
    with closing(JobStore(path)) as jobs:
        assert jobs.mark_lost() == []
        process.kill()
        process.wait()
        process.stdout.close()
        lost = jobs.mark_lost()
        assert [run.state for run in lost] == [RunState.LOST]
        assert lost[0].ended is not None
        assert abs(lost[0].ended - time.time()) < 60
        assert jobs.mark_lost() == []
        assert [job.next_run for job in jobs.due(5)] == [2.0]
