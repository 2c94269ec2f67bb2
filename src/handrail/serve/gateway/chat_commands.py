"""What people can say to the gateway itself: each command is a function here."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ...protocols import Answer, Decision
from . import texts

if TYPE_CHECKING:
    from .chat_session import Chat
    from .gateway import Gateway


def obey(gateway: Gateway, chat: Chat, person: str, text: str) -> str:
    """What is answered to a command, which begins with a slash."""
    name, _, rest = text.partition(" ")
    # Telegram writes `/help@name_of_the_bot` in groups.
    command = _COMMANDS.get(name.partition("@")[0].lower())
    if command is None:
        return f"I know no {name[:50]}.\n{texts.HELP}"
    return command(gateway, chat, person, rest.strip())


def approve(gateway: Gateway, chat: Chat, person: str, rest: str) -> str:
    words = rest.lower().split()
    is_all = "all" in words
    given = [word for word in words if word != "all"]
    decisions = {each.value: each for each in Decision if each.allows}
    if len(given) > 1 or any(word not in decisions for word in given):
        return f"Say /approve [all] [{'|'.join(decisions)}]."
    return _answer(gateway, chat, Answer(decisions[given[0]] if given else Decision.ONCE, person), is_all=is_all)


def deny(gateway: Gateway, chat: Chat, person: str, rest: str) -> str:
    first, _, more = rest.partition(" ")
    is_all = first.lower() == "all"
    return _answer(gateway, chat, Answer(Decision.DENY, person, (more if is_all else rest).strip()), is_all=is_all)


def _answer(gateway: Gateway, chat: Chat, answer: Answer, *, is_all: bool) -> str:
    waiting = gateway.questions.at(chat.where)
    if not waiting:
        return "Nothing waits for an answer here."
    said = []
    for stored in waiting if is_all else waiting[:1]:
        if answer.decision not in stored.request.offers:
            said.append(f"{stored.request.id} takes {', '.join(each.value for each in stored.request.offers)}.")
            continue
        before = gateway.questions.answer(stored.request.id, answer._replace(by=f"{chat.where.adapter}:{answer.by}"))
        if before is not None:
            said.append(texts.too_late(before))
    # What was answered shows in its own message.
    return "\n".join(said)


def yolo(gateway: Gateway, chat: Chat, person: str, rest: str) -> str:
    if rest.lower() == "off":
        gateway.questions.yolo.discard(chat.where)
        return "You are asked again."
    if rest and rest.lower() != "on":
        return "Say /yolo, or /yolo off."
    gateway.questions.yolo.add(chat.where)
    for stored in gateway.questions.at(chat.where):
        gateway.questions.answer(stored.request.id, Answer(Decision.ONCE, f"{chat.where.adapter}:{person}"))
    return "I say yes to everything in this chat now, until /yolo off or a restart. What can never run still does not."


def status(gateway: Gateway, chat: Chat, person: str, rest: str) -> str:  # noqa: ARG001
    lines = ["I am at work." if chat.is_busy else "I wait for you."]
    if chat.where in gateway.questions.yolo:
        lines.append("/yolo is on.")
    waiting = gateway.questions.at(chat.where)
    lines += ["What waits for your answer:", *map(texts.brief, waiting)] if waiting else []
    return "\n".join([*lines, f"Session {chat.session or 'not begun'}."])


def stop(gateway: Gateway, chat: Chat, person: str, rest: str) -> str:  # noqa: ARG001
    return "" if chat.stop() else "There is nothing to stop."


def new(gateway: Gateway, chat: Chat, person: str, rest: str) -> str:  # noqa: ARG001
    chat.begin_anew()
    return "We begin anew. `handrail sessions list` still has what was before."


def tools(gateway: Gateway, chat: Chat, person: str, rest: str) -> str:  # noqa: ARG001
    here = gateway.served.here
    names = sorted(here.toolsets.select([f"handrail-{gateway.accounts[chat.where.adapter].kind}"]))
    return "What I can use here: " + ", ".join(names)


def help_(gateway: Gateway, chat: Chat, person: str, rest: str) -> str:  # noqa: ARG001
    return texts.HELP


_COMMANDS: dict[str, Callable[[Gateway, Chat, str, str], str]] = {
    "/approve": approve,
    "/deny": deny,
    "/yolo": yolo,
    "/status": status,
    "/stop": stop,
    "/new": new,
    "/tools": tools,
    "/help": help_,
    "/start": help_,  # what Telegram sends when somebody opens the chat
}
