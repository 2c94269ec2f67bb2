"""An agent in twenty lines: ask the model, run what it calls, give it the answers, until it is done."""

import tempfile
from pathlib import Path

from handrail.agent import Model, ModelReply
from handrail.model_tools import get_tool_definitions, run_tool_calls
from handrail.testing import ScriptedModel, call


def run(model: Model, task: str) -> str:
    messages = [{"role": "user", "content": task}]
    tools = get_tool_definitions(enabled_toolsets=["coding"])
    while True:
        reply = model.reply(messages, tools)
        messages.append({"role": "assistant", "content": reply.content, "tool_calls": list(reply.tool_calls)})
        if not reply.tool_calls:
            return reply.content
        # Together where that is safe, in order where it is not; the answers come in the model's order.
        messages += run_tool_calls(reply.tool_calls, task_id="example", session_id="example")


# Any object with `reply` is a model; this one says what it was told to say.
with tempfile.TemporaryDirectory() as folder:
    script = ScriptedModel(
        [
            ModelReply("", [call("write_file", path=f"{folder}/{name}.txt", content=name) for name in ("a", "b", "c")]),
            ModelReply("", [call("search_files", pattern="*.txt", target="files", path=folder)]),
            ModelReply("Three files are written."),
        ]
    )
    print(run(script, "Write three files."))
    print(sorted(path.name for path in Path(folder).iterdir()))
