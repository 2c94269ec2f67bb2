"""The commands that the user of an editor can type in place of a prompt: each function below that `_OWN` names is one."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from acp import schema

from ...agent import rewind as back
from ...agent.conversation import estimate
from ...errors import InvalidArguments
from ...store.export import text_of
from ...store.sessions import StoredMessage
from .link import PRESENTATION
from .session import Session


async def compact(session: Session, _: str) -> str:
    before = estimate(session.agent.loop.conversation)
    if not await session.in_turns(session.agent.compact()):
        return "There is too little to summarise."
    return f"From about {before:,} to {estimate(session.agent.loop.conversation):,} tokens."


async def undo(session: Session, text: str) -> str:
    return await _go_back(session, *back.last(session.agent, text))


async def rewind(session: Session, text: str) -> str:
    """To before a message, by its number; without one they are listed."""
    if text:
        return await _go_back(session, *back.since(session.agent, text))
    texts = [" ".join(text_of(one.message).split()) for one in back.asked(session.agent)]
    return "\n".join(f"{number}. {text[:80]}" for number, text in enumerate(texts, 1)) or "You have said nothing yet."


async def _go_back(session: Session, since: Sequence[StoredMessage], part: str) -> str:
    lines, taken = await asyncio.to_thread(back.go_back, session.agent, session.app.effects, since, part)
    return "\n".join([*lines, f"> {taken}" if taken else ""]).strip()


async def tools(session: Session, _: str) -> str:
    found = [tool["function"] for tool in session.agent.loop.tool_calls.tools()]
    return "\n".join(f"- `{each['name']}`: {each['description'].partition(chr(10))[0]}" for each in found)


async def cost(session: Session, _: str) -> str:
    info = session.agent.store.get(session.id)
    money = "no price is known" if info.cost is None else f"${info.cost:.4f}"
    return f"{info.input_tokens:,} tokens in, {info.output_tokens:,} out; {money}"


async def title(session: Session, text: str) -> str:
    if text:
        session.agent.store.rename(session.id, text)
    return session.agent.store.get(session.id).title or "It has no title yet."


_OWN: dict[str, Callable[[Session, str], Awaitable[str]]] = {
    each.__name__: each for each in (compact, undo, rewind, tools, cost, title)
}


def available_commands(session: Session) -> schema.AvailableCommandsUpdate:
    """What the editor is told of them; those of plugins, too."""
    own = [(name, *PRESENTATION["commands"][name]) for name in _OWN]
    listed = [*own, *((name, each.about, each.hint) for name, each in session.plugin_commands.items())]
    made = [
        {"name": name, "description": about, "input": {"hint": hint} if hint else None} for name, about, hint in listed
    ]
    fields = {"sessionUpdate": "available_commands_update", "availableCommands": made}
    return schema.AvailableCommandsUpdate.model_validate(fields)


async def command_reply(session: Session, prompt: object) -> str | None:
    """What the user sees if a prompt is a command. None: it is none."""
    if not isinstance(prompt, str) or not prompt.startswith("/"):
        return None
    name, _, rest = prompt[1:].strip().partition(" ")
    if name in _OWN or name in session.plugin_commands:
        session.app.runtime.hooks.announce("acp", name, prompt, session.id, "acp")
    if name in _OWN:
        try:
            return await _OWN[name](session, rest.strip())
        except InvalidArguments as error:
            return str(error)
    command = session.plugin_commands.get(name)
    return None if command is None else await asyncio.to_thread(command.reply, rest.strip())
