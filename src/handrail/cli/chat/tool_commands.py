"""Slash commands about what the agent works with and may do: tools, model, processes, approvals."""

import asyncio
import contextlib
import threading
from collections.abc import Iterable, Mapping
from typing import Any

from rich.table import Table

from ...agent.models.base import StreamingModel
from ...agent.models.model_selection import build, known_providers, list_prices
from ...approval.policy import MEANINGS, Mode, read_mode
from ...base.safe_text import clean
from ...base.suggest import did_you_mean
from ...base.workers import run_async
from ...environments import profiles
from ...environments.profiles import Profile
from ...errors import HandrailError, InvalidArguments
from ...protocols import Decision
from ..approvals import chosen, come_too_late, show_request
from ..call_text import since
from ..output import visible
from .chat import Chat

_LOG_BYTES = 8_000
_LIST_SECONDS = 15.0


def tools(chat: Chat, rest: str) -> None:  # noqa: ARG001  a command's signature
    registry, agent = chat.app.runtime.registry, chat.agent
    rows = []
    for each in (tool["function"] for tool in agent.loop.tool_calls.tools(agent.models[0].context_tokens)):
        about = str(each["description"]).partition(". ")[0].partition("\n")[0]
        rows.append((f"{registry.get_emoji(each['name'])} {each['name']}", visible(about)))
    chat.screen.table(("TOOL", "WHAT IT DOES"), rows)
    if agent.loop.tool_calls.at_hand is not None:
        chat.say("The agent finds other tools with tool_search. /toolsets +NAME adds a toolset here.", "dim")


def toolsets(chat: Chat, rest: str) -> None:
    known = chat.app.toolsets
    enabled, disabled = chat.agent.loop.tool_calls.toolsets
    if rest:
        if rest[0] not in "+-":
            raise InvalidArguments("/toolsets +NAME gives the agent a set of tools, /toolsets -NAME takes it away")
        name = known.canonical(rest[1:].strip())
        on, off = list(enabled) if enabled is not None else None, [each for each in disabled if each != name]
        if rest[0] == "-":
            off.append(name)
        elif on is not None and name not in on:
            on.append(name)
        elif (near := chat.agent.loop.tool_calls.at_hand) is not None:
            chat.agent.loop.tool_calls.at_hand = [*near, name]
        enabled, disabled = chat.agent.loop.tool_calls.toolsets = (on, off)
    usable = set(known.select(enabled, disabled)).difference(chat.app.runtime.registry.unavailable_tools())
    near = chat.agent.loop.tool_calls.at_hand
    listed = usable if near is None else usable.intersection(known.select(list(near), ()))
    rows = []
    for info in map(known.info, known.names()):
        names = set(info["tools"])
        if names and not info["name"].startswith("handrail-"):
            mark = "○" if not names & usable else "●" if names & usable <= listed else "◐"
            rows.append((mark, info["name"], f"{len(names & usable)}/{len(names)}", visible(info["description"])))
    chat.screen.table(("", "TOOLSET", "TOOLS", "WHAT FOR"), rows)
    chat.say("● listed  ◐ found with tool_search  ○ off, or cannot be used: `handrail tools` says why", "dim")


def model(chat: Chat, rest: str) -> None:
    agent = chat.agent
    if rest:
        models = build(chat.app.config.model, name=rest, providers=known_providers(chat.app.plugins))
        _check(chat, models[0])
        agent.use(models)
        chat.options["model"] = rest  # for the sessions after this one, too
    names = [each.name for each in agent.models]
    others = f"; when it does not answer: {', '.join(names[1:])}" if names[1:] else ""
    prices = list_prices(names[0])
    price = f", ${prices.input:g} in and ${prices.output:g} out per million tokens" if any(prices) else ""
    chat.say(f"{names[0]}, {agent.models[0].context_tokens:,} tokens of context{price}{others}")


def _check(chat: Chat, model: StreamingModel) -> None:
    """Raises InvalidArguments for a name that its provider does not have. Not every provider can list its models."""
    if (available := getattr(model, "available", None)) is None:
        return
    try:
        known = chat.wait_for(f"looking for {model.name}", asyncio.wait_for(available(), _LIST_SECONDS))
    except (HandrailError, TimeoutError) as error:
        chat.say(f"Whether there is a model {model.name} could not be checked: {error or 'timed out'}", "yellow")
        return
    chat.models = known
    if not any(name.startswith(model.name) for name in known):  # a shorter name is one that the provider completes
        raise InvalidArguments(f"the provider has no model {model.name!r}; {did_you_mean(model.name, known)}")


