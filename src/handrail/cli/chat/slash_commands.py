"""The slash commands: `slash_commands.json` has their words, and a function of the same name in a module here does each."""

import json
from collections.abc import Callable, Iterable
from pathlib import Path

from rich.table import Table

from ...agent import rewind as back
from ...approval.policy import Mode
from ...environments.profiles import Profile
from . import session_commands, tool_commands, work_commands
from .chat import Chat, Command
from .turn import Leave


def help_(chat: Chat, rest: str) -> None:  # noqa: ARG001  a command's signature
    table = Table.grid(padding=(0, 2))
    for command in chat.commands:
        table.add_row(f"/{command.name} {command.usage}".rstrip(), command.about)
    for key, about in _WORDS["keys"].items():
        table.add_row(key, about)
    chat.screen.print(table)


def quit_(chat: Chat, rest: str) -> None:  # noqa: ARG001  a command's signature
    raise Leave


_WORDS = json.loads(Path(__file__).with_name("slash_commands.json").read_text("utf-8"))
_RUN = {**vars(session_commands), **vars(tool_commands), **vars(work_commands), "help": help_, "quit": quit_}
_CHOICES: dict[str, Callable[[Chat], Iterable[str]]] = {
    "toolsets": lambda chat: [f"{sign}{name}" for name in chat.app.toolsets.names() for sign in "+-"],
    "model": tool_commands.model_choices,
    "reasoning": lambda _: ("on", "off"),
    "processes": lambda chat: ["log", "kill", *(one.id for one in chat.app.processes.list())],
    "children": lambda chat: [info.id for info in chat.store.children(chat.agent.session_id)],
    "approve": lambda chat: [stored.request.id for stored in chat.app.gate.store.pending()],
    "mode": lambda _: [each.value for each in Mode],
    "profile": lambda _: [each.value for each in Profile],
    "yolo": lambda _: ("on", "off"),
    "undo": lambda _: back.PARTS,
    "rewind": lambda chat: [*map(str, range(len(back.asked(chat.agent)), 0, -1)), *back.PARTS],
    "theme": lambda _: work_commands.THEMES,
    "resume": session_commands.resume_choices,
}
COMMANDS = tuple(
    Command(name, usage, about, _RUN[name], _CHOICES.get(name, lambda _: ()), tuple(aliases))
    for name, (usage, about, *aliases) in _WORDS["commands"].items()
)
