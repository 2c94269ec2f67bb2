"""What a model's server should not send, over real HTTP, and the turn that survives it."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from handrail.agent.agent import Agent
from handrail.agent.events import End, Notice, ToolEnded, ToolStarted
from handrail.agent.models.providers.openai import OpenAIChat
from handrail.core.registry import registry
from handrail.model_tools import default
from handrail.store.sessions import SessionStore
from handrail.testing import Fault, ModelReply, ModelServer, Raw, ScriptedModel, call
from tests.support import parameters, takes_less_than, wait_until


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer() as server:
        yield server


@pytest.fixture
def agent(server: ModelServer, tmp_path: Path) -> Iterator[Callable[..., Agent]]:
    store = SessionStore(tmp_path / "sessions.db")

    def make(**more: Any) -> Agent:
        one = Agent(default(), [OpenAIChat("m", base_url=server.base_url)], store=store, cwd=str(tmp_path), **more)

        async def no_waiting(seconds: float) -> None:
            """A fault is tried again at once."""

        one.loop.requests._sleep = no_waiting
        return one

    yield make
    store.close()


@pytest.fixture
def said() -> Iterator[list[str]]:
    """What the tool `say` was called with."""
    heard: list[str] = []
    schema = {"description": "Say it.", "parameters": parameters(text={"type": "string"})}
    registry.register(
        name="say", toolset="badtest", schema=schema, handler=lambda args, **_: heard.append(args["text"]) or "said"
    )
    yield heard
    registry.deregister("say")


def calls(*numbered: dict[str, Any]) -> dict[str, Any]:
    return {"tool_calls": [{"index": place, **one} for place, one in enumerate(numbered)]}


def test_a_stream_that_is_cut_after_a_whole_call_runs_it_once(
    agent: Callable[..., Agent], server: ModelServer, said: list[str]
) -> None:
    one_call = calls(call("say", "c1", text="hi"))
    server.say(Raw([one_call], finish=None), Fault(500), Raw([one_call], finish="tool_calls"), ModelReply("done"))
    notices: list[str] = []
    one = agent()
    ended = one.run("x", lambda event: notices.append(event.text) if isinstance(event, Notice) else None)
    assert ended.answer == "done"
    assert said == ["hi"]
    assert len(notices) == 2


def test_no_key_is_in_the_files_of_a_session(server: ModelServer, tmp_path: Path) -> None:
    key = "sk-very-secret-key"
    store = SessionStore(tmp_path / "sessions.db")
    server.say(ModelReply("fine"), Fault(401, f"Incorrect API key provided: {key}"))
    model = OpenAIChat("m", base_url=server.base_url, api_key=key)
    with Agent(default(), [model], store=store, cwd=str(tmp_path)) as one:
        assert one.run("x").answer == "fine"
        assert "[the key]" in one.run("y").reason
    assert server.keys == [key, key]
    files = [path.read_bytes() for path in tmp_path.glob("sessions.db*")]
    assert any(b"[the key]" in data for data in files)
    assert not any(key.encode() in data for data in files)
    store.close()


@pytest.mark.parametrize(
    "deltas",
    [
        [calls(*(call("say", f"c{number}", text="x") for number in range(10_000)))],
        [{"content": "x" * 50_000_000}],
        [calls({"id": "c", "function": {"name": "say", "arguments": "y" * 3_000_000}})],
    ],
    ids=["ten thousand calls", "fifty million characters", "endless arguments"],
)
def test_too_much_is_refused_and_the_next_turn_works(
    agent: Callable[..., Agent], server: ModelServer, said: list[str], deltas: Any
) -> None:
    one = agent()
    server.say(Raw(deltas, "tool_calls"))
    ended = one.run("x")
    assert ended.end is End.FAILED
    assert "was stopped" in ended.reason
    assert said == []
    server.say(ModelReply("fine"))
    assert one.run("y").answer == "fine"


def test_wrong_roles_and_calls_without_a_name_are_survived(agent: Callable[..., Agent], server: ModelServer) -> None:
    nameless = calls({"id": "c1", "function": {"name": "", "arguments": "{}"}}, {"id": None, "function": None})
    server.say(Raw([{"role": "tool"}, nameless], "tool_calls"), Raw([{"role": "system", "content": "done"}]))
    ended = agent().run("x")
    assert ended.answer == "done"
    answers = [each for each in server.requests[1]["messages"] if each["role"] == "tool"]
    assert len(answers) == 2
    assert {json.loads(each["content"])["error_type"] for each in answers} <= {"unknown_tool", "invalid_arguments"}


def test_an_interrupt_does_not_wait_for_a_server_that_hangs(agent: Callable[..., Agent], server: ModelServer) -> None:
    server.say(Fault(hang=600))
    one = agent()
    thread = threading.Thread(target=lambda: (wait_until(lambda: server.requests), one.interrupt()))
    thread.start()
    with takes_less_than(30):
        assert one.run("x").end is End.INTERRUPTED
    thread.join()
    server.say(ModelReply("here"))
    assert one.run("still there?").answer == "here"


def test_many_sessions_at_once_do_not_mix(said: list[str], tmp_path: Path) -> None:
    store = SessionStore(tmp_path / "many.db")

    def make(number: int) -> Agent:
        replies = [ModelReply("", [call("say", text=f"{number}")]), ModelReply(f"answer {number}")]
        return Agent(default(), [ScriptedModel(replies)], store=store, toolsets=["badtest"])

    agents = [make(number) for number in range(30)]

    async def run() -> list[str]:
        return [ended.answer for ended in await asyncio.gather(*(one.arun("go") for one in agents))]

    assert asyncio.run(run()) == [f"answer {number}" for number in range(30)]
    assert sorted(said, key=int) == [f"{number}" for number in range(30)]
    for number, one in enumerate(agents):
        assert [each.arguments for each in store.calls(one.session_id)] == [{"text": f"{number}"}]
    store.close()


def test_every_call_that_began_is_told_to_have_ended(agent: Callable[..., Agent], server: ModelServer) -> None:
    """Also one that was given up: who shows them would show it as running for ever."""
    server.say(
        ModelReply("", [call("terminal", "c1", command="sleep 600"), call("terminal", "c2", command="sleep 600")])
    )
    events: list[Any] = []
    one = agent()

    def listen(event: Any) -> None:
        events.append(event)
        if isinstance(event, ToolStarted) and event.call_id == "c1":
            interrupter.start()

    def interrupt() -> None:
        wait_until(lambda: default().environments.peek(one.session_id) is not None)
        one.interrupt()

    interrupter = threading.Thread(target=interrupt)
    assert one.run("x", listen).end is End.INTERRUPTED
    interrupter.join()
    one.close()
    ended = {event.call_id: event.error_type for event in events if isinstance(event, ToolEnded)}
    assert ended == {"c1": "cancelled", "c2": "cancelled"}
