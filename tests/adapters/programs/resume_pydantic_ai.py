"""Run until a yes is needed and store what was said; started again, go on from there with a yes."""

from __future__ import annotations

import asyncio

from answers import opened, report, store, stored
from pydantic_ai import Agent, DeferredToolRequests, DeferredToolResults, ModelMessagesTypeAdapter

from handrail.adapters.pydantic_ai import toolset


async def main() -> None:
    async with opened() as session:
        agent = Agent("openai-chat:scripted", toolsets=[toolset(session)], output_type=[str, DeferredToolRequests])
        if (before := stored()) is None:
            result = await agent.run("go")
            store([result.all_messages_json().decode(), result.output.metadata])
            return report("stored", [])
        said, metadata = before
        results = DeferredToolResults(approvals=dict.fromkeys(metadata, True), metadata=metadata)
        history = ModelMessagesTypeAdapter.validate_json(said)
        result = await agent.run(message_history=history, deferred_tool_results=results)
        return report(result.output, [])


asyncio.run(main())
