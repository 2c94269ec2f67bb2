"""The commands that a user of an editor can type in place of a prompt."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import NamedTuple

from acp import schema

from ...agent.compaction import estimate
from ...plugins.api import ChatCommand
from .session import Session


class Command(NamedTuple):
    """`run` gets the session and what was typed behind the name, and returns the text that the user sees."""

    about: str
    hint: str
    run: Callable[[Session, str], Awaitable[str]]


async def compact(session: Session, _: str) -> str:
    before = estimate(session.agent.loop.conversation)
    if not await session.in_turns(session.agent.compact()):
        return "There is too little to summarise."
    return f"From about {before:,} to {estimate(session.agent.loop.conversation):,} tokens."


async def undo(session: Session, _: str) -> str:
    message = session.agent.undo()
    return f"Taken back: {message}" if message else "There is nothing to take back."


async def tools(session: Session, _: str) -> str:
    enabled, disabled = session.agent.loop.tool_calls.toolsets
    found = session.app.definitions.list(enabled, list(disabled), quiet=True, format="openai")
    lines = [f"- `{tool['function']['name']}`: {_first_sentence(tool['function']['description'])}" for tool in found]
    return "\n".join(lines)


async def cost(session: Session, _: str) -> str:
    info = session.agent.store.get(session.id)
    money = "no price is known" if info.cost is None else f"${info.cost:.4f}"
    return f"{info.input_tokens:,} tokens in, {info.output_tokens:,} out; {money}"


async def title(session: Session, text: str) -> str:
    if text:
        session.agent.store.rename(session.id, text)
    return session.agent.store.get(session.id).title or "It has no title yet."


COMMANDS = {
    "compact": Command("replace all but the last turns by a summary", "", compact),
    "undo": Command("take back your last message; files stay as they are", "", undo),
    "tools": Command("list the agent's tools", "", tools),
    "cost": Command("tokens and money so far", "", cost),
    "title": Command("show or change the title of this session", "a new title", title),
}


def available(session: Session) -> schema.AvailableCommandsUpdate:
    listed = [
        schema.AvailableCommand(name=name, description=command.about, input=_input(command.hint))
        for name, command in _all(session).items()
    ]
    return schema.AvailableCommandsUpdate(session_update="available_commands_update", available_commands=listed)


def _all(session: Session) -> dict[str, Command]:
    """Those of plugins, too."""

    def of_plugin(command: ChatCommand) -> Command:
        async def run(_: Session, text: str) -> str:
            return await asyncio.to_thread(command.reply, text)

        return Command(command.about, command.hint, run)

    found = session.app.plugins.contributions.chat_commands if session.app.plugins else {}
    return {**{name: of_plugin(command) for name, command in found.items()}, **COMMANDS}


def command_in(session: Session, text: str) -> tuple[Command, str] | None:
    """The command that a prompt is, and what is typed behind its name."""
    name, _, rest = text.strip().partition(" ")
    known = _all(session).get(name.removeprefix("/")) if name.startswith("/") else None
    return None if known is None else (known, rest.strip())


def _input(hint: str) -> schema.AvailableCommandInput | None:
    return schema.AvailableCommandInput(root=schema.UnstructuredCommandInput(hint=hint)) if hint else None


def _first_sentence(text: str) -> str:
    return text.partition("\n")[0].partition(". ")[0]
