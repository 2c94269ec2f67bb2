"""Which model is asked, with which key, and what the servers of others really send."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable, Iterator
from typing import Any, ClassVar
from unittest.mock import patch

import pytest

from handrail.agent.models import http_client, model_selection
from handrail.agent.models.base import CallPiece, Finished, Piece, Prices, TextPiece
from handrail.agent.models.http_client import says_too_long
from handrail.agent.models.model_selection import build, build_helper, choose, find, provider_of
from handrail.agent.models.providers.anthropic import AnthropicMessages
from handrail.agent.models.providers.openai import OpenAIChat
from handrail.config.keys import key_of, without_key
from handrail.errors import ModelError
from handrail.settings.services import ModelConfig
from handrail.testing import Fault, ModelReply, ModelServer, Raw, call


@pytest.fixture(autouse=True)
def _nothing_is_configured(monkeypatch: pytest.MonkeyPatch) -> None:
    for provider in ("OPENAI", "ANTHROPIC"):
        monkeypatch.delenv(f"{provider}_API_KEY", raising=False)
        monkeypatch.delenv(f"{provider}_BASE_URL", raising=False)
    monkeypatch.setattr(model_selection, "DEFAULT_PORTS", {})
    monkeypatch.setitem(sys.modules, "keyring", None)


@pytest.fixture
def keyring(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The real package, with a keyring that is gone after the test."""
    monkeypatch.delitem(sys.modules, "keyring")
    import keyring
    from keyring.backend import KeyringBackend

    class InMemory(KeyringBackend):
        priority = 1  # type: ignore[assignment]
        known: ClassVar[dict[tuple[str, str], str]] = {}

        def get_password(self, service: str, username: str) -> str | None:
            if username == "BROKEN":
                raise RuntimeError("the keyring is locked")
            return self.known.get((service, username))

        def set_password(self, service: str, username: str, password: str) -> None:
            self.known[service, username] = password

    before = keyring.get_keyring()
    keyring.set_keyring(InMemory())
    yield keyring
    keyring.set_keyring(before)
    InMemory.known.clear()  # the package knows every class of keyring there ever was


def pieces(model: Any, tools: Any = ()) -> list[Piece]:
    async def run() -> list[Piece]:
        return [piece async for piece in model.stream([{"role": "user", "content": "hi"}], tools)]

    return asyncio.run(run())


def within(environ: dict[str, str], function: Callable[..., Any], *args: Any, **more: Any) -> Any:
    """What it returns in this environment."""
    with patch.dict(os.environ, environ, clear=True):
        return function(*args, **more)


# Which


def test_a_name_that_was_asked_for_goes_before_the_environment_and_the_configuration() -> None:
    config = ModelConfig(name="configured")
    environ = {"HANDRAIL_MODEL": "from-env"}
    assert within(environ, choose, config, name="wanted").name == "wanted"
    assert within(environ, choose, config).name == "from-env"
    assert within({}, choose, config).name == "configured"
    assert within({}, choose, ModelConfig()) is None


def test_a_provider_is_named_before_the_model_and_has_its_own_place_and_key() -> None:
    config = ModelConfig(name="m", base_url="http://mine/v1", key_variable="MY_KEY")
    mine, other = within({}, choose, config), within({}, choose, config, name="anthropic:c-1")
    assert mine is not None
    assert other is not None
    assert (mine.base_url, mine.key_variable) == ("http://mine/v1", "MY_KEY")
    assert other[:4] == ("c-1", "anthropic", None, "ANTHROPIC_API_KEY")
    assert within({}, choose, config, name="qwen:8b").name == "qwen:8b"


def test_no_model_says_what_to_set() -> None:
    with pytest.raises(ModelError, match="HANDRAIL_MODEL"):
        build(ModelConfig())


def test_no_key_says_which_variable_to_set() -> None:
    with pytest.raises(ModelError, match="set OPENAI_API_KEY"):
        build(ModelConfig(name="m"))
    with pytest.raises(ModelError, match="set ANTHROPIC_API_KEY"):
        build(ModelConfig(name="anthropic:m"))


