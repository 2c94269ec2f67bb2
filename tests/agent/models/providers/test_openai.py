"""The OpenAI client against a real HTTP server of ours, with its faults."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from typing import Any

import httpx2
import openai
import pytest

from handrail.agent.events import Notice, TextDelta, Usage
from handrail.agent.models.base import Answer, ModelRequests
from handrail.agent.models.http_client import reason
from handrail.agent.models.providers.openai import OpenAIChat
from handrail.errors import ModelError
from handrail.testing import ModelReply, call
from handrail.testing.model_server import Fault, ModelServer


def ask(
    server: ModelServer, *, attempts: int = 3, key: str = "k", timeout: float = 30
) -> tuple[list[Any], list[float]]:
    waited: list[float] = []

    async def sleep(seconds: float) -> None:
        waited.append(seconds)

    async def run() -> list[Any]:
        model = OpenAIChat("scripted", base_url=server.base_url, api_key=key, request_timeout=timeout)
        requests = ModelRequests([model], attempts=attempts, sleep=sleep)
        return [event async for event in requests.ask([{"role": "user", "content": "hi"}], [])]

    return asyncio.run(run()), waited


def test_an_answer_comes_in_pieces_with_its_calls_and_cost() -> None:
    with ModelServer([ModelReply("hello there, you", [call("say", "c1", text="x")])]) as server:
        events, _ = ask(server)
    assert "".join(event.text for event in events if isinstance(event, TextDelta)) == "hello there, you"
    answer = events[-1]
    assert isinstance(answer, Answer)
    assert answer.message["tool_calls"] == [call("say", "c1", text="x")]
    assert answer.usage == Usage(10, 5)
    assert server.keys == ["k"]


@pytest.mark.parametrize("fault", [Fault(429), Fault(500), Fault(503), Fault(cut_after=2), Fault(garbage=True)])
def test_a_fault_that_may_pass_is_tried_again(fault: Fault) -> None:
    with ModelServer([fault, ModelReply("fine")]) as server:
        events, waited = ask(server)
    assert events[-1].message["content"] == "fine"
    assert len(waited) == 1
    assert any(isinstance(event, Notice) for event in events)


def test_the_server_says_how_long_to_wait() -> None:
    with ModelServer([Fault(429, headers={"retry-after": "17"}), ModelReply("fine")]) as server:
        assert ask(server)[1] == [17]


@pytest.mark.parametrize(
    ("fault", "said"), [(Fault(400, "odd request"), "answers 400: odd request"), (Fault(404), "handrail model list")]
)
def test_a_fault_that_stays_is_said_at_once(fault: Fault, said: str) -> None:
    with ModelServer([fault, ModelReply("never")]) as server, pytest.raises(ModelError, match=said):
        ask(server)


@pytest.mark.parametrize(
    ("message", "body", "said"),
    [
        ("Error code: 429 - slow down", {"message": "slow down"}, "slow down"),
        ("Error code: 422", {"detail": "no such field"}, '{"detail": "no such field"}'),
        ("Error code: 502", "<html>\n  bad gateway", "<html> bad gateway"),
        ("Error code: 500", None, "it gave no reason"),
    ],
)
def test_what_a_server_says_is_told_wherever_it_says_it(message: str, body: object, said: str) -> None:
    request = httpx2.Request("POST", "http://127.0.0.1/v1")
    error = openai.APIStatusError(message, response=httpx2.Response(500, request=request), body=body)
    assert reason(error) == said


def test_a_wrong_key_is_said_with_what_to_do_and_is_not_shown() -> None:
    with ModelServer([], key="right") as server, pytest.raises(ModelError, match="OPENAI_API_KEY") as raised:
        ask(server, key="wrong-secret")
    assert "wrong-secret" not in str(raised.value)


LOADED = """
import asyncio, sys
from handrail.agent.models.providers.openai import OpenAIChat
from handrail.errors import ModelError
model = OpenAIChat("m", base_url="http://127.0.0.1:1/v1", api_key="k")
model.load()
before = len(sys.modules)
async def ask():
    try:
        async for _ in model.stream([{"role": "user", "content": "hi"}], []):
            pass
    except ModelError:
        print(len(sys.modules) - before)
asyncio.run(ask())
"""


def test_what_takes_long_to_load_can_be_loaded_ahead() -> None:
    ran = subprocess.run([sys.executable, "-c", LOADED], capture_output=True, text=True, check=True, timeout=120)
    assert int(ran.stdout) < 50, "else the first question waits for hundreds of modules"


def test_a_server_that_is_not_there_is_named() -> None:
    with ModelServer() as server:
        url = server.base_url
    gone = OpenAIChat("scripted", base_url=url, api_key="k")

    async def run() -> None:
        async for _ in ModelRequests([gone], attempts=1).ask([{"role": "user", "content": "hi"}], []):
            pass

    with pytest.raises(ModelError, match="cannot be reached"):
        asyncio.run(run())


def test_one_that_never_answers_is_given_up() -> None:
    with ModelServer([Fault(hang=60)]) as server, pytest.raises(ModelError, match="in time"):
        ask(server, attempts=1, timeout=0.3)
