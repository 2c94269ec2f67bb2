"""Run until a yes is needed and store the state; started again, go on from there with a yes."""

from __future__ import annotations

import asyncio

from agents import Agent, Runner, RunState
from answers import opened, report, store, stored

from handrail.adapters.openai_agents import tools


async def main() -> None:
    async with opened() as session:
        agent = Agent("a", model="scripted", tools=tools(session))
        if (before := stored()) is None:
            result = await Runner.run(agent, "go")
            store(result.to_state().to_json())
            return report("stored", [])
        state = await RunState.from_json(agent, before)
        for item in state.get_interruptions():
            state.approve(item)
        result = await Runner.run(agent, state)
        return report(result.final_output, [])


asyncio.run(main())
