"""What each command may do in a shell that an agent started: read what is Handrail's own, never change it.

A command that is in neither table, such as one of a plugin, is refused there.
"""

from __future__ import annotations

from typing import Any

from typer.core import TyperGroup

from ..base.agent_ancestry import refuse_agents

# They show something, or run tools and agents, whose gate is the strictest there and whose stores are copies in memory.
READERS = frozenset(
    (
        "approvals list, approvals log, approvals show, approvals simulate, audit export, audit key, "
        "audit verify, calls, config get, config path, "
        "config show, cron list, cron next, cron show, env check, env list, mcp get, mcp list, mcp serve, "
        "mcp test, mcp tools, model list, model test, pair list, plugins info, plugins list, ps, ps log, "
        "serve login list, serve token list, sessions export, sessions list, sessions search, sessions show, "
        "skills list, skills show, ask, call, chat, check, completion, demo, doctor, effects, record, replay, run, "
        "schema, shell, tools, toolsets, trace"
    ).split(", ")
)
WRITERS = {
    "approvals answer": "answer requests",
    "approvals revoke": "revoke grants",
    "calls prune": "forget calls",
    "config confirm": "change the configuration",
    "config edit": "change the configuration",
    "config set": "change the configuration",
    "config unset": "change the configuration",
    "cron add": "change jobs from its shell; it has a tool for that",
    "cron now": "change jobs from its shell; it has a tool for that",
    "cron pause": "change jobs from its shell; it has a tool for that",
    "cron remove": "change jobs from its shell; it has a tool for that",
    "cron resume": "change jobs from its shell; it has a tool for that",
    "cron run": "be the scheduler",
    "env prune": "remove what other runtimes left",
    "mcp add": "add MCP servers",
    "mcp login": "log in to MCP servers",
    "mcp logout": "forget logins",
    "mcp remove": "remove MCP servers",
    "mcp trust": "trust MCP servers",
    "pair": "pair people",
    "pair remove": "remove people",
    "plugins disable": "disable plugins",
    "plugins enable": "enable plugins",
    "plugins new": "write plugins",
    "plugins trust": "trust plugins",
    "ps kill": "kill the processes of other tasks; it has a tool for its own",
    "redo": "redo calls from its shell; it has the tool undo",
    "rl run": "run rollouts from its shell; it has a tool for that",
    "serve": "serve",
    "serve login end": "end logins",
    "serve token new": "make tokens",
    "serve token revoke": "revoke tokens",
    "sessions branch": "change sessions",
    "sessions delete": "delete sessions",
    "skills trust": "trust skills",
    "undo": "undo calls from its shell; it has a tool for that",
}


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
