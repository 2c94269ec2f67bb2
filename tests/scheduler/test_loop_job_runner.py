"""How one job is run: real tools, a real agent with a scripted server for a model, and nobody to say yes."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from handrail import model_tools
from handrail.app import Handrail
from handrail.core.registry import ToolRegistry
from handrail.model_tools import default
from handrail.scheduler.loop import Runner
from handrail.store.jobs import Job, JobState, RunState, Work
from handrail.store.sessions import SessionStore
from handrail.testing import ModelReply, call
from handrail.testing.model_server import ModelServer
from handrail.types import CancelToken

from ..platforms.conftest import Posted
from ..support import configure


def _job(**work: Any) -> Job:
    return Job("0badcafe", "the job", "30m", "UTC", Work(**work), JobState.ACTIVE, None, None, None, 0.0)


def _run(here: Handrail, **work: Any) -> Any:
    return Runner(here)(_job(**work), CancelToken())


def _config(home: Path, text: str) -> Handrail:
    configure(home, text)
    model_tools.reset()
    return default()


def test_a_tool_is_called_in_the_jobs_folder(tmp_path: Path, home: Path) -> None:
    (tmp_path / "here").mkdir()
    ended = _run(default(), tool="terminal", arguments={"command": "pwd"}, cwd=str(tmp_path / "here"))
    assert ended.state is RunState.OK
    assert json.loads(ended.output)["output"].strip() == str(tmp_path / "here")


def test_a_call_that_fails_is_a_failed_run(home: Path, tmp_path: Path) -> None:
    ended = _run(default(), tool="read_file", arguments={"path": str(tmp_path / "absent")})
    assert ended.state is RunState.FAILED
    assert "absent" in ended.error
    assert "does not exist any more" in _run(default(), tool="terminal", cwd=str(tmp_path / "gone")).error


@pytest.mark.parametrize("settings", ["", "approvals:\n  mode: 'off'\n", "approvals:\n  headless: queue\n"])
def test_what_would_ask_is_denied_whatever_the_mode(home: Path, tmp_path: Path, settings: str) -> None:
    kept = tmp_path / "kept"
    kept.mkdir()
    here = _config(home, settings)
    command = {"command": f"rm -rf {kept}"}
    ended = _run(here, tool="terminal", arguments=command, cwd=str(tmp_path))
    assert ended.state is RunState.FAILED
    assert kept.exists()


def test_what_the_user_allowed_by_name_passes(home: Path, tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    here = _config(home, f"approvals:\n  allow: ['rm -rf {gone}']\n")
    assert _run(here, tool="terminal", arguments={"command": f"rm -rf {gone}"}).state is RunState.OK
    assert not gone.exists()


def test_a_job_has_only_its_own_tools_and_never_the_one_that_makes_jobs(home: Path) -> None:
    ended = _run(default(), tool="terminal", arguments={"command": "true"}, toolsets=("web",))
    assert "not among the tools of this job" in ended.error
    ended = _run(default(), tool="cronjob", arguments={"action": "list"}, toolsets=("all",))
    assert "not among the tools of this job" in ended.error
    here = _config(home, "schedule:\n  jobs_may_schedule: true\n")
    assert _run(here, tool="cronjob", arguments={"action": "list"}, toolsets=("all",)).state is RunState.OK


def test_a_run_that_is_cancelled_says_why(home: Path) -> None:
    cancel = CancelToken()
    cancel.cancel("it was not done after 1 seconds", timed_out=True)
    ended = Runner(default())(_job(tool="terminal", arguments={"command": "sleep 60"}), cancel)
    assert ended.state is RunState.TIMEOUT
    assert "1 seconds" in ended.error


# An agent


def _asking(server: ModelServer, home: Path) -> Handrail:
    return _config(home, f"model:\n  name: scripted\n  base_url: {server.base_url}\n")


def test_an_agent_does_what_the_prompt_says(home: Path, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("seven")
    looked = ModelReply("", [call("terminal", command="cat a.txt")])
    with ModelServer([looked, ModelReply("It says seven.")]) as model:
        ended = _run(_asking(model, home), prompt="What does a.txt say?", cwd=str(tmp_path))
    assert (ended.state, ended.output) == (RunState.OK, "It says seven.")
    assert "seven" in json.dumps(model.requests[1])
    with closing(SessionStore(home / "state" / "sessions.db")) as sessions:
        assert [session.platform for session in sessions.recent(limit=5)] == ["cron"]


def test_an_agents_run_is_not_given_the_tool_that_makes_jobs_and_cannot_call_it(home: Path, tmp_path: Path) -> None:
    wanted = call("cronjob", action="create", schedule="1m", prompt="again")
    with ModelServer([ModelReply("", [wanted]), ModelReply("I could not.")]) as model:
        ended = _run(_asking(model, home), prompt="Do it again and again.", cwd=str(tmp_path))
    assert ended.output == "I could not."
    assert "cronjob" not in [tool["function"]["name"] for tool in model.requests[0]["tools"]]
    assert "not one of your tools" in json.dumps(model.requests[1]["messages"][-1])
    assert not (home / "state" / "jobs.db").exists()


def test_without_a_model_the_run_says_what_to_do(home: Path) -> None:
    ended = _run(default(), prompt="Hello?")
    assert ended.state is RunState.FAILED
    assert "no model is configured" in ended.error


# Delivery


@pytest.fixture
def me(posted: Posted, target: Callable[..., None]) -> Posted:
    """A target `me`, which is a server of ours."""
    target("me", kind="webhook", url=f"{posted.url}/in")
    model_tools.reset()
    return posted


def test_what_a_run_gave_is_delivered_failures_too(me: Posted) -> None:
    ended = _run(default(), tool="terminal", arguments={"command": "echo hello"}, deliver="me")
    assert ended.delivered == "sent to me"
    _run(default(), tool="read_file", arguments={"path": "/proc/nowhere"}, deliver="me")
    worked, failed = me.bodies()
    assert worked["subject"] == "the job"
    assert "hello" in worked["text"]
    assert failed["text"].startswith("[failed]")


def test_a_message_that_cannot_be_sent_does_not_make_the_run_fail(me: Posted) -> None:
    for name in ("nowhere", "me"):
        me.answers.append((400, {"error": "no"}))
        ended = _run(default(), tool="terminal", arguments={"command": "echo hello"}, deliver=name)
        assert ended.state is RunState.OK
        assert ended.delivered.startswith(f"not sent to {name}: ")


def test_without_the_tool_that_sends_it_is_noted(default_registry: ToolRegistry, home: Path) -> None:
    here = default()
    default_registry.deregister("send_message")
    ended = _run(here, tool="terminal", arguments={"command": "echo hello"}, deliver="me")
    assert ended.state is RunState.OK
    assert "send_message is missing" in ended.delivered
