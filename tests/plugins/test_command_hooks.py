"""Commands as hooks, run for real."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from handrail.errors import ConfigError
from handrail.plugins.command_hooks import register_external
from handrail.plugins.hook_manager import HookManager
from handrail.protocols import Decision
from handrail.runtime.dispatch import Runtime
from handrail.settings.sections import HookCommandConfig
from handrail.testing import RecordingApprover
from tests.support import add, error_in, parameters, takes_less_than, wait_until


@pytest.fixture
def told(runtime: Runtime) -> Any:
    """A tool, and a hook before it: `told("exit 2")` gives the tool's answer."""
    add(runtime.registry, "touch", schema=parameters(path={"type": "string"}, count={"type": "integer"}))

    def call(command: str, *, event: str = "PreToolUse", name: str = "touch", **options: Any) -> str:
        register_external(runtime.hooks, {event: [HookCommandConfig(command=command, **options)]}, plugin="config")
        return str(runtime.handle(name, {"path": "a"}, session_id="s1"))

    return call


def passes(outcome: str, **args: Any) -> bool:
    return json.loads(outcome) == {"got": {"path": "a", **args}}


def test_the_command_gets_the_event_as_json(told: Any, tmp_path: Path) -> None:
    assert passes(told(f"cat > {tmp_path}/event"))
    event = json.loads((tmp_path / "event").read_text())
    assert event["hook_event_name"] == "PreToolUse"
    assert (event["tool_name"], event["tool_input"]) == ("touch", {"path": "a"})
    assert (event["session_id"], event["cwd"]) == ("s1", os.getcwd())


def test_exit_code_2_blocks_with_what_it_wrote_to_stderr(told: Any) -> None:
    error = error_in(told("echo 'not on Sundays' >&2; exit 2"))
    assert error["error_type"] == "denied"
    assert "not on Sundays" in error["error"]


@pytest.mark.parametrize(
    "answer",
    [
        {"decision": "deny", "reason": "no way"},
        {"decision": "block", "reason": "no way"},
        {"hookSpecificOutput": {"permissionDecision": "deny", "permissionDecisionReason": "no way"}},
        {"action": "block", "message": "no way"},
    ],
)
def test_json_on_stdout_can_deny(told: Any, answer: dict[str, Any]) -> None:
    assert "no way" in error_in(told(f"echo '{json.dumps(answer)}'"))["error"]


@pytest.mark.parametrize(
    "answer",
    [
        {"decision": "allow", "updatedInput": {"count": 3}},
        {"updatedInput": {"count": "3"}},
        {"hookSpecificOutput": {"permissionDecision": "allow", "updatedInput": {"count": 3}}},
        {"decision": "modify", "tool_input": {"count": 3}},
        {"action": "modify", "args": {"count": 3}},
    ],
)
def test_json_on_stdout_can_change_the_arguments(told: Any, answer: dict[str, Any]) -> None:
    assert passes(told(f"echo '{json.dumps(answer)}'"), count=3)


@pytest.mark.parametrize("asks", [{"decision": "ask", "reason": "sure?"}, {"action": "approve", "message": "sure?"}])
def test_json_on_stdout_can_ask_a_person(told: Any, runtime: Runtime, asks: dict[str, str]) -> None:
    runtime.approver = approver = RecordingApprover([Decision.ONCE])
    answer = {**asks, "updatedInput": {"count": 4}}
    assert passes(told(f"echo '{json.dumps(answer)}'"), count=4)
    (request,) = approver.requests
    assert (request.reason, request.arguments["count"]) == ("sure?", 4)


@pytest.mark.parametrize(
    "command", ["exit 1", "kill -9 $$", "echo '{'", 'echo \'{"decision": "perhaps"}\'', "no-such-command"]
)
def test_a_failure_goes_on_unless_the_hook_is_a_policy(told: Any, command: str, runtime: Runtime) -> None:
    assert passes(told(command))
    runtime.hooks.unregister_plugin("config")
    assert error_in(told(command, policy=True))["error_type"] == "denied"


@pytest.mark.parametrize("command", ["true", "echo just words", "echo '{}'"])
def test_anything_else_lets_pass(told: Any, command: str) -> None:
    assert passes(told(command, policy=True))


