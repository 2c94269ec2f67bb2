"""`cronjob` through the front door and the gate."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from handrail import model_tools
from handrail.config.store import load_config
from handrail.model_tools import handle_function_call
from handrail.protocols import Decision
from handrail.store.jobs import JobState, RunState
from handrail.testing import RecordingApprover
from handrail.tools.cron.job_requests import open_jobs

from ...support import error_in


@pytest.fixture
def yes(home: Path) -> RecordingApprover:
    approver = RecordingApprover([Decision.ONCE] * 20)
    model_tools.default().runtime.approver = approver
    return approver


def _call(action: str, **arguments: Any) -> dict[str, Any]:
    answer = json.loads(handle_function_call("cronjob", {"action": action, **arguments}))
    assert isinstance(answer, dict)
    return answer


def _jobs() -> list[str]:
    with closing(open_jobs(load_config())) as jobs:
        return [job.name for job in jobs.all()]


def test_a_job_is_made_after_a_person_saw_all_of_it(yes: RecordingApprover, home: Path) -> None:
    (home / "config.yaml").write_text("messages: {targets: {me: {kind: webhook, url: 'http://127.0.0.1:9/'}}}\n")
    model_tools.default().config = model_tools.default().runtime.config = load_config()
    made = _call("create", schedule="0 9 * * MON", timezone="Europe/Berlin", prompt="Water the plants.", deliver="me")
    job = made["job"]
    assert job["next_run"].endswith(("+01:00", "+02:00"))
    assert "handrail cron run" in made["notice"]
    shown = yes.requests[0]
    for part in ("Water the plants.", "0 9 * * MON", "Europe/Berlin", "deliver: me"):
        assert part in shown.text
    assert "nobody watches" in shown.reason
    listed = _call("list")
    assert [each["job_id"] for each in listed["jobs"]] == [job["job_id"]]


def test_where_nobody_can_be_asked_no_job_is_made(home: Path) -> None:
    assert _call("create", schedule="30m", prompt="x")["error_type"] == "denied"
    assert _jobs() == []


def test_a_job_is_updated_paused_resumed_run_and_removed(yes: RecordingApprover) -> None:
    number = _call("create", schedule="30m", tool="terminal", arguments={"command": "df"}, name="disk")["job"]["job_id"]
    changed = _call("update", job_id="disk", schedule="2h", repeat=3)["job"]
    assert (changed["schedule"], changed["runs_left"], changed["tool"]) == ("2h", 3, "terminal")
    assert _call("update", job_id=number, prompt="Look at the disk.")["job"].get("tool") is None
    assert _call("pause", job_id=number)["job"]["state"] == "paused"
    assert "next_run" not in _call("list")["jobs"][0]
    assert _call("resume", job_id=number)["job"]["state"] == "active"
    assert "error" not in _call("run", job_id=number)
    with closing(open_jobs(load_config())) as jobs:
        assert jobs.get(number).requested is not None
    before = len(yes.requests)
    assert _call("remove", job_id=number)["removed"] == number
    assert len(yes.requests) == before + 1
    assert _jobs() == []


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"schedule": "30m"}, "say what to do"),
        ({"prompt": "x"}, "schedule is needed"),
        ({"schedule": "30m", "prompt": "x", "tool": "terminal"}, "one of them"),
        ({"schedule": "30m", "tool": "terminl"}, "did you mean 'terminal'"),
        ({"schedule": "30m", "tool": "terminal"}, "command"),
        ({"schedule": "30m", "tool": "cronjob", "arguments": {"action": "list"}}, "cannot be a job"),
        ({"schedule": "30m", "tool": "todo"}, "cannot be a job"),
        ({"schedule": "* * */20 * 1L", "prompt": "x"}, "never happens"),
        ({"schedule": "0 0 30 2 *", "prompt": "x"}, "not a schedule"),
        ({"schedule": "30m", "prompt": "x", "timezone": "Mars/Olympus"}, "time zone"),
        ({"schedule": "30m", "prompt": "a\u200bb"}, "invisible"),
        ({"schedule": "30m", "prompt": "x" * 9000}, "8,000"),
        ({"schedule": "30m", "prompt": "x", "name": "a\nb"}, "name"),
        ({"schedule": "30m", "prompt": "x", "repeat": 0}, "repeat"),
        ({"schedule": "30m", "prompt": "x", "toolsets": ["webb"]}, "did you mean 'web'"),
        ({"schedule": "30m", "tool": "browser_back", "toolsets": ["web"]}, "not among the tools of the job: web"),
        ({"schedule": "30m", "prompt": "x", "deliver": "boss"}, "no target 'boss'"),
        ({"schedule": "30m", "prompt": "x", "missed": "never"}, "missed"),
    ],
)
def test_what_cannot_be_scheduled_is_said_before_anyone_is_asked(
    yes: RecordingApprover, arguments: dict[str, Any], said: str
) -> None:
    failed = error_in(handle_function_call("cronjob", {"action": "create", **arguments}))
    assert failed["error_type"] == "invalid_arguments"
    assert said in failed["error"]
    assert yes.requests == []
    assert _jobs() == []


def test_an_unknown_job_or_none_is_said(yes: RecordingApprover) -> None:
    assert "no job 'absent'" in _call("remove", job_id="absent")["error"]
    assert "needs job_id" in _call("pause")["error"]
    assert _call("list", job_id="absent")["error_type"] == "invalid_arguments"
    assert yes.requests == []


def test_a_process_that_an_agent_started_makes_no_job(yes: RecordingApprover, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HANDRAIL_INSIDE", "1")
    assert _call("create", schedule="30m", prompt="x")["error_type"] == "denied"
    assert _jobs() == []


def test_a_finished_job_goes_on_only_under_a_new_schedule(yes: RecordingApprover) -> None:
    number = _call("create", schedule="in 2h", prompt="x")["job"]["job_id"]
    with closing(open_jobs(load_config())) as jobs:
        job = jobs.get(number)
        assert job.runs_left == 1
        jobs.update(job._replace(state=JobState.FINISHED, next_run=None, runs_left=0))
    for action in ("pause", "resume"):
        assert "is finished" in _call(action, job_id=number)["error"]
    again = _call("update", job_id=number, schedule="30m")["job"]
    assert again["state"] == "active"
    assert "runs_left" not in again
    assert _call("update", job_id=number, repeat=2)["job"]["runs_left"] == 2
    assert _call("update", job_id=number, prompt="y")["job"]["runs_left"] == 2


def test_a_job_that_ran_shows_what_it_gave(yes: RecordingApprover) -> None:
    number = _call("create", schedule="30m", prompt="x")["job"]["job_id"]
    with closing(open_jobs(load_config())) as jobs:
        job = jobs.get(number)
        run = jobs.begin(job, job, now=1_790_000_000)
        assert run is not None
        jobs.end(run.id, RunState.OK, output="word " * 1000, delivered="sent to me")
    (shown,) = _call("list", job_id=number)["jobs"][0]["runs"]
    assert (shown["state"], shown["delivered"]) == ("ok", "sent to me")
    assert len(shown["output"]) == 2001