@pytest.mark.parametrize("provider", ["openai", "anthropic"])
def test_a_key_that_is_refused_says_which_variable_to_set(monkeypatch: pytest.MonkeyPatch, provider: str) -> None:
    monkeypatch.setenv("EXAMPLE_API_KEY", "wrong")
    with ModelServer(key="right") as server:
        config = ModelConfig(name="m", provider=provider, base_url=server.base_url, key_variable="EXAMPLE_API_KEY")
        with pytest.raises(ModelError, match="set EXAMPLE_API_KEY to one"):
            pieces(build(config)[0])


def test_fallbacks_are_asked_after_the_chosen_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    assert [model.name for model in build(ModelConfig(name="a", fallbacks=("b", "a")))] == ["a", "b"]


def test_a_fallback_may_be_at_another_provider(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    config = ModelConfig(name="a", fallbacks=("llama:8b", "anthropic:c"), helper="anthropic:d")
    with pytest.raises(ModelError, match="set ANTHROPIC_API_KEY"):
        build(config)
    monkeypatch.setenv("ANTHROPIC_API_KEY", "k")
    found = [(model.name, getattr(model, "provider", "")) for model in build(config)]
    assert found == [("a", "openai"), ("llama:8b", "openai"), ("c", "anthropic")]
    helper = build_helper(config)
    assert helper is not None
    assert (helper.name, helper.provider) == ("d", "anthropic")


def test_a_server_on_a_usual_port_is_found_and_gets_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "k-of-openai")
    with ModelServer([ModelReply("hi")], models=["small", "large"]) as server:
        port = int(server.base_url.split(":")[2].split("/")[0])
        monkeypatch.setattr(model_selection, "DEFAULT_PORTS", {port: "Ollama"})
        choice = find(ModelConfig())
        assert choice is not None
        assert (choice.name, choice.base_url, choice.source) == ("small", server.base_url, "Ollama on this machine")
        (model,) = build(ModelConfig())
        pieces(model)
        assert "k-of-openai" not in server.keys


def test_something_else_on_a_usual_port_is_no_server(monkeypatch: pytest.MonkeyPatch) -> None:
    with ModelServer(key="closed") as server:  # it answers 401
        port = int(server.base_url.split(":")[2].split("/")[0])
        monkeypatch.setattr(model_selection, "DEFAULT_PORTS", {port: "vLLM"})
        assert find(ModelConfig()) is None
    assert find(ModelConfig()) is None  # nobody listens


def test_the_models_of_a_provider_are_listed() -> None:
    config = ModelConfig()
    with ModelServer(models=["b", "a"], key="right") as server:
        choice = within({"OPENAI_BASE_URL": server.base_url}, provider_of, config)
        model = OpenAIChat("", base_url=choice.base_url, api_key="right")
        assert asyncio.run(model.available()) == ["a", "b"]
        wrong = OpenAIChat("", base_url=server.base_url, api_key="wrong")
        with pytest.raises(ModelError, match="OPENAI_API_KEY"):
            asyncio.run(wrong.available())


# Keys


def test_a_key_comes_from_the_environment_and_else_from_the_keyring(keyring: Any) -> None:
    keyring.set_password("handrail", "OPENAI_API_KEY", "from-keyring")
    assert within({}, key_of, "OPENAI_API_KEY") == "from-keyring"
    assert within({"OPENAI_API_KEY": " from-env\n"}, key_of, "OPENAI_API_KEY") == "from-env"
    assert within({}, key_of, "OTHER") == ""


