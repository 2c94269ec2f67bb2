"""Rollouts: real agents with a scripted model, in sandboxes, started and looked at by the tools."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from handrail.base.own_process import has_exited, pid_of
from handrail.model_tools import default, handle_function_call
from handrail.protocols import Decision
from handrail.store.ledger import work_folder
from handrail.testing import ModelReply, RecordingApprover, call
from handrail.testing.model_server import Fault, ModelServer
from handrail.tools.rollouts.runs import open_runs
from tests.services.docker import Docker
from tests.support import error_in, wait_until

ENVIRONMENT = '''"""Write a number into a file."""
TASKS = [{"id": "one", "prompt": "Write 1 into a file n.", "wanted": "1", "files": {"hint.txt": "it is 1"}},
         {"id": "two", "prompt": "Write 2 into a file n.", "wanted": "2"}]


def reward(task, rollout):
    assert rollout.run("cat n")[1].strip() == rollout.read("n").strip()
    return 1.0 if rollout.read("n").strip() == task["wanted"] else 0.0
'''


@pytest.fixture
def server(home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModelServer]:
    with ModelServer() as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        monkeypatch.setenv("OPENAI_API_KEY", "a key")
        monkeypatch.setenv("HANDRAIL_MODEL", "scripted")
        yield server


def _environment(home: Path, text: str = ENVIRONMENT) -> None:
    folder = home / "rl_environments"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "numbers.py").write_text(text)


def _call(tool: str, /, **arguments: Any) -> Any:
    answer = json.loads(handle_function_call(tool, arguments))  # type: ignore[arg-type]
    assert "error_type" not in answer, answer
    return answer


def _begin(**plan: Any) -> str:
    default().runtime.approver = RecordingApprover([Decision.ONCE])
    run_id = str(_call("rl_configure", environment="numbers", **plan)["run_id"])
    _call("rl_start", run_id=run_id)
    return run_id


def _status(run_id: str) -> Any:
    return _call("rl_status", run_id=run_id)["runs"][0]


def _wait_for_the_process(run_id: str) -> None:
    with closing(open_runs()) as store:
        owner = store.get(run_id).owner
    wait_until(lambda: has_exited(owner), timeout=30)


def _over(run_id: str) -> Any:
    wait_until(lambda: _status(run_id)["state"] not in ("running", "stopping"), timeout=60)
    _wait_for_the_process(run_id)
    return _call("rl_results", run_id=run_id)


def _writes(messages: Any, tools: Any) -> ModelReply:
    """As the task says: the number stands in what the person said."""
    said = next(message["content"] for message in messages if message["role"] == "user")
    number = "1" if "Write 1" in str(said) else "7"
    return ModelReply(tool_calls=[call("terminal", command=f"echo {number} > n")])


def test_agents_are_tried_and_scored_and_their_trajectories_kept(home: Path, server: ModelServer) -> None:
    _environment(home)
    (listed,) = _call("rl_list_environments")["environments"]
    assert (listed["name"], listed["about"]) == ("numbers", "Write a number into a file.")
    server.say(_writes, ModelReply("done"), _writes, ModelReply("done"))
    results = _over(_begin(parallel=1))
    assert results["state"] == "done"
    assert results["tasks"] == {"one": 1.0, "two": 0.0}
    assert results["mean_reward"] == 0.5
    lines = [json.loads(line) for line in Path(results["trajectories"]).read_text().splitlines()]
    assert [line["reward"] for line in lines] == [1.0, 0.0]
    assert [turn["from"] for turn in lines[0]["conversations"]] == ["human", "gpt", "tool", "gpt"]


def test_they_run_in_containers_of_their_own(
    home: Path, server: ModelServer, docker_service: Docker, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in docker_service.env.items():
        monkeypatch.setenv(name, value)
    _environment(home)
    server.say(
        ModelReply(tool_calls=[call("terminal", command="cat hint.txt; hostname")]),
        _writes,
        ModelReply("done"),
        _writes,
        ModelReply("done"),
    )
    results = _over(_begin(parallel=1, backend=f"docker:{docker_service.image}"))
    assert results["tasks"] == {"one": 1.0, "two": 0.0}, results
    seen = Path(results["trajectories"]).read_text()
    assert "it is 1" in seen
    assert os.uname().nodename not in seen


def test_a_start_asks_and_nobody_there_means_no(home: Path, server: ModelServer) -> None:
    _environment(home)
    run_id = _call("rl_configure", environment="numbers")["run_id"]
    assert error_in(handle_function_call("rl_start", {"run_id": run_id}))["error_type"] == "denied"
    assert _status(run_id)["state"] == "planned"


def test_a_reward_that_crashes_costs_only_its_own_rollout(home: Path, server: ModelServer) -> None:
    crash = ENVIRONMENT.replace("    return 1.0", "    if task['wanted'] == '2':\n        1 / 0\n    return 1.0")
    _environment(home, crash)
    server.say(_writes, ModelReply("done"), _writes, ModelReply("done"))
    results = _over(_begin(parallel=1))
    assert results["tasks"] == {"one": 1.0}
    assert "ZeroDivisionError" in results["each"][1]["error"]


def test_a_reward_that_never_ends_costs_only_its_own_rollout(home: Path, server: ModelServer) -> None:
    (home / "config.yaml").write_text("rollouts:\n  reward_timeout: 3\n")
    endless = "    if task['wanted'] == '2':\n        import time\n        time.sleep(3600)\n    return 1.0"
    _environment(home, ENVIRONMENT.replace("    return 1.0", endless))
    server.say(_writes, ModelReply("done"), _writes, ModelReply("done"))
    results = _over(_begin(parallel=1))
    assert (results["state"], results["tasks"]) == ("done", {"one": 1.0})
    assert results["each"][1]["error"] == "reward timed out after 3 s"


def test_a_package_offers_an_environment(
    home: Path, server: ModelServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "packaged_numbers.py").write_text(ENVIRONMENT)
    info = tmp_path / "packaged_numbers-1.dist-info"
    info.mkdir()
    (info / "entry_points.txt").write_text("[handrail.rl_environments]\nnumbers = packaged_numbers\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    assert [each["name"] for each in _call("rl_list_environments")["environments"]] == ["numbers"]
    server.say(_writes, ModelReply("done"))
    assert _over(_begin(tasks=1))["tasks"] == {"one": 1.0}


def test_a_model_that_never_answers_ends_with_its_time(home: Path, server: ModelServer) -> None:
    _environment(home)
    server.say(Fault(hang=60))
    (rollout,) = _over(_begin(tasks=1, timeout=1.5))["each"]
    assert rollout["ended_by"] == "time"
    assert "FileNotFoundError" in rollout["error"]


def test_a_run_is_stopped_in_the_middle(home: Path, server: ModelServer) -> None:
    _environment(home)
    server.say(Fault(hang=60), Fault(hang=60))
    run_id = _begin(parallel=2)
    wait_until(lambda: len(server.requests) == 2, timeout=30)
    assert _call("rl_stop", run_id=run_id)["state"] == "stopped"
    _wait_for_the_process(run_id)
    assert {each["state"] for each in _call("rl_results", run_id=run_id)["each"]} == {"stopped"}


def test_a_run_whose_process_was_killed_is_found_as_lost(home: Path, server: ModelServer) -> None:
    _environment(home)
    server.say(Fault(hang=60))
    run_id = _begin(tasks=1)
    wait_until(lambda: len(server.requests) == 1, timeout=30)
    with closing(open_runs()) as store:
        owner = store.get(run_id).owner
    folder = work_folder(run_id)
    assert list(folder.iterdir())
    os.kill(pid_of(owner), signal.SIGKILL)
    wait_until(lambda: _status(run_id)["state"] == "lost")
    assert not folder.exists()
    assert [each["state"] for each in _call("rl_results", run_id=run_id)["each"]] == ["lost"]


@pytest.mark.parametrize(
    ("text", "what"),
    [("TASKS = []\n", "lacks a function reward"), ("def reward(:\n", "cannot be read"), (None, "unknown environment")],
)
def test_an_environment_that_cannot_be_used_says_why(home: Path, text: str | None, what: str) -> None:
    if text is not None:
        _environment(home, text)
    assert what in error_in(handle_function_call("rl_configure", {"environment": "numbers"}))["error"]


@pytest.mark.parametrize(
    ("plan", "what"),
    [
        ({"toolsets": ["terminl"]}, "did you mean 'terminal'"),
        ({"backend": "dokcer"}, "unknown backend 'dokcer'; did you mean 'docker'"),
        ({"parallel": 999}, "rollouts.max_parallel"),
    ],
)
def test_a_plan_that_cannot_be_run_is_not_made(home: Path, plan: dict[str, Any], what: str) -> None:
    _environment(home)
    failed = error_in(handle_function_call("rl_configure", {"environment": "numbers", **plan}))
    assert failed["error_type"] == "invalid_arguments"
    assert what in failed["error"]
    assert _call("rl_status")["runs"] == []


def test_one_without_tasks_does_not_begin(home: Path, server: ModelServer) -> None:
    _environment(home, "TASKS = []\ndef reward(task, rollout): return 0\n")
    default().runtime.approver = RecordingApprover([Decision.ONCE])
    run_id = _call("rl_configure", environment="numbers")["run_id"]
    assert "has no tasks" in error_in(handle_function_call("rl_start", {"run_id": run_id}))["error"]
