"""The loop with a scripted model and real tools."""

from __future__ import annotations

import asyncio
import itertools
import json
import threading
from collections.abc import AsyncIterator, Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from handrail.agent.agent import Agent
from handrail.agent.delegation import MAX_AT_ONCE
from handrail.agent.events import (
    Budgets,
    End,
    Event,
    MessageEnded,
    Notice,
    TextDelta,
    ToolEnded,
    ToolProgress,
    ToolStarted,
    TurnEnded,
    Usage,
)
from handrail.agent.models.base import CallPiece, Finished, Piece, TextPiece
from handrail.approval.approvers.prompt import question
from handrail.core.registry import registry
from handrail.errors import ModelError
from handrail.model_tools import default
from handrail.protocols import Decision
from handrail.store.sessions import SessionStore
from handrail.testing import ModelReply, RecordingApprover, ScriptedModel, call
from handrail.types import ToolContext
from tests.support import PATIENCE_SECONDS, parameters, wait_until


class Told:
    """A listener that keeps everything."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def __call__(self, event: Event) -> None:
        self.events.append(event)

    def of(self, kind: type) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind)]


class Streams:
    """A model whose answers are lists of pieces; an exception in the list is raised there, a function is called."""

    name = "streams"
    context_tokens = 100_000

    def __init__(self, *answers: Iterable[Any]) -> None:
        self._answers = iter(answers)
        self.asked: list[list[Any]] = []

    async def stream(self, messages: Any, tools: Any) -> AsyncIterator[Piece]:
        self.asked.append(list(messages))
        for piece in next(self._answers):
            if isinstance(piece, Exception):
                raise piece
            if callable(piece) and not isinstance(piece, tuple):
                await piece()
                continue
            yield piece


@pytest.fixture
def store(tmp_path: Path) -> Any:
    store = SessionStore(tmp_path / "sessions.db")
    yield store
    store.close()


@pytest.fixture
def agent(store: SessionStore, tmp_path: Path) -> Callable[..., Agent]:
    def make(*replies: Any, **more: Any) -> Agent:
        models = [replies[0]] if replies and hasattr(replies[0], "stream") else [ScriptedModel(replies)]
        return Agent(default(), more.pop("models", models), store=store, cwd=str(tmp_path), **more)

    return make


@pytest.fixture
def tool() -> Any:
    """Register tools for one test."""
    names: list[str] = []

    def add(name: str, handler: Callable[..., Any], **more: Any) -> None:
        names.append(name)
        schema = {"description": "A tool.", "parameters": parameters(text={"type": "string"})}
        registry.register(name=name, toolset="looptest", schema=schema, handler=handler, **more)

    yield add
    for name in names:
        registry.deregister(name)


def test_a_model_that_fails_as_no_model_should_ends_the_turn_and_not_the_agent(agent: Any) -> None:
    one = agent(Streams([TextPiece("Well"), KeyError("choices")], [TextPiece("Here I am."), Finished()]))
    ended = one.run("hello")
    assert ended.end is End.FAILED
    assert ended.reason == "streams failed: KeyError: 'choices'"
    assert one.run("and now?").answer == "Here I am."


def test_calls_are_run_and_answered_until_the_model_is_done(agent: Any, tmp_path: Path, store: SessionStore) -> None:
    path = str(tmp_path / "a.txt")
    one = agent(
        ModelReply("I write.", [call("write_file", path=path, content="hello")]),
        ModelReply("", [call("read_file", path=path)]),
        ModelReply("It says hello."),
    )
    told = Told()
    ended = one.run("write and read", told)
    assert (ended.end, ended.answer, ended.model_calls) == (End.ANSWERED, "It says hello.", 3)
    assert Path(path).read_text() == "hello"
    assert [event.tool for event in told.of(ToolStarted)] == ["write_file", "read_file"]
    assert [event.error_type for event in told.of(ToolEnded)] == ["", ""]
    roles = [each.message["role"] for each in store.messages(one.session_id)]
    assert roles == ["user", "assistant", "tool", "assistant", "tool", "assistant"]
    assert [each.tool for each in store.calls(one.session_id)] == ["write_file", "read_file"]
    assert store.get(one.session_id).title == "write and read"


def test_the_next_turn_knows_the_last(agent: Any) -> None:
    model = ScriptedModel([ModelReply("one"), ModelReply("two")])
    one = agent(models=[model])
    one.run("first")
    one.run("second")
    assert [each["content"] for each in model.sent[1].messages[1:]] == ["first", "one", "second"]
    assert model.sent[0].messages[0] == model.sent[1].messages[0]  # a provider remembers what begins the same


def test_a_session_goes_on_in_another_process(agent: Any, store: SessionStore, tmp_path: Path) -> None:
    first = agent(ModelReply("one"))
    first.run("hello")
    model = ScriptedModel([ModelReply("two")])
    again = SessionStore(tmp_path / "sessions.db")
    later = Agent(default(), [model], store=again, session=again.get(first.session_id), cwd=str(tmp_path))
    later.run("and?")
    assert [each["content"] for each in model.sent[0].messages[1:]] == ["hello", "one", "and?"]
    again.close()


def test_text_comes_in_pieces_and_cost_is_added_up(agent: Any, store: SessionStore) -> None:
    told = Told()
    one = agent(Streams([TextPiece("a"), TextPiece("b"), Finished(Usage(10, 3, 4, 0.25))]))
    ended = one.run("x", told)
    assert [event.text for event in told.of(TextDelta)] == ["a", "b"]
    assert ended.usage == Usage(10, 3, 4, 0.25)
    assert store.get(one.session_id)[-3:] == (10, 3, 0.25)


def test_a_call_may_come_in_pieces(agent: Any, tool: Any) -> None:
    tool("say", lambda args, **_: f"said {args['text']}")
    pieces = [
        CallPiece(0, "c1", "say", ""),
        CallPiece(0, arguments='{"te'),
        CallPiece(0, arguments='xt": "hi"}'),
        Finished(),
    ]
    told = Told()
    agent(Streams(pieces, [TextPiece("ok"), Finished()])).run("x", told)
    assert [(event.call_id, event.result) for event in told.of(ToolEnded)] == [("c1", "said hi")]


# What models really send


def test_broken_arguments_and_unknown_tools_are_told_to_the_model(agent: Any) -> None:
    broken = {"id": "c1", "type": "function", "function": {"name": "read_file", "arguments": '{"path": '}}
    model = ScriptedModel([ModelReply("", [broken]), ModelReply("", [call("raed_file", path="x")]), ModelReply("done")])
    assert agent(models=[model]).run("x").answer == "done"
    errors = [json.loads(each["content"]) for each in model.sent[2].messages if each["role"] == "tool"]
    assert [error["error_type"] for error in errors] == ["invalid_arguments", "unknown_tool"]


def test_double_and_missing_ids_become_ids_of_their_own(agent: Any, tool: Any) -> None:
    tool("say", lambda args, **_: "said")
    calls = [
        {**call("say", text="a"), "id": "same"},
        {**call("say", text="b"), "id": "same"},
        {**call("say"), "id": ""},
    ]
    model = ScriptedModel([ModelReply("", calls), ModelReply("", [{**call("say"), "id": "same"}]), ModelReply("done")])
    agent(models=[model]).run("x")
    sent = model.sent[2].messages
    ids = [each["id"] for message in sent for each in message.get("tool_calls", ())]
    assert len(set(ids)) == len(ids) == 4
    assert [message["tool_call_id"] for message in sent if message["role"] == "tool"] == ids


@pytest.mark.parametrize(
    "text",
    [
        'Sure. <tool_call>{"name": "say", "arguments": {"text": "hi"}}</tool_call>',
        '<tool_call>\n{"name": "say", "arguments": {"text": "hi"}}\n',
        '<function=say>{"text": "hi"}</function>',
        '[TOOL_CALLS] [{"name": "say", "arguments": {"text": "hi"}}]',
        '<function_calls><invoke name="say"><parameter name="text">hi</parameter></invoke></function_calls>',
        '<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>say\n```json\n{"text": "hi"}\n```'
        "<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
        '{"name": "say", "parameters": {"text": "hi"}}',
        '```json\n{"name": "say", "arguments": {"text": "hi"}}\n```',
        '<|python_tag|>{"name": "say", "parameters": {"text": "hi"}}',
    ],
)
def test_calls_that_were_written_as_text_are_run(agent: Any, tool: Any, text: str) -> None:
    tool("say", lambda args, **_: f"said {args['text']}")
    told = Told()
    agent(ModelReply(text), ModelReply("done")).run("x", told)
    assert [event.result for event in told.of(ToolEnded)] == ["said hi"]
    assert told.of(Notice)


@pytest.mark.parametrize(
    "text",
    [
        'Write <tool_call>{"name": "no_such", "arguments": {}}</tool_call>',
        "<tool_call>{}</tool_call>",
        "say(hi)",
        'One would send ```json\n{"name": "say", "arguments": {}}\n``` to it.',
        '{"name": "Ada", "age": 36}',
        "[TOOL_CALLS] [not json]",
    ],
)
def test_text_that_only_looks_like_a_call_is_text(agent: Any, tool: Any, text: str) -> None:
    tool("say", lambda args, **_: "said")
    assert agent(ModelReply(text)).run("x").answer == text


def test_an_empty_answer_is_asked_for_again_and_in_the_end_given_up(agent: Any) -> None:
    assert agent(ModelReply(""), ModelReply("  "), ModelReply("now")).run("x").answer == "now"
    ended = agent(*[ModelReply("")] * 5).run("x")
    assert ended.end is End.FAILED
    assert "empty" in ended.reason


def test_ten_thousand_calls_at_once_are_refused(agent: Any) -> None:
    pieces = [CallPiece(number, f"c{number}", "todo", "{}") for number in range(10_000)]
    ended = agent(Streams([*pieces, Finished()])).run("x")
    assert ended.end is End.FAILED
    assert "128 calls" in ended.reason


def test_an_endless_answer_is_stopped(agent: Any) -> None:
    def endless() -> Any:
        while True:
            yield TextPiece("x" * 10_000)

    ended = agent(Streams(endless())).run("x")
    assert ended.end is End.FAILED
    assert "characters" in ended.reason


def test_the_same_failing_call_is_noticed_and_stopped(agent: Any) -> None:
    model = ScriptedModel([ModelReply("", [call("read_file", path="/proc/nowhere")]) for _ in range(20)])
    told = Told()
    ended = agent(models=[model]).run("x", told)
    assert ended.end is End.INTERRUPTED
    assert "read_file failed 8 times" in ended.reason
    hinted = json.loads(model.sent[3].messages[-1]["content"])
    assert "3 times" in hinted["hint"]


def test_a_tool_that_was_not_offered_is_not_run(agent: Any, tmp_path: Path) -> None:
    path = tmp_path / "made"
    model = ScriptedModel([ModelReply("", [call("write_file", path=str(path), content="x")]), ModelReply("done")])
    told = Told()
    agent(models=[model], toolsets=["safe"]).run("x", told)
    assert not path.exists()
    assert told.of(ToolEnded)[0].error_type == "unknown_tool"
    assert "not one of your tools" in model.sent[1].messages[-1]["content"]


def test_news_of_background_processes_reach_the_model(agent: Any, store: SessionStore) -> None:
    told = threading.Event()
    default().processes.on_notice(lambda notice: told.set())

    def wait_for_end(messages: Any, tools: Any) -> ModelReply:
        wait_until(told.is_set)
        return ModelReply("", [call("todo", todos=[])])

    model = ScriptedModel(
        [
            ModelReply("", [call("terminal", command="echo built", background=True, notify_on_complete=True)]),
            wait_for_end,
            ModelReply("done"),
        ]
    )
    one = agent(models=[model])
    one.run("build it")
    said = [each["content"] for each in model.sent[2].messages if each["role"] == "user"]
    assert any("[Notification, not from the user] Background process" in each and "built" in each for each in said)


def test_the_list_is_there_again_when_a_session_goes_on(agent: Any, store: SessionStore) -> None:
    one = agent(ModelReply("", [call("todo", todos=[{"id": "1", "content": "look"}])]), ModelReply("ok"))
    one.run("x")
    later = agent(ModelReply("hi"), session=store.get(one.session_id))
    assert [(item.id, item.content) for item in later.todos.items()] == [("1", "look")]


def test_the_agents_folder_is_where_its_commands_run(agent: Any, tmp_path: Path) -> None:
    model = ScriptedModel([ModelReply("", [call("terminal", command="pwd")]), ModelReply("ok")])
    with agent(models=[model]) as one:
        one.run("where?")
    assert json.loads(model.sent[1].messages[-1]["content"])["output"].strip() == str(tmp_path)
    assert str(tmp_path) in model.sent[0].messages[0]["content"]


# Faults of the model's server


def no_waiting(one: Agent) -> list[float]:
    waited: list[float] = []

    async def sleep(seconds: float) -> None:
        waited.append(seconds)

    one.loop.requests._sleep = sleep
    return waited


def test_a_fault_is_tried_again_and_no_tool_runs_twice(agent: Any, tool: Any) -> None:
    ran: list[str] = []
    tool("say", lambda args, **_: ran.append(args["text"]) or "said")
    call_pieces = [CallPiece(0, "c1", "say", '{"text": "hi"}')]
    one = agent(
        Streams(
            [TextPiece("half"), *call_pieces, ModelError("cut", retryable=True)],
            [*call_pieces, Finished()],
            [ModelError("busy", retryable=True, retry_after=7)],
            [TextPiece("done"), Finished()],
        )
    )
    waited = no_waiting(one)
    told = Told()
    assert one.run("x", told).answer == "done"
    assert ran == ["hi"]
    assert waited[1] == 7
    assert "discarding it" in told.of(Notice)[0].text
    assert "half" not in str(one.loop.conversation.messages)


def test_what_cannot_be_cured_is_said_at_once(agent: Any) -> None:
    one = agent(Streams([ModelError("refuses the key; set OPENAI_API_KEY")]))
    waited = no_waiting(one)
    ended = one.run("x")
    assert (ended.end, ended.reason) == (End.FAILED, "refuses the key; set OPENAI_API_KEY")
    assert waited == []


def test_another_model_is_asked_when_the_first_does_not_answer(agent: Any) -> None:
    one = agent(models=[Streams(*[[ModelError("down", retryable=True)]] * 4), Streams([TextPiece("hi"), Finished()])])
    no_waiting(one)
    assert one.run("x").answer == "hi"


def test_who_is_told_to_wait_for_long_asks_another_model_at_once(agent: Any) -> None:
    busy = Streams([ModelError("busy", retryable=True, retry_after=3_600)])
    one = agent(models=[busy, Streams([TextPiece("hi"), Finished()])])
    assert no_waiting(one) == []
    assert one.run("x").answer == "hi"


def test_a_full_disk_ends_the_turn_with_a_reason_and_the_next_goes_on(
    agent: Any, store: SessionStore, tool: Any
) -> None:
    def fill(args: Any, **_: Any) -> str:
        store.rows("PRAGMA max_page_count=1")  # the file may not grow any more: what a full disk is for SQLite
        return "x" * 20_000

    tool("fill", fill)
    model = ScriptedModel([ModelReply("", [call("fill", "c1")]), ModelReply("fine")])
    one = agent(models=[model])
    ended = one.run("x")
    assert ended.end is End.FAILED
    assert "sessions.db" in ended.reason
    assert "make room on its disk" in ended.reason
    store.rows("PRAGMA max_page_count=1000000")
    assert one.run("y").answer == "fine"
    answers = [each for each in model.sent[1].messages if each["role"] == "tool"]
    assert [each["tool_call_id"] for each in answers] == ["c1"]


def test_a_conversation_that_the_server_finds_too_long_is_shortened_and_sent_again(agent: Any) -> None:
    refused = ModelError("400: maximum context length is 2048 tokens", too_long=True)
    model = Streams(
        [TextPiece("a" * 9_000), Finished()], [refused], [TextPiece("SUM"), Finished()], [TextPiece("ok"), Finished()]
    )
    one = agent(model)
    one.run("first " + "x" * 9_000)
    assert one.run("second").answer == "ok"
    assert len(str(model.asked[-1])) < len(str(model.asked[1])) / 2


def test_after_a_failure_the_conversation_goes_on(agent: Any) -> None:
    one = agent(Streams([ModelError("no")], [TextPiece("hi"), Finished()]))
    one.run("x")
    assert one.run("y").answer == "hi"


# Interrupting and budgets


def test_an_interrupt_stops_the_calls_and_leaves_a_whole_conversation(agent: Any, tool: Any) -> None:
    started = threading.Event()

    def slow(args: Any, context: ToolContext, **_: Any) -> str:
        started.set()
        context.cancel.wait(PATIENCE_SECONDS)
        return "late"

    tool("slow", slow)
    model = ScriptedModel(
        [ModelReply("", [call("slow"), call("read_file", path="/proc/nowhere")]), ModelReply("after")]
    )
    one = agent(models=[model])
    interrupter = threading.Thread(target=lambda: (started.wait(PATIENCE_SECONDS), one.interrupt("stop")))
    interrupter.start()
    ended = one.run("x")
    interrupter.join()
    assert (ended.end, ended.reason) == (End.INTERRUPTED, "stop")
    assert one.run("go on").answer == "after"
    calls = [each["id"] for message in model.sent[1].messages for each in message.get("tool_calls", ())]
    answers = [message["tool_call_id"] for message in model.sent[1].messages if message["role"] == "tool"]
    assert calls == answers


def test_the_wait_for_an_answer_that_never_came_is_no_running_time(agent: Any, tmp_path: Path) -> None:
    class Nobody:
        name = "nobody"

        async def decide(self, request: Any) -> None:
            asyncio.get_running_loop().call_later(0.3, one.interrupt, "stop")
            await asyncio.Event().wait()

    default().runtime.approver = Nobody()
    (tmp_path / "precious").mkdir()
    one = agent(ModelReply("", [call("terminal", command="rm -rf precious")]), ModelReply("after"))
    told = Told()
    assert one.run("x", told).end is End.INTERRUPTED
    (ended,) = told.of(ToolEnded)
    assert 0.3 <= ended.waited <= ended.seconds


def test_an_interrupt_while_the_model_writes_keeps_what_it_wrote(agent: Any) -> None:
    async def wait() -> None:
        threading.Timer(0, one.interrupt).start()
        await asyncio.sleep(PATIENCE_SECONDS)

    one = agent(Streams([TextPiece("so far"), wait], [TextPiece("then"), Finished()]))
    assert one.run("x").end is End.INTERRUPTED
    assert one.loop.conversation.messages[-1] == {"role": "assistant", "content": "so far"}
    assert one.run("y").answer == "then"


@pytest.mark.parametrize(
    ("budgets", "end"),
    [
        (Budgets(model_calls=2), End.TURNS),
        (Budgets(tokens=100), End.TOKENS),
        (Budgets(cost=0.5), End.COST),
        (Budgets(seconds=0), End.TIME),
    ],
)
def test_a_budget_ends_the_turn(agent: Any, tool: Any, budgets: Budgets, end: End) -> None:
    tool("say", lambda args, **_: "said")
    again = [[CallPiece(0, "", "say", "{}"), Finished(Usage(60, 10, 0, 0.4))] for _ in range(10)]
    ended = agent(Streams(*again), budgets=budgets).run("x")
    assert ended.end is end
    assert ended.model_calls <= 2


def test_a_call_that_takes_longer_than_the_turn_may_is_stopped(agent: Any, tool: Any) -> None:
    def slow(args: Any, context: ToolContext, **_: Any) -> str:
        context.cancel.wait(PATIENCE_SECONDS)
        return "stopped" if context.cancel.cancelled else "never told"

    def late(messages: Any, tools: Any) -> ModelReply:
        one.loop.turn._began -= 599.9  # a slow model
        return ModelReply("", [call("slow")])

    tool("slow", slow)
    told = Told()
    one = agent(late, budgets=Budgets(seconds=600))
    ended = one.run("x", told)
    assert (ended.end, ended.model_calls) == (End.TIME, 1)
    assert [event.error_type for event in told.of(ToolEnded)] == ["timeout"]
    assert one.loop.conversation.open_calls() == []


def test_what_was_written_when_the_time_was_over_is_kept(agent: Any) -> None:
    one = agent(Streams([TextPiece("so far"), asyncio.Event().wait]), budgets=Budgets(seconds=3))
    assert one.run("x").end is End.TIME
    assert one.loop.conversation.messages[-1] == {"role": "assistant", "content": "so far"}


def test_progress_of_a_call_is_told(agent: Any, tool: Any) -> None:
    def work(args: Any, context: ToolContext, **_: Any) -> str:
        context.progress("halfway", 0.5)
        return "done"

    tool("work", work)
    told = Told()
    agent(ModelReply("", [call("work")]), ModelReply("ok")).run("x", told)
    assert [(event.message, event.fraction) for event in told.of(ToolProgress)] == [("halfway", 0.5)]


def test_a_crash_between_call_and_answer_is_mended(agent: Any, store: SessionStore, tmp_path: Path) -> None:
    one = agent(ModelReply("hi"))
    one.run("x")
    store.append(one.session_id, [{"role": "assistant", "content": "", "tool_calls": [call("todo", "c9")]}])
    model = ScriptedModel([ModelReply("fine")])
    later = Agent(default(), [model], store=store, session=store.get(one.session_id), cwd=str(tmp_path))
    assert later.run("go on").answer == "fine"
    tool_messages = [each for each in model.sent[0].messages if each["role"] == "tool"]
    assert json.loads(tool_messages[0]["content"])["error_type"] == "unknown_outcome"


def test_undo_takes_back_the_last_turn(agent: Any) -> None:
    model = ScriptedModel([ModelReply("one"), ModelReply("two"), ModelReply("three")])
    one = agent(models=[model])
    one.run("first")
    one.run("second")
    assert one.loop.conversation.undo() == "second"
    one.run("other")
    assert [each["content"] for each in model.sent[2].messages[1:]] == ["first", "one", "other"]


# The tools that need the agent


def test_the_agents_own_tools_work(agent: Any, home: Path) -> None:
    model = ScriptedModel(
        [
            ModelReply("", [call("todo", todos=[{"id": "1", "content": "look"}])]),
            ModelReply("", [call("memory", action="add", content="the tests need a lamp")]),
            ModelReply("", [call("session_search", query="lamp")]),
            ModelReply("done"),
        ]
    )
    one = agent(models=[model])
    one.run("remember the lamp")
    answers = [json.loads(each["content"]) for each in model.sent[3].messages if each["role"] == "tool"]
    assert answers[0]["todos"][0]["content"] == "look"
    assert answers[1]["entries"] == ["the tests need a lamp"]
    assert answers[2]["hits"][0]["session"] == one.session_id
    later = ScriptedModel([ModelReply("x")])
    agent(models=[later]).run("hi")
    assert "the tests need a lamp" in later.sent[0].messages[0]["content"]


def test_children_work_beside_each_other_and_give_summaries(agent: Any, store: SessionStore, tool: Any) -> None:
    together = threading.Barrier(2)

    def answer(messages: Any, tools: Any) -> ModelReply:
        names = {each["function"]["name"] for each in tools}
        goal = messages[1]["content"]
        if goal == "parent":
            if messages[-1]["role"] == "tool":
                return ModelReply(messages[-1]["content"])
            return ModelReply(
                "", [call("delegate_task", tasks=[{"goal": "left"}, {"goal": "right", "context": "hot"}])]
            )
        assert "clarify" not in names
        assert "memory" not in names
        together.wait(PATIENCE_SECONDS)
        return ModelReply(f"did {goal}")

    one = agent(*[answer] * 4)
    results = json.loads(one.run("parent").answer)["results"]
    assert [(each["status"], each["summary"]) for each in results] == [
        ("completed", "did left"),
        ("completed", "did right\n\nhot"),
    ]
    assert {store.get(each["session_id"]).parent for each in results} == {one.session_id}


def test_what_a_child_calls_is_told_as_progress_of_the_call(agent: Any, tool: Any) -> None:
    tool("say", lambda args, **_: "said", emoji="💬")

    def answer(messages: Any, tools: Any) -> ModelReply:
        if messages[-1]["role"] == "tool":
            return ModelReply("done")
        said = {"parent": call("delegate_task", "c1", goal="look")}
        return ModelReply("", [said.get(messages[1]["content"], call("say", text="hello\nthere"))])

    told = Told()
    agent(answer, answer, answer, answer).run("parent", told)
    assert [(event.call_id, event.message) for event in told.of(ToolProgress)] == [("c1", "[look] 💬 say hello there")]


def test_no_more_children_work_at_once_than_there_are_places(agent: Any) -> None:
    at_work, most, lock, full = 0, 0, threading.Lock(), threading.Barrier(MAX_AT_ONCE)

    def answer(messages: Any, tools: Any) -> ModelReply:
        nonlocal at_work, most
        if messages[1]["content"] == "parent":
            if messages[-1]["role"] == "tool":
                return ModelReply(messages[-1]["content"])
            return ModelReply(
                "", [call("delegate_task", tasks=[{"goal": f"part {n}"} for n in range(2 * MAX_AT_ONCE)])]
            )
        with lock:
            at_work += 1
            most = max(most, at_work)
        full.wait(PATIENCE_SECONDS)  # all places are taken
        with lock:
            at_work -= 1
        return ModelReply("done")

    results = json.loads(agent(*[answer] * (2 + 2 * MAX_AT_ONCE)).run("parent").answer)["results"]
    assert [each["status"] for each in results] == ["completed"] * 2 * MAX_AT_ONCE
    assert most == MAX_AT_ONCE


def test_children_of_children_have_none(agent: Any) -> None:
    seen: list[bool] = []

    def answer(messages: Any, tools: Any) -> ModelReply:
        can = any(each["function"]["name"] == "delegate_task" for each in tools)
        seen.append(can)
        if can and messages[-1]["role"] == "user":
            return ModelReply("", [call("delegate_task", goal="deeper")])
        return ModelReply("done")

    assert agent(*[answer] * 8).run("x").answer == "done"
    assert seen == [True, True, False, True, True]


def test_a_child_may_use_no_tool_that_its_parent_may_not(agent: Any) -> None:
    model = ScriptedModel([ModelReply("", [call("delegate_task", goal="x", toolsets=["file"])]), ModelReply("done")])
    agent(models=[model], toolsets=["delegation", "todo"]).run("x")
    answer = json.loads(model.sent[1].messages[-1]["content"])
    assert answer["results"][0]["status"] == "failed"
    assert "may not" in answer["results"][0]["summary"]


def test_what_children_take_counts_for_the_turn(agent: Any) -> None:
    model = Streams(
        [CallPiece(0, "", "delegate_task", '{"goal": "deep"}'), Finished(Usage(1, 1, 0, 0.1))],
        [TextPiece("child"), Finished(Usage(100, 50, 0, 1.0))],
        [TextPiece("done"), Finished(Usage(1, 1, 0, 0.1))],
    )
    ended = agent(model, budgets=Budgets(cost=10)).run("x")
    assert (ended.usage.input_tokens, ended.usage.output_tokens) == (102, 52)
    assert ended.usage.cost == pytest.approx(1.2)


def test_a_child_is_named_when_it_wants_something_dangerous(agent: Any, tmp_path: Path, store: SessionStore) -> None:
    (tmp_path / "precious").mkdir()

    def answer(messages: Any, tools: Any) -> ModelReply:
        if messages[-1]["role"] == "tool":
            return ModelReply("done")
        if messages[1]["content"] == "parent":
            return ModelReply("", [call("delegate_task", goal="tidy up")])
        return ModelReply("", [call("terminal", command="rm -rf precious")])

    approver = RecordingApprover([Decision.DENY])
    default().runtime.approver = approver
    one = agent(*[answer] * 4)
    one.run("parent")
    assert [request.asker for request in approver.requests] == ["tidy up"]
    assert "the child agent for “tidy up”: terminal wants to run" in question(
        approver.requests[0], width=200, painted=False
    )
    assert (tmp_path / "precious").exists()


def test_a_child_works_where_its_parent_works(agent: Any, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()

    def answer(messages: Any, tools: Any) -> ModelReply:
        if messages[-1]["role"] == "tool":
            return ModelReply(messages[-1]["content"])
        if messages[1]["content"] == "parent":
            return ModelReply("", [call("delegate_task", goal="look")])
        return ModelReply("", [call("terminal", command="pwd; echo $FROM_PARENT")])

    with agent(*[answer] * 4, environment={"cwd": str(elsewhere), "env": {"FROM_PARENT": "yes"}}) as one:
        answer_text = one.run("parent").answer
    assert str(elsewhere) in answer_text
    assert "yes" in answer_text


def test_an_interrupt_reaches_the_children(agent: Any, tool: Any) -> None:
    started = threading.Event()
    ended = threading.Event()

    def slow(args: Any, context: ToolContext, **_: Any) -> str:
        started.set()
        context.cancel.wait(PATIENCE_SECONDS)
        ended.set()
        return "late"

    tool("slow", slow)

    def answer(messages: Any, tools: Any) -> ModelReply:
        return ModelReply(
            "", [call("delegate_task", goal="child") if messages[1]["content"] == "parent" else call("slow")]
        )

    one = agent(*[answer] * 5)
    interrupter = threading.Thread(target=lambda: (started.wait(PATIENCE_SECONDS), one.interrupt()))
    interrupter.start()
    assert one.run("parent").end is End.INTERRUPTED
    interrupter.join()
    wait_until(ended.is_set)


# A window that does not overflow


def test_one_long_turn_is_shortened_too_and_keeps_what_the_person_said(agent: Any, tool: Any) -> None:
    tool("fill", lambda args, **_: "x" * 3_000)
    calls = itertools.count()

    def answer(messages: Any, tools: Any) -> ModelReply:
        if not tools:
            return ModelReply("SUMMARY")
        assert len(json.dumps(messages)) < 6_000 * 4
        known = {each["id"] for message in messages for each in message.get("tool_calls") or ()}
        assert {message["tool_call_id"] for message in messages if message["role"] == "tool"} == known
        assert any(message["content"] == "the one question" for message in messages)
        return ModelReply("", [call("fill"), call("fill")]) if next(calls) < 12 else ModelReply("done")

    from handrail.agent.models.base import ReplyAdapter

    one = agent(
        models=[ReplyAdapter(ScriptedModel([answer] * 60), name="small", context_tokens=6_000)],
        toolsets=["looptest", "todo"],
    )
    assert one.run("the one question").answer == "done"


def test_old_results_are_cut_first_and_then_all_is_summarised(agent: Any, tool: Any) -> None:
    tool("fill", lambda args, **_: "x" * 3_000)

    class Small(ScriptedModel):
        name, context_tokens = "small", 4_000

    def answer(messages: Any, tools: Any) -> ModelReply:
        if not tools:
            return ModelReply("SUMMARY: it filled a lot")
        if messages[-1]["role"] == "user":
            return ModelReply("", [call("fill"), call("todo", todos=[{"id": "1", "content": "still open"}])])
        return ModelReply("filled " + "y" * 1_500)

    from handrail.agent.models.base import ReplyAdapter

    model = Small([answer] * 40)
    one = agent(models=[ReplyAdapter(model, name="small", context_tokens=4_000)], toolsets=["looptest", "todo"])
    told = Told()
    for turn in range(8):
        assert one.run(f"turn {turn}", told).end is End.ANSWERED
    assert any("shortened" in notice.text for notice in told.of(Notice))
    last = [sent for sent in model.sent if sent.tools][-1].messages
    whole = json.dumps(last)
    assert "SUMMARY: it filled a lot" in whole
    assert "still open" in whole
    assert "turn 7" in whole
    assert len(whole) < 4_000 * 5
    for message, after in itertools.pairwise(last):
        if message.get("tool_calls"):
            assert after["role"] == "tool"


def test_hooks_are_told_of_sessions_and_can_add_to_a_turn(agent: Any, default_hooks: Any) -> None:
    heard: list[Any] = []
    default_hooks("on_session_start", lambda session_id: heard.append("start"))
    default_hooks("pre_llm_call", lambda user_message: f"[{user_message} was said]")
    default_hooks("post_llm_call", lambda user_message, answer, usage: heard.append((user_message, answer, usage)))
    default_hooks("on_session_end", lambda reason: heard.append(reason))
    default_hooks("on_session_finalize", lambda platform: heard.append(f"no more from {platform}"))
    default_hooks("on_session_reset", lambda session_id, new_session_id: heard.append((session_id, new_session_id)))
    model = ScriptedModel([ModelReply("ok")])
    one = agent(models=[model])
    ended = one.run("hi")
    one.started_after("another")
    one.close()
    turn = ("hi", "ok", ended.usage._asdict())
    assert heard == ["start", turn, "answered", ("another", one.session_id), "no more from cli"]
    assert [message["content"] for message in model.sent[0].messages[-2:]] == ["hi", "[hi was said]"]
    assert one.undo() == "hi"


def test_a_person_does_not_wait_for_a_slow_hook(agent: Any, default_hooks: Any) -> None:
    go_on = threading.Event()

    def slow(user_message: str) -> None:
        one.interrupt()
        go_on.wait(PATIENCE_SECONDS)

    default_hooks("pre_llm_call", slow)
    one = agent(ModelReply("never asked"))
    ended = one.run("hi")
    assert not go_on.is_set()
    go_on.set()
    assert (ended.end, ended.model_calls) == (End.INTERRUPTED, 0)


def test_hooks_are_told_of_children(agent: Any, default_hooks: Any, store: SessionStore) -> None:
    heard: list[Any] = []
    default_hooks("subagent_start", lambda session_id, child_session_id, goal: heard.append((session_id, goal)))
    default_hooks(
        "subagent_stop",
        lambda child_session_id, status, summary: heard.append((store.get(child_session_id).parent, status, summary)),
    )
    one = agent(ModelReply("", [call("delegate_task", goal="look")]), ModelReply("seen"), ModelReply("done"))
    one.run("hi")
    assert heard == [(one.session_id, "look"), (one.session_id, "completed", "seen")]


def test_events_come_in_order(agent: Any, tool: Any) -> None:
    tool("say", lambda args, **_: "said")
    told = Told()
    agent(ModelReply("look", [call("say")]), ModelReply("done")).run("x", told)
    kinds = [type(event) for event in told.events]
    assert kinds == [TextDelta, MessageEnded, ToolStarted, ToolEnded, TextDelta, MessageEnded, TurnEnded]


def test_a_call_that_waits_for_another_begins_when_that_has_ended(agent: Any, tool: Any, store: SessionStore) -> None:
    """Else it would be shown as running, and for as long as both took."""
    tool("say", lambda args, **_: "said")
    told = Told()
    one = agent(ModelReply("", [call("say", "c1", text="a"), call("say", "c2", text="b")]), ModelReply("done"))
    one.run("x", told)
    calls = [(type(event), event.call_id) for event in told.events if isinstance(event, ToolStarted | ToolEnded)]
    assert calls == [(ToolStarted, "c1"), (ToolEnded, "c1"), (ToolStarted, "c2"), (ToolEnded, "c2")]
    first, second = store.calls(one.session_id)
    assert first.at + first.seconds <= second.at + 1e-6


def test_a_model_calls_only_what_it_was_given(agent: Callable[..., Agent], tmp_path: Path) -> None:
    """Also when it knows the name of another tool; and a script of its own reaches no further than it does."""
    code = "from handrail_tools import write_file\nwrite_file('x', 'y')"
    model = ScriptedModel(
        [
            ModelReply("", [call("write_file", path=str(tmp_path / "x"), content="y")]),
            ModelReply("", [call("execute_code", code=code)]),
            ModelReply("done"),
        ]
    )
    agent(models=[model], toolsets=["code_execution", "results"]).run("x")
    refused, ran = (json.loads(m["content"]) for m in model.sent[2].messages if m["role"] == "tool")
    assert refused["error_type"] == "unknown_tool"
    assert "write_file is not a tool that you were given; these are: read_result" in ran["output"]
    assert not (tmp_path / "x").exists()
