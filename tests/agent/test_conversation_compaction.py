"""A conversation of any shape, shortened: it fits, it is well-formed, and what the person said last is in it."""

from __future__ import annotations

import asyncio
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from handrail.agent.conversation import Compaction, Conversation
from handrail.agent.models.base import ModelRequests, ReplyAdapter
from handrail.errors import ModelError
from handrail.protocols import ModelReply
from handrail.store.sessions import SessionStore
from handrail.testing import ScriptedModel

SIZES = st.integers(0, 9_000)
ROUNDS = st.lists(st.lists(SIZES, min_size=1, max_size=3), max_size=4)  # the results' sizes, call by call
TURNS = st.lists(st.tuples(st.integers(1, 2_000), ROUNDS, SIZES), min_size=1, max_size=6)


def conversation_of(turns: Any, store: SessionStore) -> Conversation:
    made = Conversation(store, store.create(platform="cli", model="m", cwd="/w"))
    number = 0
    for place, (asked, rounds, answered) in enumerate(turns):
        made.add([{"role": "user", "content": f"question {place} " + "q" * asked}])
        for sizes in rounds:
            ids = [f"c{(number := number + 1)}" for _ in sizes]
            calls = [{"id": each, "type": "function", "function": {"name": "t", "arguments": "{}"}} for each in ids]
            made.add([{"role": "assistant", "content": "", "tool_calls": calls}])
            made.add(
                {"role": "tool", "tool_call_id": i, "name": "t", "content": "r" * s}
                for i, s in zip(ids, sizes, strict=True)
            )
        if place + 1 < len(turns):
            made.add([{"role": "assistant", "content": "a" * (answered + 1)}])
    return made


def refuse(*_: object) -> ModelReply:
    raise ModelError("not today")


def check_is_well_formed(messages: list[Any]) -> None:
    waiting: set[str] = set()
    for message in messages:
        if message["role"] == "tool":
            assert message["tool_call_id"] in waiting, "a result without its call"
            waiting.remove(message["tool_call_id"])
        else:
            assert not waiting, "a call without its result"
            waiting = {call["id"] for call in message.get("tool_calls") or ()}
    assert not waiting


@settings(deadline=None, max_examples=40)
@given(TURNS, st.booleans())
def test_no_call_is_parted_from_its_results_and_the_last_question_stays(turns: Any, helper_fails: bool) -> None:
    store = SessionStore()
    conversation = conversation_of(turns, store)
    model = ScriptedModel([refuse if helper_fails else ModelReply("SUMMARY")] * 9)
    requests = ModelRequests([ReplyAdapter(model, name="small", context_tokens=4_000)], attempts=1)
    before = conversation.chars
    asyncio.run(Compaction(extra=lambda: "[ ] still open")(conversation, requests, [], lambda event: None))
    check_is_well_formed(conversation.for_model)
    assert any(str(message["content"]).startswith(f"question {len(turns) - 1} ") for message in conversation.messages)
    assert conversation.chars <= before
    if "[Summary" in str(conversation.messages[0]["content"]):
        assert "still open" in conversation.messages[0]["content"]
    kept = [each.message for each in store.messages(conversation.info.id)]
    assert kept == conversation.messages, "what is on disk is what the model is told"
    store.close()


def test_a_long_prompt_leaves_less_room_and_never_none() -> None:
    store = SessionStore()
    requests = ModelRequests([ReplyAdapter(ScriptedModel([]), name="small", context_tokens=4_000)])
    longer, shorter = (conversation_of([(size, [], 0)], store) for size in (6_000, 1_000))
    assert not Compaction().is_due(longer, requests, [])
    assert Compaction(prompt="p" * 8_000).is_due(longer, requests, [])
    assert not Compaction(prompt="p" * 80_000).is_due(shorter, requests, []), "it would be shortened at every question"
    store.close()
