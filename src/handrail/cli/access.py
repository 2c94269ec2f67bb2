"""What each command may do in a shell that an agent started: read what is Handrail's own, never change it.

A command that is in neither table, such as one of a plugin, is refused there.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from typer.core import TyperGroup

from ..base.agent_ancestry import refuse_agents

_TABLES = json.loads(Path(__file__).with_suffix(".json").read_text("utf-8"))
# They show something, or run tools and agents, whose gate is the strictest there and whose stores are copies in memory.
READERS: frozenset[str] = frozenset(_TABLES["readers"])
# What the others do, as the end of "an agent may not".
WRITERS: dict[str, str] = _TABLES["writers"]


def guarded(command: Any, name: str) -> Any:
    """The command, with all that are below it, refused by name where an agent may not use it. `--help` works everywhere."""
    for inner, each in command.commands.items() if isinstance(command, TyperGroup) else ():
        guarded(each, f"{name} {inner}")
    if command.callback is None or name in READERS:
        return command
    invoke, callback, contexts = command.invoke, command.callback, []

    def noted(context: Any) -> Any:
        contexts.append(context)
        return invoke(context)

    def checked(*args: Any, **given: Any) -> Any:
        if contexts[-1].invoked_subcommand is None:  # a group's function runs before what is below it, too
            refuse_agents(WRITERS.get(name, f"use `handrail {name}`"))
        return callback(*args, **given)

    command.invoke, command.callback = noted, checked
    return command
