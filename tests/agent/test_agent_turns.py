"""A turn as a stream of events, gone on with after it was cut off, and paused when its budget is used up."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from handrail import Agent, Config, Handrail
from handrail.agent.events import Budgets, End, TextDelta, ToolEnded, ToolStarted, ToolWaiting, Turn, TurnEnded, Usage
from handrail.approval.policy import Mode
from handrail.protocols import Decision
from handrail.store.sessions import SessionStore
from handrail.testing import ModelReply, RecordingApprover, ScriptedModel, ScriptedPerson, call
from tests.support import wait_until


@pytest.fixture
def app() -> Iterator[Handrail]:
    with Handrail(Config(), approver=RecordingApprover([Decision.ONCE] * 3)) as made:
        yield made


@pytest.fixture
def store() -> Iterator[SessionStore]:
    made = SessionStore()
    yield made
    made.close()


def test_a_turn_can_be_read_event_by_event(app: Handrail, store: SessionStore, tmp_path: Path) -> None:
    calls = [call("write_file", "c1", path="a.txt", content="new"), call("terminal", "c2", command="rm -rf x")]
    model = ScriptedModel([ModelReply("", calls), ModelReply("Done.")])

    async def read() -> list[object]:
        with Agent(app, [model], store=store, cwd=str(tmp_path)) as agent:
            return [event async for event in agent.stream("go")]

    events = asyncio.run(read())
    assert isinstance(events[-1], TurnEnded)
    assert "".join(event.text for event in events if isinstance(event, TextDelta)) == "Done."
    ended = {event.call_id: event for event in events if isinstance(event, ToolEnded)}
    assert ended["c1"].changes == ((str(tmp_path / "a.txt"), None, "new"),)
    [waiting] = [event for event in events if isinstance(event, ToolWaiting)]
    assert (waiting.call_id, waiting.tool, waiting.request.tool_call_id) == ("c2", "terminal", "c2")
    started = next(event for event in events if isinstance(event, ToolStarted) and event.call_id == "c2")
    assert events.index(started) < events.index(waiting) < events.index(ended["c2"])


def test_leaving_a_stream_early_ends_the_turn(app: Handrail, store: SessionStore, tmp_path: Path) -> None:
    model = ScriptedModel([ModelReply("", [call("terminal", command="sleep 4713")]), ModelReply("Done.")])

    async def read() -> bool:
        with Agent(app, [model], store=store, cwd=str(tmp_path)) as agent:
            events = agent.stream("go")
            async for event in events:
                if isinstance(event, ToolStarted):
                    break
            await asyncio.wait_for(events.aclose(), 30)
            return len(model.sent) == 1

    assert asyncio.run(read())


def test_a_turn_that_was_cut_off_is_gone_on_with(app: Handrail, store: SessionStore, tmp_path: Path) -> None:
    model = ScriptedModel([ModelReply("", [call("terminal", command="echo one")]), ModelReply("Done.")])
    with Agent(app, [model], store=store, cwd=str(tmp_path), budgets=Budgets(model_calls=1)) as agent:
        assert agent.run("go").end is End.TURNS
        session = store.get(agent.session_id)
    with Agent(app, [model], store=store, session=session, cwd=str(tmp_path)) as agent:
        assert agent.resume().answer == "Done."
        assert [message["role"] for message in model.sent[1].messages].count("user") == 1
        again = agent.resume()
        assert (again.answer, again.model_calls) == ("Done.", 0)


@pytest.mark.parametrize(("answer", "end"), [("yes", End.ANSWERED), ("no", End.TURNS), (None, End.TURNS)])
def test_a_budget_that_is_used_up_asks_whether_to_go_on(
    app: Handrail, store: SessionStore, tmp_path: Path, answer: str | None, end: End
) -> None:
    replies = [ModelReply("", [call("terminal", command="echo one")]), ModelReply("Done.")]
    app.runtime.person = person = ScriptedPerson([answer])
    budgets = Budgets(model_calls=1)
    with Agent(app, [ScriptedModel(replies)], store=store, cwd=str(tmp_path), budgets=budgets) as agent:
        assert agent.run("go").end is end
        assert len(person.asked) == 1
        assert agent.resume().end is End.ANSWERED  # what was paused can be gone on with


@pytest.mark.parametrize(
    ("budgets", "end"),
    [
        (Budgets(model_calls=1), End.TURNS),
        (Budgets(tokens=10), End.TOKENS),
        (Budgets(cost=0.5), End.COST),
        (Budgets(seconds=0.05), End.TIME),
    ],
)
def test_a_yes_allows_as_much_again(budgets: Budgets, end: End) -> None:
    turn = Turn(budgets)
    for _ in range(2):
        assert turn.over() is None
        turn.note(Usage(8, 8, 0, 0.6), {"content": ""})
        wait_until(lambda: turn.over() is not None)
        assert turn.over() is end
        turn.extend(end)


def test_a_child_has_the_mode_of_its_parent_and_leaves_none_behind(app: Handrail, store: SessionStore) -> None:
    write = call("write_file", path="a.txt", content="new")
    replies = [
        ModelReply("", [call("delegate_task", goal="write it")]),
        ModelReply("", [write]),
        ModelReply("no"),
        ModelReply("Done."),
    ]
    model = ScriptedModel(replies)
    with Agent(app, [model], store=store) as agent:
        app.gate.modes.set(agent.session_id, Mode.PLAN)
        agent.run("Have it written.")
        assert list(app.gate.modes._sessions) == [agent.session_id]
    assert "this session only plans" in str(model.sent[2].messages)
