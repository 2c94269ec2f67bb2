"""The commands that users can give the gateway itself: one function each."""

from __future__ import annotations

from collections.abc import Callable

from ...protocols import Answer, Decision
from . import texts
from .chat_session import Chat
from .questions import Questions


def run_command(questions: Questions, chat: Chat, user: str, text: str) -> str:
    """Run a command, which starts with a slash, and return the reply."""
    name, _, rest = text.partition(" ")
    # Telegram writes `/help@name_of_the_bot` in groups.
    command = _COMMANDS.get(name.partition("@")[0].lower())
    if command is None:
        return f"Unknown command {name[:50]}.\n{texts.HELP}"
    return command(questions, chat, user, rest.strip())


def approve(questions: Questions, chat: Chat, user: str, rest: str) -> str:
    words = rest.lower().split()
    is_all = "all" in words
    given = [word for word in words if word != "all"]
    decisions = {each.value: each for each in Decision if each.allows}
    if len(given) > 1 or any(word not in decisions for word in given):
        return f"Usage: /approve [all] [{'|'.join(decisions)}]"
    return _answer(questions, chat, Answer(decisions[given[0]] if given else Decision.ONCE, user), is_all=is_all)


def deny(questions: Questions, chat: Chat, user: str, rest: str) -> str:
    first, _, more = rest.partition(" ")
    is_all = first.lower() == "all"
    return _answer(questions, chat, Answer(Decision.DENY, user, (more if is_all else rest).strip()), is_all=is_all)


def _answer(questions: Questions, chat: Chat, answer: Answer, *, is_all: bool) -> str:
    waiting = questions.at(chat.where)
    if not waiting:
        return "There is no open question here."
    replies = []
    for stored in waiting if is_all else waiting[:1]:
        if answer.decision not in stored.request.offers:
            replies.append(f"{stored.request.id} takes {', '.join(each.value for each in stored.request.offers)}.")
            continue
        before = questions.answer(stored.request.id, answer._replace(by=f"{chat.where.adapter}:{answer.by}"))
        if before is not None:
            replies.append(texts.too_late(before))
    # A question that was answered shows that in its own message.
    return "\n".join(replies)


def yolo(questions: Questions, chat: Chat, user: str, rest: str) -> str:
    if rest.lower() == "off":
        questions.yolo.discard(chat.where)
        return "I will ask you again."
    if rest and rest.lower() != "on":
        return "Usage: /yolo [off]"
    questions.yolo.add(chat.where)
    for stored in questions.at(chat.where):
        questions.answer(stored.request.id, Answer(Decision.ONCE, f"{chat.where.adapter}:{user}"))
    return "Everything in this chat is approved, until /yolo off or a restart. What can never run is still blocked."


def status(questions: Questions, chat: Chat, user: str, rest: str) -> str:  # noqa: ARG001  every command has these
    lines = ["I am working." if chat.is_busy else "I am idle."]
    if chat.where in questions.yolo:
        lines.append("/yolo is on.")
    waiting = questions.at(chat.where)
    lines += ["Waiting for your answer:", *map(texts.brief, waiting)] if waiting else []
    return "\n".join([*lines, f"Session {chat.session or 'not started'}."])


def stop(questions: Questions, chat: Chat, user: str, rest: str) -> str:  # noqa: ARG001  every command has these
    return "" if chat.stop() else "There is nothing to stop."


def new(questions: Questions, chat: Chat, user: str, rest: str) -> str:  # noqa: ARG001  every command has these
    chat.start_new_session()
    return "New session. `handrail sessions list` still has the previous one."


def tools(questions: Questions, chat: Chat, user: str, rest: str) -> str:  # noqa: ARG001  every command has these
    return "Tools here: " + ", ".join(chat.tools())


def help_(questions: Questions, chat: Chat, user: str, rest: str) -> str:  # noqa: ARG001  every command has these
    return texts.HELP


_COMMANDS: dict[str, Callable[[Questions, Chat, str, str], str]] = {
    "/approve": approve,
    "/deny": deny,
    "/yolo": yolo,
    "/status": status,
    "/stop": stop,
    "/new": new,
    "/tools": tools,
    "/help": help_,
    "/start": help_,  # what Telegram sends when a user opens the chat
}
