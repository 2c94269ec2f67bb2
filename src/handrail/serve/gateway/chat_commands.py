"""The commands that users can give the gateway itself: one function each."""

from collections.abc import Callable
from functools import partial

from ...platforms.base import Message
from ...protocols import Answer, Decision
from ...store.approvals import StoredRequest
from . import texts
from .chat_session import Chat
from .questions import Questions

# How much of a question's id has to be given.
_MIN_ID = 4


def run_command(questions: Questions, chat: Chat, message: Message, text: str) -> str | Callable[[], str]:
    """Run a command, which starts with a slash, and return the reply; for one of a plugin, what gets the reply and may block."""
    name, _, rest = text.partition(" ")
    # Telegram writes `/help@name_of_the_bot` in groups.
    name = name.partition("@")[0].lower()
    command = _COMMANDS.get(name)
    if command is None and name[1:] not in chat.plugin_commands:
        return f"Unknown command {name[:50]}.\n{help_(questions, chat, message, '')}"
    chat.announce(name[1:], text)
    if command is None:
        return partial(chat.plugin_commands[name[1:]].reply, rest.strip())
    return command(questions, chat, message, rest.strip())


def approve(questions: Questions, chat: Chat, message: Message, rest: str) -> str:
    words, named = _named(questions, chat, rest.lower().split())
    is_all = "all" in words
    given = [word for word in words if word != "all"]
    decisions = {each.value: each for each in Decision if each.allows}
    if len(given) > 1 or any(word not in decisions for word in given):
        return f"Usage: /approve [ID|all] [{'|'.join(decisions)}]"
    answer = Answer(decisions[given[0]] if given else Decision.ONCE, message.user)
    return _answer(questions, chat, message, answer, named=named, is_all=is_all)


def deny(questions: Questions, chat: Chat, message: Message, rest: str) -> str:
    words, named = _named(questions, chat, rest.split())
    is_all = not named and bool(words) and words[0].lower() == "all"
    why = " ".join(words[1:] if is_all else words) if named or is_all else rest
    return _answer(questions, chat, message, Answer(Decision.DENY, message.user, why), named=named, is_all=is_all)


def _named(questions: Questions, chat: Chat, words: list[str]) -> tuple[list[str], list[StoredRequest]]:
    """The words without the ids of open questions, and those questions. An id stands first or last."""
    for place in (0, -1):
        word = words[place].strip("[]").lower() if words else ""
        found = [each for each in questions.at(chat.where) if len(word) >= _MIN_ID and each.request.id.startswith(word)]
        if len(found) == 1:
            return [each for number, each in enumerate(words) if number != place % len(words)], found
    return words, []


def _answer(
    questions: Questions, chat: Chat, message: Message, answer: Answer, *, named: list[StoredRequest], is_all: bool
) -> str:
    """Answer what the user saw: what they name, what they reply to, or the only question there was. Otherwise ask which."""
    if not (waiting := questions.at(chat.where)):
        return "There is no open question here."
    if (named or is_all) and not chat.needs_reply:
        chosen = named or questions.seen(chat.where, message)
    else:
        bound = questions.meant(chat.where, message)
        chosen = [bound] if bound is not None else []
    if not chosen:
        return texts.which_one(waiting, answer.decision, needs_reply=chat.needs_reply)
    return "\n".join(_answer_one(questions, chat, stored, answer) for stored in chosen)


def _answer_one(questions: Questions, chat: Chat, stored: StoredRequest, answer: Answer) -> str:
    request = stored.request
    if answer.decision not in request.offers:
        return f"{request.id} takes {', '.join(each.value for each in request.offers)}."
    before = questions.answer(request.id, answer._replace(by=f"{chat.where.adapter}:{answer.by}"))
    return texts.too_late(before) if before is not None else texts.done(request, answer.decision)


def show(questions: Questions, chat: Chat, message: Message, rest: str) -> str:
    """All that a question is about, which may be more than a message holds."""
    _, named = _named(questions, chat, rest.split())
    bound = named[0] if named else questions.meant(chat.where, message)
    if bound is None:
        waiting = questions.at(chat.where)
        return texts.which_one(waiting, None) if waiting else "There is no open question here."
    return texts.in_full(bound.request)


def yolo(questions: Questions, chat: Chat, message: Message, rest: str) -> str:
    if rest.lower() == "off":
        questions.yolo.discard(chat.where)
        return "I will ask you again."
    if rest and rest.lower() != "on":
        return "Usage: /yolo [off]"
    if chat.needs_reply and not message.question:
        return "Reply to the email of a question with /yolo: only that shows that it is you."
    questions.yolo.add(chat.where)
    for stored in questions.at(chat.where):
        questions.answer(stored.request.id, Answer(Decision.ONCE, f"{chat.where.adapter}:{message.user}"))
    return "Everything in this chat is approved, until /yolo off or a restart. What can never run is still blocked."


def status(questions: Questions, chat: Chat, message: Message, rest: str) -> str:  # noqa: ARG001  every command has these
    lines = ["I am working." if chat.is_busy else "I am idle."]
    if chat.where in questions.yolo:
        lines.append("/yolo is on.")
    waiting = questions.at(chat.where)
    lines += ["Waiting for your answer:", *map(texts.brief, waiting)] if waiting else []
    return "\n".join([*lines, f"Session {chat.session or 'not started'}."])


def stop(questions: Questions, chat: Chat, message: Message, rest: str) -> str:  # noqa: ARG001  every command has these
    return "" if chat.stop() else "There is nothing to stop."


def new(questions: Questions, chat: Chat, message: Message, rest: str) -> str:  # noqa: ARG001  every command has these
    chat.start_new_session()
    return "New session. `handrail sessions list` still has the previous one."


def tools(questions: Questions, chat: Chat, message: Message, rest: str) -> str:  # noqa: ARG001  every command has these
    return "Tools here: " + ", ".join(chat.tools())


def help_(questions: Questions, chat: Chat, message: Message, rest: str) -> str:  # noqa: ARG001  every command has these
    return "\n".join([texts.HELP, *(f"/{name} – {each.about}" for name, each in chat.plugin_commands.items())])


_COMMANDS: dict[str, Callable[[Questions, Chat, Message, str], str]] = {
    "/approve": approve,
    "/deny": deny,
    "/show": show,
    "/yolo": yolo,
    "/status": status,
    "/stop": stop,
    "/new": new,
    "/tools": tools,
    "/help": help_,
    "/start": help_,  # what Telegram sends when a user opens the chat
}
