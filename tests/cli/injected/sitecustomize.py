"""Python imports this when it starts, if this folder is on PYTHONPATH: tools that a command line under test can call."""

import asyncio
import os
import subprocess
import sys
import threading
from pathlib import Path

from handrail.core.registry import registry
from handrail.errors import Denied
from handrail.types import Unavailable


def add(name, handler, **more):
    schema = {"description": f"The test tool {name}.", "parameters": {"type": "object", "properties": {}}}
    registry.register(name=name, toolset="injected", schema=schema, handler=handler, **more)


def waits(_args, *, context):
    """Runs until it is cancelled; a file then says that it was."""
    context.cancel.on_cancel(lambda: Path(os.environ["WITNESS"]).write_text(context.cancel.reason))
    context.progress("is waiting", 0.5)
    context.cancel.wait()
    return {"ended": True}


def stubborn(_args, *, context):
    """Never returns, and does not care about being cancelled."""
    context.progress("is waiting")
    threading.Event().wait()


def prints(_args):
    print("from print")
    os.write(1, b"from the descriptor\n")
    subprocess.run(["echo", "from a child"], check=True)
    return {"said": "done"}


def prints_late(_args, *, context):
    """Goes on after its time is over, and prints then."""
    context.cancel.wait()
    for _ in range(1000):
        print("late news")
    return {}


async def exits_async(_args):
    await asyncio.sleep(0)
    sys.exit(0)


def denies(_args):
    raise Denied("somebody said no")


add("waits", waits)
add("stubborn", stubborn)
add("prints", prints)
add("prints_late", prints_late)
add("exits", lambda _args: sys.exit(0))
add("exits_async", exits_async, is_async=True)
add("denies", denies)
add("colourful", lambda _args: {"content": "\x1b[31mred\x1b[0m and \u202ereversed"})
add("pictures", lambda _args: {"_multimodal": True, "content": [{"type": "text", "text": "a cat"}, {"type": "image"}]})
add("locked", lambda _args: {}, check_fn=lambda: Unavailable("the door is locked", "bring the key"))
if os.environ.get("BREAK_A_MODULE"):
    sys.modules["handrail.tools.agent.tool"] = None


def would_run(args, _context):
    from handrail.protocols import Action, ActionKind

    return [Action(ActionKind.COMMAND, args["command"], os.getcwd())]


def notes(args, *, context):
    """What a shell tool is to the gate; it only writes the command down."""
    context.progress("begins")
    with Path(os.environ["WITNESS"]).open("a") as file:
        file.write(args["command"] + "\n")
    return {"output": args["command"]}


registry.register(
    name="shell",
    toolset="injected",
    schema={
        "description": "Run a command.",
        "parameters": {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]},
    },
    handler=notes,
    actions=would_run,
)
