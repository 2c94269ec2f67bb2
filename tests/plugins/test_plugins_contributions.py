"""What a plugin brings beside tools reaches whoever uses it: a real plugin folder, and the real runtime."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from handrail import Handrail
from handrail.agent.models.base import TextPiece
from handrail.agent.models.model_selection import build, build_helper, known_providers
from handrail.cli.app import build as command_line
from handrail.cli.commands.doctor import examine
from handrail.environments.backend_table import backends
from handrail.errors import ConfigError, ModelError
from handrail.model_tools import default, handle_function_call

from ..support import error_in, strict_loads, trust_plugins, wait_until

Bring = Callable[..., Any]


@pytest.fixture
def bring(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bring]:
    """`bring(source, config)` writes a plugin into the user's folder, and the configuration."""
    monkeypatch.chdir(tmp_path)

    def write(source: str, config: str = "{}") -> None:
        (home / "plugins").mkdir(exist_ok=True)
        (home / "plugins" / "brought.py").write_text(source)
        (home / "config.yaml").write_text(config)
        trust_plugins(home)

    yield write
    for name in [name for name in sys.modules if name.startswith("handrail_plugins")]:
        del sys.modules[name]


def run(command: str) -> dict[str, Any]:
    outcome: dict[str, Any] = strict_loads(str(handle_function_call("terminal", {"command": command}, "t")))
    return outcome


RULE = """
from handrail.judge import Rule, Severity
def register(api):
    api.approval_rule(Rule("house.printer", Severity.ASK, "prints on paper", uses=("lp",),
                           match=("lp page.txt",), not_match=({not_match!r},)))
"""


def test_a_plugins_rule_asks(bring: Bring) -> None:
    bring(RULE.format(not_match="ls page.txt"))
    error = error_in(handle_function_call("terminal", {"command": "lp page.txt"}))
    assert error["error_type"] == "denied"
    assert "prints on paper" in error["error"]


def test_a_rule_whose_examples_do_not_hold_is_not_taken(bring: Bring) -> None:
    bring(RULE.format(not_match="lp other.txt"))
    plugins = default().plugins
    assert plugins is not None
    (plugin,) = plugins.found
    assert "must not be" in plugin.reason


APPROVER = """
from handrail.protocols import Decision
class Kind:
    def decide(self, request):
        return Decision.ONCE if "please" in request.text else None
def register(api):
    api.approver("kind", Kind())
"""


def test_the_approver_that_is_named_is_asked(bring: Bring, tmp_path: Path) -> None:
    bring(APPROVER, "approvals: {approver: kind}")
    for name in ("please", "other"):
        (tmp_path / name).mkdir()
    assert run(f"rm -rf {tmp_path}/please")["exit_code"] == 0
    assert not (tmp_path / "please").exists()
    assert error_in(handle_function_call("terminal", {"command": f"rm -rf {tmp_path}/other"}))["error_type"] == "denied"


def test_an_approver_that_nobody_brings_is_an_error(bring: Bring) -> None:
    bring(APPROVER, "approvals: {approver: kond}")
    with pytest.raises(ConfigError, match="kind"):
        default()


