"""One sample of an evaluation by Inspect."""

from __future__ import annotations

import inspect_ai
from answers import opened, report
from inspect_ai.dataset import Sample
from inspect_ai.model import ChatMessageTool
from inspect_ai.solver import generate, solver, use_tools

from handrail.adapters.inspect import tools


@solver
def with_session():
    async def solve(state, generate_more):
        async with opened() as session:
            state = await use_tools(tools(session))(state, generate_more)
            return await generate()(state, generate_more)

    return solve


[log] = inspect_ai.eval(
    inspect_ai.Task(dataset=[Sample("go")], solver=with_session()), model="openai/gpt-4.1", display="none"
)
assert log.status == "success", log.error
messages = log.samples[0].messages
report(messages[-1].text, [each.error.message for each in messages if isinstance(each, ChatMessageTool) and each.error])
