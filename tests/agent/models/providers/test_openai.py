"""The OpenAI client against a real HTTP server of ours, with its faults."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any

import anthropic
import openai
import pytest

from handrail.agent.events import Notice, TextDelta, Usage
from handrail.agent.models.base import Answer, ModelRequests, Piece, TextPiece
from handrail.agent.models.http_client import _event_data
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


def pieces(model: OpenAIChat) -> list[Piece]:
    async def run() -> list[Piece]:
        return [piece async for piece in model.stream([{"role": "user", "content": "hi"}], [])]

    return asyncio.run(run())


@contextlib.contextmanager
def StreamServer(parts: Sequence[bytes]) -> Iterator[str]:  # noqa: N802  like ModelServer
    """One answer, with each part in a packet of its own."""

    def serve() -> None:
        with contextlib.suppress(OSError), listening.accept()[0] as connection:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            while b"}" not in connection.recv(1 << 16):
                pass
            connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n")
            for part in parts:
                connection.sendall(part)

    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=serve)
        thread.start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/v1"
        thread.join()


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
    ("event", "said"),
    [
        ({"error": {"message": "overloaded", "code": 503}}, "overloaded"),
        ({"error": "no room"}, "no room"),
        ({"choices": [{"delta": {"tool_calls": [7]}}]}, "broke off"),
        ([1], "broke off"),
    ],
)
def test_an_error_within_the_answer_is_told_and_tried_again(event: object, said: str) -> None:
    with StreamServer([b"data: %s\n\n" % json.dumps(event).encode()]) as url, pytest.raises(ModelError) as raised:
        pieces(OpenAIChat("m", base_url=url))
    assert said in str(raised.value)
    assert raised.value.retryable


def test_events_are_read_however_they_are_cut_and_ended() -> None:
    parts = [": a comment\r\n\r\n", event_of("a\u2028b\x85c"), event_of("d").replace("\n", "\r"), event_of("", "stop")]
    sent = "".join(parts).encode()
    for size in (1, 2, 3, 7, len(sent)):
        with StreamServer([sent[start : start + size] for start in range(0, len(sent), size)]) as url:
            found = pieces(OpenAIChat("m", base_url=url))
        assert "".join(piece.text for piece in found if isinstance(piece, TextPiece)) == "a\u2028b\x85cd"


def test_a_long_line_is_read_in_time_that_grows_with_its_length_only() -> None:
    def seconds(count: int) -> float:
        async def sent() -> AsyncIterator[bytes]:
            for piece in (b"data: ", *[b"x" * 1024] * count, b"\n\n"):
                yield piece

        async def read() -> list[bytes]:
            return [data async for data in _event_data(sent())]

        began = time.process_time()
        assert asyncio.run(read()) == [b"x" * 1024 * count]
        return time.process_time() - began

    assert min(seconds(1_600) for _ in range(2)) < 30 * max(seconds(200), 0.002)


def event_of(text: str, finish: str | None = None) -> str:
    choice = {"delta": {"content": text}, "finish_reason": finish}
    return f"data: {json.dumps({'choices': [choice]}, ensure_ascii=False)}\n\n"


def test_nothing_is_read_after_the_end_of_an_answer() -> None:
    end = [event_of("fine", "stop").encode(), b"data: [DONE]\n\n", b'data: {"error": "too late"}\n\n']
    with StreamServer(end) as url:
        assert pieces(OpenAIChat("m", base_url=url))[0] == TextPiece("fine")


def test_without_its_package_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "httpx", None)
    with pytest.raises(ModelError, match=r"pip install 'handrail\[agent\]'"):
        pieces(OpenAIChat("m", base_url="http://127.0.0.1:1/v1"))


def test_a_redirect_is_not_followed_as_it_would_get_the_key() -> None:
    with (
        ModelServer([ModelReply("never")]) as other,
        ModelServer([Fault(307, headers={"location": f"{other.base_url}/x"})]) as server,
    ):
        with pytest.raises(ModelError, match="answers 307"):
            ask(server, attempts=1)
        assert not other.requests


def test_the_real_clients_understand_the_server_that_stands_in_for_a_provider() -> None:
    reply = ModelReply("hello", [call("say", "c1", text="x")])
    with ModelServer([reply, reply]) as server:
        with openai.OpenAI(base_url=server.base_url, api_key="k") as client:
            (choice,) = client.chat.completions.create(model="m", messages=[{"role": "user", "content": "hi"}]).choices
        assert choice.message.content == "hello"
        assert choice.message.tool_calls
        with anthropic.Anthropic(base_url=server.base_url.removesuffix("/v1"), api_key="k") as claude:
            asked: Any = {"model": "m", "max_tokens": 10, "messages": [{"role": "user", "content": "hi"}]}
            with claude.messages.stream(**asked) as stream:
                message = stream.get_final_message()
        assert [block.type for block in message.content] == ["text", "tool_use"]


def test_a_wrong_key_is_said_with_what_to_do_and_is_not_shown() -> None:
    with ModelServer([], key="right") as server, pytest.raises(ModelError, match="OPENAI_API_KEY") as raised:
        ask(server, key="wrong-secret")
    assert "wrong-secret" not in str(raised.value)


LOADED = """
import asyncio, sys
from handrail.agent.models.http_client import _event_data
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
