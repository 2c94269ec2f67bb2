"""One run with Pydantic AI; what it has said so far goes through JSON whenever it waits for a yes."""

from __future__ import annotations

import asyncio

from answers import answer, opened, report
from pydantic_ai import Agent, DeferredToolRequests, DeferredToolResults, ModelMessagesTypeAdapter, ToolDenied

from handrail.adapters.pydantic_ai import toolset


async def main() -> None:
    async with opened() as session:
        kinds = [str, DeferredToolRequests]
        agent = Agent("openai-chat:scripted", toolsets=[toolset(session)], output_type=kinds)
        result = await agent.run("go")
        while isinstance(result.output, DeferredToolRequests):
            results = DeferredToolResults()
            for call in result.output.approvals:
                yes = answer(result.output.metadata[call.tool_call_id]["questions"][0]["text"])
                results.approvals[call.tool_call_id] = True if yes else ToolDenied("the user says no")
            history = ModelMessagesTypeAdapter.validate_json(result.all_messages_json())
            agent = Agent("openai-chat:scripted", toolsets=[toolset(session)], output_type=kinds)
            result = await agent.run(message_history=history, deferred_tool_results=results)
    parts = [part for message in result.all_messages() for part in message.parts]
    report(result.output, [part.content for part in parts if getattr(part, "outcome", "success") == "failed"])


asyncio.run(main())
