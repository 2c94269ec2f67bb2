"""One run with LangChain's agent, which is a graph of LangGraph."""

from __future__ import annotations

import asyncio

from answers import PLAN, answer, opened, report
from langchain.agents import create_agent
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from handrail.adapters.langchain import tools

THREAD = {"configurable": {"thread_id": "1"}}


async def main() -> None:
    async with opened() as session:
        if outside := PLAN.get("outside"):
            [tool] = [each for each in tools(session) if each.name == outside["name"]]
            message = await tool.ainvoke({"type": "tool_call", "id": "1", **outside})
            return report(message.status, [message.content])
        agent = create_agent(ChatOpenAI(model="scripted"), tools(session), checkpointer=InMemorySaver())
        invoke = (lambda *given: asyncio.to_thread(agent.invoke, *given)) if PLAN.get("sync") else agent.ainvoke
        result = await invoke({"messages": "go"}, THREAD)
        while waiting := result.get("__interrupt__"):
            replies = {each.id: PLAN.get("reply", answer(each.value["text"])) for each in waiting}
            result = await invoke(Command(resume=replies), THREAD)
    messages = result["messages"]
    return report(messages[-1].content, [each.content for each in messages if getattr(each, "status", "") == "error"])


asyncio.run(main())
