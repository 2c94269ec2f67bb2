"""The slash commands: a table of names, and of the function that each one is."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, NamedTuple

from ...base.suggest import nearest
from ...errors import InvalidArguments
from . import approval_commands, session_commands, tool_commands
from .turn import Leave

if TYPE_CHECKING:
    from .chat import Chat


def _no_choices(chat: Chat) -> Iterable[str]:  # noqa: ARG001  as those that have some
    return ()


class Command(NamedTuple):
    """`run` gets what stands after the name; `choices` are what could."""

    name: str
    usage: str
    about: str
    run: Callable[[Chat, str], None]
    choices: Callable[[Chat], Iterable[str]] = _no_choices


def on_or_off(chat: Chat) -> Iterable[str]:  # noqa: ARG001  as those that depend on it
    return ("on", "off")


def help_(chat: Chat, rest: str) -> None:  # noqa: ARG001  a command's signature
    from rich.table import Table

    table = Table.grid(padding=(0, 2))
    for command in COMMANDS:
        table.add_row(f"/{command.name} {command.usage}".rstrip(), command.about)
    for key, about in _KEYS:
        table.add_row(key, about)
    chat.screen.print(table)


def quit_(chat: Chat, rest: str) -> None:  # noqa: ARG001
    raise Leave


_KEYS = (
    ("!command", "run a command in the agent's shell; it is told of it"),
    ("!!command", "the same without telling the agent"),
    ("Alt-Enter", "a new line; also Ctrl-J, or \\ and Enter"),
    ("while it works", "what you type and send is said next"),
    ("Ctrl-C", "stop what runs; again: leave"),
)

COMMANDS = (
    Command("help", "", "what can be typed here", help_),
    Command("tools", "", "the tools that the agent has now", tool_commands.tools),
    Command(
        "toolsets", "[+NAME|-NAME]", "which sets of tools it has; add or take one", tool_commands.toolsets,
        tool_commands.toolset_choices,
    ),
    Command("model", "[NAME]", "which model is asked; ask another one from now on", tool_commands.model),
    Command("reasoning", "[on|off]", "show what the model thinks, or do not", tool_commands.reasoning,
            on_or_off),
    Command("processes", "[log|kill ID]", "what runs in the background", tool_commands.processes,
            tool_commands.process_choices),
    Command("approve", "[ID [ANSWER]]", "what waits for an answer, and what is allowed; answer", approval_commands.approve,
            approval_commands.choices),
    Command("yolo", "[on|off]", "ask about nothing in this chat, or ask again", approval_commands.yolo,
            on_or_off),
    Command("undo", "", "take back your last message; files stay as they are", session_commands.undo),
    Command("save", "[FILE]", "write the conversation to a file: .md or .jsonl", session_commands.save),
    Command("resume", "[ID]", "earlier sessions; go on with one", session_commands.resume, session_commands.choices),
    Command("new", "", "begin a new session", session_commands.new),
    Command("branch", "", "go on in a copy of this session", session_commands.branch),
    Command("title", "[TEXT]", "what this session is called", session_commands.title),
    Command("history", "[N]", "show the last messages again", session_commands.history),
    Command("compact", "", "put a summary in place of all but the last turns", session_commands.compact),
    Command("cost", "", "tokens and money so far, and how full the window is", session_commands.cost),
    Command("quit", "", "leave; the session is kept", quit_),
)  # fmt: skip
_OTHER_NAMES = {"exit": "quit", "q": "quit", "?": "help", "sessions": "resume", "clear": "new", "ps": "processes",
                "approvals": "approve", "thinking": "reasoning"}  # fmt: skip
_BY_NAME = {command.name: command for command in COMMANDS}


def command_of(line: str) -> tuple[Command, str] | None:
    """The command that a line is, and what stands after it. None for a message, also for one that begins with a path."""
    if not line.startswith("/"):
        return None
    name, _, rest = line[1:].partition(" ")
    name = name.strip().lower()
    command = _BY_NAME.get(_OTHER_NAMES.get(name, name))
    if command is not None:
        return command, rest.strip()
    if "/" in name or os.path.exists(f"/{name}"):
        return None
    near = nearest(name, _BY_NAME)
    raise InvalidArguments(f"there is no command /{name}; {f'did you mean /{near}?' if near else '/help shows them'}")
