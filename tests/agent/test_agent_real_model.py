"""The loop against a real small model. It is not clever: what counts is that its messy output is survived."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from handrail.agent.agent import Agent
from handrail.agent.events import Budgets, End, TextDelta, ToolEnded
from handrail.agent.models.providers.openai import OpenAIChat
from handrail.core.registry import registry
from handrail.model_tools import default
from handrail.store.sessions import SessionStore
from tests.services.components import absent
from tests.support import parameters

FOLDER = Path(os.environ.get("HANDRAIL_TEST_LLM", Path.home() / ".cache" / "handrail-tests" / "llm"))
SERVER = Path(__file__).parents[1] / "services" / "small_model.py"


# Its server knows no tools, and it would never think of one: held to this it writes calls, as text, as such models do.
CALL = {
    "type": "object",
    "properties": {
        "name": {"const": "weather"},
        "arguments": {
            "type": "object",
            "properties": {"city": {"type": "string", "maxLength": 20}},
            "required": ["city"],
            "additionalProperties": False,
        },
    },
    "required": ["name", "arguments"],
    "additionalProperties": False,
}
WRITES_CALLS = {"type": "json_schema", "json_schema": {"name": "call", "schema": CALL}}


@pytest.fixture
def base_url(tmp_path: Path) -> Iterator[str]:
    python = FOLDER / "py" / "bin" / "python"
    if not (FOLDER / "py" / ".complete").exists():
        absent("a small model", "run scripts/services/install-llm.sh")
    with (
        (tmp_path / "log").open("wb") as log,
        subprocess.Popen([python, SERVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log) as server,
    ):
        try:
            assert server.stdout is not None
            address = server.stdout.readline().decode().strip()
            assert address, (tmp_path / "log").read_text()[-2000:]
            yield f"{address}/v1"
        finally:
            server.kill()


@pytest.fixture
def weather() -> Iterator[None]:
    schema = {"description": "The weather of a city.", "parameters": parameters(["city"], city={"type": "string"})}
    registry.register(name="weather", toolset="realmodel", schema=schema, handler=lambda args, **_: "sunny")
    yield
    registry.deregister("weather")


def test_a_real_models_messy_output_is_survived(base_url: str, weather: None, tmp_path: Path) -> None:
    store = SessionStore(tmp_path / "sessions.db")

    def agent(**options: Any) -> Agent:
        model = OpenAIChat("small", base_url=base_url, context_tokens=4_000, options=options)
        return Agent(
            default(),
            [model],
            store=store,
            toolsets=["realmodel"],
            identity="You are helpful.",
            cwd=str(tmp_path),
            budgets=Budgets(model_calls=2),
        )

    heard: list[Any] = []
    ended = agent().run("What is the weather in Paris?", heard.append)
    assert ended.end in (End.ANSWERED, End.TURNS), ended
    assert ended.usage.output_tokens > 0
    assert any(isinstance(event, TextDelta | ToolEnded) for event in heard)

    heard.clear()
    forced = agent(response_format=WRITES_CALLS)
    ended = forced.run("What is the weather in Paris?", heard.append)
    assert ended.end in (End.ANSWERED, End.TURNS), ended
    assert [event.tool for event in heard if isinstance(event, ToolEnded)][:1] == ["weather"]
    messages = [each.message for each in store.messages(forced.session_id)]
    calls = [call["id"] for message in messages for call in message.get("tool_calls") or ()]
    assert calls == [message["tool_call_id"] for message in messages if message["role"] == "tool"]
    store.close()