def test_one_that_takes_too_long_is_ended_with_all_that_it_started(told: Any, tmp_path: Path) -> None:
    with takes_less_than(30):
        error = error_in(told(f"sleep 1000 & echo $! > {tmp_path}/pid; wait", timeout=2, policy=True))
    assert error["error_type"] == "denied"
    pid = int((tmp_path / "pid").read_text())
    wait_until(lambda: not _runs(pid))


def _runs(pid: int) -> bool:
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False


def test_a_matcher_chooses_the_tools(told: Any) -> None:
    assert passes(told("exit 2", matcher="terminal|touch_.*"))
    assert error_in(told("exit 2", matcher="terminal|tou.h"))


def test_a_star_means_every_tool_as_in_other_agents(told: Any) -> None:
    assert error_in(told("exit 2", matcher="*"))


def test_our_own_names_of_events_work_too(told: Any) -> None:
    assert error_in(told("exit 2", event="pre_tool_call"))


def test_it_is_told_what_came_of_a_call(told: Any, tmp_path: Path) -> None:
    told(f"cat > {tmp_path}/event", event="PostToolUse")
    event = json.loads((tmp_path / "event").read_text())
    assert (event["status"], json.loads(event["tool_response"])) == ("ok", {"got": {"path": "a"}})


def test_after_a_call_exit_code_2_tells_the_model_beside_the_result(told: Any) -> None:
    outcome = told("echo 'line 3 is too long' >&2; exit 2", event="PostToolUse")
    assert json.loads(outcome) == {"got": {"path": "a"}, "remark": "line 3 is too long"}


def test_a_command_can_replace_a_result(told: Any) -> None:
    assert told('echo \'{"updatedOutput": "less"}\'', event="transform_tool_result") == "less"


@pytest.mark.parametrize(
    ("printed", "added"),
    [
        ("it rains", ["it rains"]),
        ('{"additionalContext": "it rains"}', ["it rains"]),
        ('{"hookSpecificOutput": {"additionalContext": "it rains"}}', ["it rains"]),
        ('{"context": "it rains"}', ["it rains"]),
        ("{}", []),
        ("", []),
    ],
)
def test_a_command_can_add_to_a_turn(hook_manager: HookManager, printed: str, added: list[str]) -> None:
    configured = {"UserPromptSubmit": [HookCommandConfig(command=f"echo '{printed}'")]}
    register_external(hook_manager, configured, plugin="config")
    assert hook_manager.invoke("pre_llm_call", session_id="s", user_message="hi") == added


@pytest.mark.parametrize(
    "command", ["echo 'run the tests' >&2; exit 2", """echo '{"decision": "block", "reason": "run the tests"}'"""]
)
def test_a_command_can_keep_an_agent_going(hook_manager: HookManager, command: str) -> None:
    register_external(hook_manager, {"pre_verify": [HookCommandConfig(command=command)]}, plugin="config")
    assert hook_manager.invoke("pre_verify", session_id="s") == [{"decision": "block", "reason": "run the tests"}]


def test_what_fails_is_named_by_its_command(told: Any, caplog: pytest.LogCaptureFixture) -> None:
    told("no-such-command-anywhere")
    assert "RuntimeError: 'no-such-command-anywhere' ended with 127" in caplog.text
    assert "Foreign" not in caplog.text


def test_secrets_of_this_process_do_not_reach_it(told: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_API_KEY", "s3cr3t-s3cr3t")
    told(f"env > {tmp_path}/env")
    assert "s3cr3t" not in (tmp_path / "env").read_text()


@pytest.mark.parametrize(
    ("event", "hook", "message"),
    [
        ("PreToolUs", {"command": "true"}, "did you mean 'PreToolUse'"),
        ("PreToolUse", {"command": " "}, "must have a command"),
        ("PreToolUse", {"command": "true", "matcher": "("}, "not a regular expression"),
    ],
)
def test_a_mistake_in_the_configuration_is_named(
    runtime: Runtime, event: str, hook: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        register_external(runtime.hooks, {event: [HookCommandConfig(**hook)]}, plugin="config")
