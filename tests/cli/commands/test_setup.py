"""`handrail setup`: a model is chosen, tried with a tool call, and written."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from handrail.base.own_process import MARKER
from handrail.config.store import load_config
from handrail.errors import Denied, HandrailError, InvalidArguments, ModelError
from handrail.model_tools import reset
from handrail.testing import ModelReply, ModelServer, call
from tests.cli.conftest import Cli, Ran, run_here
from tests.support import configure

WORKING = (ModelReply("hello"), ModelReply("", [call("echo", text="hello")]))


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModelServer]:
    for name in ("OPENAI_BASE_URL", "OPENAI_API_KEY", "ANTHROPIC_API_KEY", "HANDRAIL_MODEL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("handrail.agent.models.model_selection.DEFAULT_PORTS", {})
    with ModelServer(models=["large", "small"]) as server:
        yield server


def setup(*args: str) -> Ran:
    try:
        return run_here("setup", *args)
    finally:
        reset()


def test_a_model_that_calls_tools_is_written_with_its_place(home: Path, server: ModelServer) -> None:
    configure(home, "# mine\nmodel:\n  key_variable: OTHER\n  context_tokens: 9000\n  provider: anthropic\n")
    server.say(*WORKING)
    ran = setup("--provider", "openai", "--model", "qwen3:8b", "--base-url", server.base_url)
    assert "✓ calls tools" in ran.out
    model = load_config().model
    assert (model.provider, model.name, model.base_url) == ("openai", "qwen3:8b", server.base_url)
    assert (model.key_variable, model.context_tokens) == ("", 9000)  # the key was another provider's
    assert "# mine" in (home / "config.yaml").read_text()
    assert server.requests[-1]["model"] == "qwen3:8b"


def test_a_model_that_does_not_answer_is_not_written(home: Path, server: ModelServer) -> None:
    with pytest.raises(ModelError, match="nothing was changed"):
        setup("--model", "gone", "--base-url", server.base_url)  # it has no script
    assert not (home / "config.yaml").exists()
    assert setup("--model", "gone", "--base-url", server.base_url, "--no-test").code == 0
    assert load_config().model.name == "gone"


def test_a_model_without_tool_calls_is_written_with_a_warning(home: Path, server: ModelServer) -> None:
    server.say(ModelReply("hello"), ModelReply("hello"))
    assert "did not call a tool" in setup("--model", "tiny", "--base-url", server.base_url).out
    assert load_config().model.name == "tiny"


def test_the_provider_follows_from_the_name_and_its_key_is_asked_for(home: Path, server: ModelServer) -> None:
    with pytest.raises(ModelError, match="ANTHROPIC_API_KEY"):
        setup("--model", "claude-sonnet-4-5")


@pytest.mark.parametrize(
    ("args", "error"),
    [
        (("--provider", "openia", "--model", "x"), "did you mean 'openai'"),
        ((), "--model"),
        (("--provider", "xai"), "--model"),
    ],
)
def test_what_is_missing_without_a_terminal_is_said(
    home: Path, server: ModelServer, args: tuple[str, ...], error: str
) -> None:
    with pytest.raises(InvalidArguments, match=error):
        setup(*args)


def test_an_agent_cannot_set_up_a_model(home: Path, server: ModelServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(MARKER, "1")
    with pytest.raises(Denied):
        setup("--model", "x", "--base-url", server.base_url, "--no-test")


def test_at_a_terminal_provider_and_model_are_asked(cli: Cli, server: ModelServer) -> None:
    server.say(*WORKING)
    with cli.terminal("setup", OPENAI_BASE_URL=server.base_url) as terminal:
        terminal.wait_for("Which provider?")
        terminal.wait_for("anthropic (needs ANTHROPIC_API_KEY)")
        terminal.wait_for("your own words: ")
        terminal.type("opnai\n")
        terminal.wait_for("did you mean 'openai'?")
        terminal.wait_for("your own words: ", times=2)
        terminal.type("openai\n")
        terminal.wait_for("small")
        terminal.type("2\n")
        assert terminal.end() == 0, terminal.shown
    assert "chat` talks with it" in terminal.text
    assert "name: small" in (cli.home / "config.yaml").read_text()


def test_the_address_of_a_server_can_be_typed(cli: Cli, server: ModelServer) -> None:
    server.say(*WORKING)
    with cli.terminal("setup", OPENAI_API_KEY="k") as terminal:
        terminal.wait_for("address of a server")
        terminal.wait_for("your own words: ")
        terminal.type(f"{server.base_url}\n")
        terminal.wait_for("small")
        terminal.type("2\n")
        assert terminal.end() == 0, terminal.shown
    assert server.base_url in (cli.home / "config.yaml").read_text()


def test_without_a_model_every_hint_names_it(home: Path, server: ModelServer) -> None:
    with pytest.raises(HandrailError, match="handrail setup"):
        run_here("ask", "hello")
    reset()
