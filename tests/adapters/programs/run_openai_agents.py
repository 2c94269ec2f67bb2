"""One run with the OpenAI Agents SDK; its state goes through JSON whenever it waits for a yes."""

from __future__ import annotations

import asyncio

from agents import Agent, Runner, RunState, add_trace_processor, set_trace_processors
from agents.tracing import FunctionSpanData, TracingProcessor
from answers import answer, opened, report

from handrail.adapters.openai_agents import tools


class Errors(TracingProcessor):
    def __init__(self) -> None:
        self.found: list[str] = []

    def on_span_end(self, span) -> None:
        if isinstance(span.span_data, FunctionSpanData) and span.error:
            self.found.append(span.error["message"])

    def on_span_start(self, span) -> None: ...
    def on_trace_start(self, trace) -> None: ...
    def on_trace_end(self, trace) -> None: ...
    def shutdown(self) -> None: ...
    def force_flush(self) -> None: ...


async def main() -> None:
    set_trace_processors([])
    add_trace_processor(errors := Errors())
    async with opened() as session:
        agent = Agent("a", model="scripted", tools=tools(session))
        result = await Runner.run(agent, "go")
        while result.interruptions:
            state = await RunState.from_json(agent, result.to_state().to_json())
            for item in state.get_interruptions():
                (state.approve if answer(item.arguments) else state.reject)(item)
            result = await Runner.run(Agent("a", model="scripted", tools=tools(session)), state)
    report(result.final_output, errors.found)


asyncio.run(main())
