"""One run with smolagents."""

from __future__ import annotations

from answers import opened, report
from smolagents import OpenAIModel, ToolCallingAgent

from handrail.adapters.smolagents import tools

with opened() as session:
    agent = ToolCallingAgent(tools(session), OpenAIModel("scripted"), verbosity_level=0)
    output = agent.run("go")
report(output, [str(step.error) for step in agent.memory.steps if getattr(step, "error", None)])
