"""`handrail cron`: the real scheduler in a process of its own, killed and stopped."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing
from datetime import datetime
from pathlib import Path

import pytest

from handrail.errors import Denied, InvalidArguments, JobNotFound
from handrail.store.jobs import JobStore, Run, RunState
from tests.cli.conftest import Cli, run_here
from tests.environments.conftest import is_running
from tests.support import wait_until


@pytest.fixture
def jobs(home: Path) -> Iterator[JobStore]:
    with closing(JobStore(home / "state" / "jobs.db")) as store:
        yield store


def _add(command: str) -> str:
    number = run_here("cron", "add", "30m", "--tool", "terminal", "--arg", f"command={command}", "--json").json[
        "job_id"
    ]
    assert isinstance(number, str)
    return number


def _last(jobs: JobStore, job: str) -> Run | None:
    return next(iter(jobs.runs(job)), None)


def _ended(process: subprocess.Popen[bytes]) -> tuple[int, str]:
    _, err = process.communicate(timeout=60)
    return process.returncode, err.decode()


def test_a_job_is_added_run_once_shown_paused_and_removed(home: Path) -> None:
    tool = ("--tool", "terminal", "--arg", "command=echo made by the job", "--json")
    number = run_here("cron", "add", "in 0s", *tool).json["job_id"]
    due = datetime.fromisoformat(run_here("cron", "show", number).json["next_run"]).timestamp()
    wait_until(lambda: time.time() >= due)
    assert run_here("cron", "run", "--once").code == 0
    shown = run_here("cron", "show", number).json
    assert shown["state"] == "finished"
    assert "made by the job" in shown["runs"][0]["output"]
    other = run_here("cron", "add", "30m", *tool).json["job_id"]
    assert "paused" in run_here("cron", "pause", other).out
    assert "active, next" in run_here("cron", "resume", other).out
    listed = run_here("cron", "list")
    assert "no scheduler runs" in listed.err
    assert [line.split()[:2] for line in listed.out.splitlines()[1:]] == [[number, "finished"], [other, "active"]]
    assert run_here("cron", "remove", other).code == 0
    with pytest.raises(JobNotFound):
        run_here("cron", "show", other)


def test_what_never_fires_is_refused_and_what_fires_is_shown(home: Path) -> None:
    with pytest.raises(InvalidArguments, match="never happens"):
        run_here("cron", "add", "* * */20 * 1L", "Do it.")
    ran = run_here("cron", "next", "0 0 29 2 *", "--timezone", "UTC", "--count", "1")
    assert ran.out == "2028-02-29T00:00:00+00:00\n"


def test_there_is_one_scheduler_and_a_killed_one_leaves_a_run_that_is_found(cli: Cli, jobs: JobStore) -> None:
    ready = cli.cwd / "ready"
    number = _add(f"touch {ready}; sleep 300")
    with cli.start("cron", "run") as first:
        assert run_here("cron", "now", number).code == 0
        wait_until(ready.exists, timeout=60)
        refused = cli("cron", "run")
        assert (refused.code, f"process {first.pid}" in refused.err) == (1, True)
        assert cli("cron", "run", "--once").code == 0
        assert "no scheduler" not in run_here("cron", "list").err
        os.kill(first.pid, signal.SIGKILL)
        first.wait()
    run = _last(jobs, number)
    assert run is not None
    assert run.state is RunState.RUNNING
    with cli.start("cron", "run") as second:
        wait_until(lambda: (last := _last(jobs, number)) is not None and last.state is RunState.LOST, timeout=60)
        second.send_signal(signal.SIGTERM)
        code, err = _ended(second)
    assert code == 0
    assert "was lost" in err
    assert len(jobs.runs(number)) == 1


def test_a_scheduler_that_is_told_to_end_ends_what_runs(cli: Cli, jobs: JobStore) -> None:
    ready, pid = cli.cwd / "ready", cli.cwd / "pid"
    number = _add(f"echo $$ > {pid}; touch {ready}; sleep 300")
    with cli.start("cron", "run") as process:
        run_here("cron", "now", number)
        wait_until(ready.exists, timeout=60)
        process.send_signal(signal.SIGINT)
        assert _ended(process)[0] == 0
    run = _last(jobs, number)
    assert run is not None
    assert run.state is RunState.CANCELLED
    wait_until(lambda: not is_running(int(pid.read_text())))


def test_a_process_that_an_agent_started_cannot_schedule(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HANDRAIL_INSIDE", "1")
    for command in (("add", "30m", "Do it."), ("run", "--once"), ("now", "x"), ("resume", "x"), ("remove", "x")):
        with pytest.raises(Denied, match="an agent cannot"):
            run_here("cron", *command)