def test_what_waits_for_trust_does_not_stop_the_commands(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A plugin that is not loaded lacks its toolset, its tools and its approver: that is said, and the rest works."""
    monkeypatch.chdir(tmp_path)
    (home / "plugins").mkdir()
    ran = tmp_path / "ran"
    (home / "plugins" / "brought.py").write_text(f"open({str(ran)!r}, 'w')\n")
    (home / "config.yaml").write_text(
        "approvals: {approver: kind}\n"
        "toolsets: {mine: {description: d, tools: [its_tool, read_file], includes: [its_set]}}\n"
        "tools: {enabled_toolsets: [mine], disabled_toolsets: [its_other_set]}\n"
    )
    listed = CliRunner().invoke(command_line(), ["schema", "--format", "openai"])
    assert listed.exit_code == 0
    assert [each["function"]["name"] for each in json.loads(listed.stdout)] == ["read_file"]
    for what in ("unknown toolset 'its_set'", "lists 'its_tool'", "unknown toolset 'its_other_set'", "approver 'kind'"):
        assert what in caplog.text
    (tmp_path / "tree").mkdir()
    assert error_in(handle_function_call("terminal", {"command": "rm -rf tree"}))["error_type"] == "denied"
    for command in (["tools"], ["call", "read_file", "path=config.yaml"], ["plugins", "list"], ["mcp", "list"]):
        assert CliRunner().invoke(command_line(), command).exit_code in (0, 1), command
    findings = {finding.what: finding for finding in examine()}
    assert findings["plugin brought"].detail == "untrusted"
    assert not [each for each in findings.values() if each.health.value == "broken"]
    assert not ran.exists(), "a plugin ran that nobody has trusted"


def test_a_toolset_that_waits_for_confirmation_is_empty(home: Path) -> None:
    (home / "config.yaml").write_text("{}")
    Handrail().close()
    (home / "config.yaml").write_text(
        "toolsets: {mine: {description: d, tools: [terminal]}}\ntools: {enabled_toolsets: [mine, todo]}\n"
    )
    with Handrail() as app:
        assert [each["function"]["name"] for each in app.get_tool_definitions()] == ["todo"]


ENVIRONMENT = """
from handrail.environments.backends.local import LocalBackend
class Twin(LocalBackend):
    name = "twin"
def register(api):
    api.environment("twin", Twin)
"""


def test_an_environment_that_a_plugin_brings_can_be_chosen(bring: Bring) -> None:
    bring(ENVIRONMENT, "terminal: {backend: twin}")
    assert run("echo here")["output"].strip() == "here"
    here = default()
    assert here.environments.settings("t").backend == "twin"
    here.close()
    assert "twin" not in backends.names()


PROVIDER = """
from handrail.protocols import ModelReply
class Parrot:
    def __init__(self, name): self.name = name
    def reply(self, messages, tools): return ModelReply(f"{self.name} says {messages[-1]['content']}")
def register(api):
    api.model_provider("parrot", lambda name, **settings: Parrot(name))
"""


def test_a_model_provider_that_a_plugin_brings_is_asked(bring: Bring) -> None:
    bring(PROVIDER, "model: {provider: parrot, name: polly}")
    (model,) = build(default().config.model, providers=known_providers(default().plugins))

    async def said() -> str:
        messages = [{"role": "user", "content": "hello"}]
        return "".join([piece.text async for piece in model.stream(messages, []) if isinstance(piece, TextPiece)])

    assert asyncio.run(said()) == "polly says hello"


def test_a_model_provider_that_nobody_brings_is_an_error(bring: Bring) -> None:
    bring(PROVIDER, "model: {provider: parott, name: polly}")
    with pytest.raises(ModelError, match="parrot"):
        build(default().config.model, providers=known_providers(default().plugins))


def test_a_plugins_provider_is_named_before_a_model_and_is_a_helper_like_a_built_in_one(
    bring: Bring, monkeypatch: pytest.MonkeyPatch
) -> None:
    bring(PROVIDER, "model: {provider: openai, name: m, helper: 'parrot:small', fallbacks: ['parrot:polly']}")
    monkeypatch.setenv("OPENAI_API_KEY", "k" * 8)
    app = default()
    providers = known_providers(app.plugins)
    assert [model.name for model in build(app.config.model, providers=providers)] == ["m", "polly"]
    helper = build_helper(app.config.model, providers=providers)
    assert helper is not None
    assert helper.name == "small"


def test_the_models_of_a_plugins_provider_are_listed_tried_and_examined(bring: Bring) -> None:
    bring(PROVIDER, "model: {provider: parrot, name: polly}")
    listed = CliRunner().invoke(command_line(["model"]), ["model", "list", "--json"])
    assert listed.exit_code == 0, listed.output
    assert {"name": "polly", "where": "parrot", "what": "parrot", "chosen": True} in json.loads(listed.stdout)
    tried = CliRunner().invoke(command_line(["model"]), ["model", "test", "--json"])
    assert json.loads(tried.stdout)["answer"].startswith("polly says")
    (finding,) = [each for each in examine() if each.what == "model"]
    assert "polly at parrot" in finding.detail


HOOKS = """
import json
def log(**told):
    with open({path!r}, "a") as file:
        file.write(json.dumps(told, default=str) + "\\n")
def register(api):
    api.hook("pre_approval_request", lambda tool_name, reason: log(asked=tool_name, reason=reason))
    api.hook("post_approval_response",
             lambda tool_name, decision, answered_by: log(answered=tool_name, decision=decision, by=answered_by))
    api.hook("transform_terminal_output", lambda output, exit_code: output.replace("secret", "[%s]" % exit_code))
"""


def test_hooks_hear_of_questions_and_answers(bring: Bring, tmp_path: Path) -> None:
    told = tmp_path / "told"
    bring(
        APPROVER
        + HOOKS.format(path=str(told)).replace(
            "def register(api):", "def register(api):\n    api.approver('kind', Kind())"
        ),
        "approvals: {approver: kind}",
    )
    (tmp_path / "please").mkdir()
    run(f"rm -rf {tmp_path}/please")
    asked, answered = map(json.loads, told.read_text().splitlines())
    assert asked["asked"] == "terminal"
    assert asked["reason"]
    assert (answered["answered"], answered["decision"]) == ("terminal", "once")


def test_hooks_change_what_a_command_printed(bring: Bring, tmp_path: Path) -> None:
    bring(HOOKS.format(path=str(tmp_path / "told")))
    assert run("echo a secret; (exit 3)")["output"] == "a [3]\n"
    long = run("for n in $(seq 20000); do echo secret $n; done")
    assert "secret" not in long["output"]
    assert "[0] 20000" in long["output"]
    assert "stored" not in long, "what is stored would be what was printed"


def test_hooks_change_what_a_background_process_printed(bring: Bring, tmp_path: Path) -> None:
    bring(HOOKS.format(path=str(tmp_path / "told")))

    def process(action: str, **arguments: Any) -> dict[str, Any]:
        call = {"action": action, "session_id": started["session_id"], **arguments}
        outcome: dict[str, Any] = strict_loads(str(handle_function_call("process", call, "t")))
        return outcome

    command = {"command": "echo a secret; read -r word; echo secret $word; exit 3", "background": True}
    started = strict_loads(str(handle_function_call("terminal", command, "t")))
    wait_until(lambda: process("poll")["output"] == "a [None]\n", otherwise=lambda: str(process("poll")))
    process("submit", data="told")
    process("wait", timeout=30)
    assert process("poll")["output"] == "a [3]\n[3] told\n"
    assert process("log")["output"] == "a [3]\n[3] told"
    assert process("log", pattern="secret")["total_matches"] == 0

    command = {"command": "echo a secret; read -r word", "pty": True, "background": True}
    started = strict_loads(str(handle_function_call("terminal", command, "t")))
    wait_until(lambda: "a [None]" in process("poll")["screen"], otherwise=lambda: str(process("poll")))
    assert "secret" not in process("kill")["screen"]