def model_choices(chat: Chat) -> Iterable[str]:
    """Looked up once, on another thread: what is typed does not wait for it."""
    if not chat.models and (available := getattr(chat.agent.models[0], "available", None)) is not None:
        chat.models = [chat.agent.models[0].name]

        def look_up() -> None:
            with contextlib.suppress(HandrailError):
                chat.models = run_async(available())

        threading.Thread(target=look_up, name="handrail-models", daemon=True).start()
    return chat.models


def reasoning(chat: Chat, rest: str) -> None:
    chat.view.shows_thoughts = _switched("reasoning", rest, now=chat.view.shows_thoughts)
    chat.say("Reasoning is shown." if chat.view.shows_thoughts else "Reasoning is hidden.")


def _switched(command: str, rest: str, *, now: bool) -> bool:
    wanted = {"": not now, "on": True, "off": False}.get(rest.lower())
    if wanted is None:
        raise InvalidArguments(f"/{command} on, or /{command} off")
    return wanted


def processes(chat: Chat, rest: str) -> None:
    what, _, name = rest.partition(" ")
    table = chat.app.processes
    if what == "kill" and name:
        one = table.get(name.strip())
        one.kill()
        chat.say(f"{one.id} {one.status()}")
    elif what == "log" and name:
        chat.screen.write(visible(clean(table.get(name.strip()).tail(_LOG_BYTES).data)).rstrip("\n") + "\n")
    elif rest:
        raise InvalidArguments("/processes, /processes log ID, or /processes kill ID")
    elif running := [one for one in table.list() if one.record.ended_at is None]:
        about = [(one.id, one.status().state.value, one.record) for one in running]
        rows = [(name, state, since(record.started_at), visible(record.command)) for name, state, record in about]
        chat.screen.table(("ID", "STATUS", "AGE", "COMMAND"), rows)
    else:
        chat.say("Nothing runs in the background.")


def approve(chat: Chat, rest: str) -> None:
    """Without an id: what waits, and what is allowed. With one: answer it."""
    gate = chat.app.gate
    if words := rest.split():
        stored = gate.store.get(words[0])
        if (answer := chosen(stored, words[1] if len(words) > 1 else "")) is not None:
            before = gate.store.answer(stored.request.id, answer)
            result = "denied" if answer.decision is Decision.DENY else f"allowed, {answer.decision.value}"
            chat.say(come_too_late(before) if before else f"{stored.request.id}: {result}")
        return
    waiting = gate.store.pending()
    chat.say(f"Mode {chat.mode.value}: {MEANINGS[chat.mode]}. /mode or Shift-Tab changes it.")
    for stored in waiting:
        show_request(stored)
    if not waiting:
        chat.say("No requests are pending.")
    mine = {f"task:{chat.agent.session_id}", f"session:{chat.agent.session_id}"}
    for grant in gate.store.grants.of(sorted(mine)):
        chat.say(f"allowed in this session: {grant.key} (handrail approvals revoke {grant.id})", "dim")
    for key in gate.settings.config.command_allowlist:
        chat.say(f"allowed always: {key}", "dim")


def mode(chat: Chat, rest: str) -> None:
    if rest:
        chat.set_mode(read_mode(rest))
    _show_choice(chat, MEANINGS, chat.mode)


def profile(chat: Chat, rest: str) -> None:
    if rest:
        chat.set_profile(Profile(rest))
    _show_choice(chat, profiles.MEANINGS, chat.app.environments.settings(chat.agent.session_id).options.get("profile"))


def _show_choice(chat: Chat, meanings: Mapping[Any, str], now: object) -> None:
    rows = Table.grid(padding=(0, 1, 0, 0))
    for each, meaning in meanings.items():
        rows.add_row("●" if each == now else "○", f"{each.value} ", meaning, style="" if each == now else "dim")
    chat.screen.print(rows)


def yolo(chat: Chat, rest: str) -> None:
    if _switched("yolo", rest, now=chat.mode is Mode.YOLO):
        chat.set_mode(Mode.YOLO)
        chat.say("You are not asked from now on. Blocked actions and your deny list still apply.", "yellow")
    else:
        chat.set_mode(Mode.AUTO)
        chat.say("You are asked again.")
