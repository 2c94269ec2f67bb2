"""An agent in a program: one turn, what happens while it works, and the next turn of the same session.

A scripted model stands in for a real one; leave `models` out, and the configured model is asked.
"""

import os

from handrail.agent import LAST, Event, TextDelta, ToolEnded, ToolStarted, open_agent
from handrail.testing import ModelReply, ScriptedModel, call


def show(event: Event) -> None:
    if isinstance(event, ToolStarted):
        print(f"{event.emoji} {event.tool} {event.arguments}")
    elif isinstance(event, ToolEnded):
        print(f"  {event.error_type or 'ok'} after {event.seconds:.2f} s")
    elif isinstance(event, TextDelta):
        print(event.text, end="", flush=True)


path = os.path.abspath("note.txt")
model = ScriptedModel(
    [
        ModelReply("I write it down.\n", [call("write_file", path=path, content="buy milk")]),
        ModelReply("Done."),
        ModelReply("You wanted to buy milk."),
    ]
)

with open_agent(models=[model]) as agent:
    ended = agent.run("Note that I have to buy milk.", show)
    print(f"\n{ended.end.value} after {ended.model_calls} questions to the model")

with open_agent(models=[model], resume=LAST) as agent:
    print(agent.run("What was it?").answer)