def test_a_keyring_that_fails_or_is_not_there_has_no_key(keyring: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    assert within({}, key_of, "BROKEN") == ""
    monkeypatch.setitem(sys.modules, "keyring", None)
    assert within({}, key_of, "OPENAI_API_KEY") == ""


def test_a_server_that_repeats_the_key_does_not_get_it_shown() -> None:
    key = "sk-very-secret-key"
    fault = Fault(401, f"Incorrect API key provided: {key}")
    with ModelServer([fault]) as server, pytest.raises(ModelError) as raised:
        pieces(OpenAIChat("m", base_url=server.base_url, api_key=key))
    assert key not in str(raised.value)
    assert "[the key]" in str(raised.value)
    assert without_key("none of it", "none") == "none of it"


# What other servers send


def test_the_old_function_call_and_wrong_roles_are_understood() -> None:
    deltas = [
        {"role": "user", "content": "I "},
        {"role": "system", "content": "see"},
        {"function_call": {"name": "say", "arguments": '{"text": '}},
        {"function_call": {"arguments": '"hi"}'}},
    ]
    with ModelServer([Raw(deltas, "function_call")]) as server:
        found = pieces(OpenAIChat("m", base_url=server.base_url, api_key="k"))
    assert found[:2] == [TextPiece("I "), TextPiece("see")]
    assert [piece for piece in found if isinstance(piece, CallPiece)] == [
        CallPiece(0, "", "say", '{"text": '),
        CallPiece(0, "", "", '"hi"}'),
    ]


def test_arguments_that_are_no_text_and_empty_deltas_are_understood() -> None:
    deltas = [
        {},
        {"content": None},
        {"tool_calls": [{"index": 0, "id": "c", "function": {"name": "say", "arguments": {"a": 1}}}]},
    ]
    with ModelServer([Raw(deltas, "tool_calls")]) as server:
        found = pieces(OpenAIChat("m", base_url=server.base_url, api_key="k"))
    assert found[0] == CallPiece(0, "c", "say", '{"a": 1}')


@pytest.mark.parametrize("text", ["", "x" * 1000])
def test_an_answer_without_end_is_stopped(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setattr(http_client, "MAX_BYTES", 500_000)
    with ModelServer([Fault(endless=text or " ")]) as server, pytest.raises(ModelError, match="bytes and was stopped"):
        pieces(OpenAIChat("m", base_url=server.base_url, api_key="k"))


def test_an_answer_that_takes_too_long_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_client, "MAX_SECONDS", 0.2)
    with ModelServer([Fault(endless=" ")]) as server, pytest.raises(ModelError, match="not ended"):
        pieces(OpenAIChat("m", base_url=server.base_url, api_key="k"))


@pytest.mark.parametrize(
    "said",
    [
        "This model's maximum context length is 8192 tokens. However, you requested 9000",
        "prompt is too long: 210000 tokens > 200000 maximum",
        "the request exceeds the available context size, try increasing it",
    ],
)
def test_a_request_that_is_too_long_is_known_as_such(said: str) -> None:
    assert says_too_long(said)
    with ModelServer([Fault(400, said)]) as server, pytest.raises(ModelError) as raised:
        pieces(OpenAIChat("m", base_url=server.base_url, api_key="k"))
    assert raised.value.too_long


def test_a_price_makes_a_cost_where_the_server_tells_none() -> None:
    with ModelServer([ModelReply("hi")]) as server:
        found = pieces(OpenAIChat("m", base_url=server.base_url, api_key="k", prices=Prices(2.0, 10.0)))
    assert isinstance(found[-1], Finished)
    assert found[-1].usage.cost == pytest.approx((10 * 2.0 + 5 * 10.0) / 1e6)


# Anthropic's messages


def claude(server: ModelServer, key: str = "k") -> AnthropicMessages:
    return AnthropicMessages("c-1", base_url=server.base_url.removesuffix("/v1"), api_key=key)


def test_anthropics_messages_come_in_pieces_with_their_calls() -> None:
    tools = [{"type": "function", "function": {"name": "say", "description": "d", "parameters": {"type": "object"}}}]
    with ModelServer([ModelReply("hello there", [call("say", "c1", text="x")])]) as server:
        found = pieces(claude(server), tools)
    assert "".join(piece.text for piece in found if isinstance(piece, TextPiece)) == "hello there"
    assert [piece for piece in found if isinstance(piece, CallPiece)] == [
        CallPiece(1, "c1", "say"),
        CallPiece(1, arguments='{"text": "x"}'),
    ]
    assert found[-1] == Finished(usage=found[-1].usage)  # type: ignore[union-attr]
    assert found[-1].usage[:3] == (14, 5, 4)  # type: ignore[union-attr]
    assert server.requests[0]["tools"][0]["input_schema"] == {"type": "object"}
    assert server.keys == ["k"]


def test_results_are_blocks_of_the_persons_next_message_for_anthropic() -> None:
    from handrail.agent.models.providers.anthropic import as_anthropic

    messages = [
        {"role": "system", "content": "be kind"},
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": "", "tool_calls": [call("say", "c1", text="x"), call("say", "c2", text="y")]},
        {"role": "tool", "tool_call_id": "c1", "content": "one"},
        {"role": "tool", "tool_call_id": "c2", "content": "two"},
        {"role": "user", "content": "news"},
    ]
    made = as_anthropic(messages, [])
    assert [turn["role"] for turn in made["messages"]] == ["user", "assistant", "user"]
    assert [block["type"] for block in made["messages"][2]["content"]] == ["tool_result", "tool_result", "text"]
    assert made["system"][0]["text"] == "be kind"
    remembered = [block for turn in made["messages"] for block in turn["content"] if "cache_control" in block]
    assert remembered == [made["messages"][2]["content"][-1]], "the next request begins with all of this"


@pytest.mark.parametrize(
    ("fault", "said", "retryable"),
    [(Fault(401), "ANTHROPIC_API_KEY", False), (Fault(529), "529", True), (Fault(404), "no model", False)],
)
def test_faults_of_anthropic_say_what_to_do(fault: Fault, said: str, retryable: bool) -> None:
    with ModelServer([fault]) as server, pytest.raises(ModelError, match=said) as raised:
        pieces(claude(server))
    assert raised.value.retryable is retryable


@pytest.mark.parametrize(
    ("name", "environ", "provider", "variable"),
    [
        ("claude-sonnet-4-5", {}, "anthropic", "ANTHROPIC_API_KEY"),
        ("claude-sonnet-4-5", {"OPENAI_API_KEY": "k"}, "anthropic", "ANTHROPIC_API_KEY"),
        ("gemini-2.5-pro", {}, "gemini", "GEMINI_API_KEY"),
        ("gpt-5-mini", {"ANTHROPIC_API_KEY": "k"}, "openai", "OPENAI_API_KEY"),
        ("llama-3.3-70b", {"GROQ_API_KEY": "k"}, "groq", "GROQ_API_KEY"),
        ("llama-3.3-70b", {"GROQ_API_KEY": "k", "XAI_API_KEY": "k"}, "openai", "OPENAI_API_KEY"),
        ("claude-by-proxy", {"OPENAI_BASE_URL": "http://127.0.0.1:1/v1"}, "openai", "OPENAI_API_KEY"),
    ],
)
def test_the_provider_follows_from_the_name_and_the_keys(
    name: str, environ: dict[str, str], provider: str, variable: str
) -> None:
    chosen = within({"HANDRAIL_MODEL": name, **environ}, choose, ModelConfig())
    assert chosen is not None
    assert (chosen.name, chosen.provider, chosen.key_variable) == (name, provider, variable)


def test_a_configured_server_is_asked_whatever_the_name() -> None:
    chosen = within({}, choose, ModelConfig(name="claude-x", base_url="http://127.0.0.1:1/v1"))
    assert chosen is not None
    assert chosen.provider == "openai"


def test_a_missing_key_names_its_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HANDRAIL_MODEL", "claude-sonnet-4-5")
    with pytest.raises(ModelError, match="set ANTHROPIC_API_KEY"):
        build(ModelConfig())
