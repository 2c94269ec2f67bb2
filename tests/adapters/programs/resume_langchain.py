"""Run a graph until a yes is needed and store its checkpoints; started again, go on from there with the plan's reply."""

from __future__ import annotations

import asyncio
import pickle
from pathlib import Path

from answers import PLAN, opened, report
from langchain.agents import create_agent
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from handrail.adapters.langchain import tools

THREAD = {"configurable": {"thread_id": "1"}}
STORED = Path("../state.pickle")


def loaded(saver: InMemorySaver) -> tuple[str, str] | None:
    """What was asked when the program was run before."""
    if not STORED.exists():
        return None
    storage, writes, blobs, asked = pickle.loads(STORED.read_bytes())
    for place, by_id in storage.items():
        saver.storage["1"][place].update(by_id)
    saver.writes.update(writes)
    saver.blobs.update(blobs)
    return asked


def keep(saver: InMemorySaver, asked: tuple[str, str]) -> None:
    storage = {place: dict(by_id) for place, by_id in saver.storage["1"].items()}
    writes = {key: dict(value) for key, value in saver.writes.items()}
    STORED.write_bytes(pickle.dumps((storage, writes, dict(saver.blobs), asked)))


async def main() -> None:
    saver = InMemorySaver()
    asked = loaded(saver)
    async with opened() as session:
        agent = create_agent(ChatOpenAI(model="scripted"), tools(session), checkpointer=saver)
        if asked is None:
            result = await agent.ainvoke({"messages": "go"}, THREAD)
            [waiting] = result["__interrupt__"]
            keep(saver, (waiting.id, waiting.value["fingerprint"]))
            return report("stored", [])
        name, fingerprint = asked
        reply = {"decision": "once", "fingerprint": fingerprint} if PLAN.get("bound") else True
        result = await agent.ainvoke(Command(resume={name: reply}), THREAD)
    messages = result["messages"]
    return report(messages[-1].content, [each.content for each in messages if getattr(each, "status", "") == "error"])


asyncio.run(main())
