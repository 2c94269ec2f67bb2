"""Slash commands about conversations: this one and earlier ones."""

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from rich.text import Text

from ... import __version__
from ...agent import rewind as back
from ...agent.conversation import estimate
from ...agent.models.model_selection import as_of, list_prices
from ...errors import InvalidArguments, ToolFailed
from ...store.export import as_jsonl, text_of
from ...store.sessions import SessionInfo, StoredMessage
from ...types import JsonDict
from ..call_text import calls_of, shortened, since
from ..output import visible
from .chat import Chat
from .screen import Screen

LISTED = 15
_SHOWN_AGAIN = 4


def undo(chat: Chat, rest: str) -> None:
    _go_back(chat, *back.last(chat.agent, rest))


def rewind(chat: Chat, rest: str) -> None:
    """To before a message of yours, by its number; without one they are listed."""
    if rest:
        _go_back(chat, *back.since(chat.agent, rest))
        return
    if not (asked := back.asked(chat.agent)):
        chat.say("You have not said anything in this session yet.")
        return
    changing = [one.begun for one in chat.app.effects.last(1000, session=chat.agent.session_id)]
    rows = []
    for number, one in enumerate(asked, 1):
        later = sum(begun >= one.at for begun in changing)
        text = " ".join(text_of(one.message).split())
        rows.append((str(number), since(one.at), str(later or ""), visible(text)))
    chat.screen.table(("N", "AGE", "CALLS TO UNDO", "MESSAGE"), rows)
    chat.say("/rewind N goes back to before it, and so do the files; add `message` or `files` for one of them.", "dim")


def _go_back(chat: Chat, messages: Sequence[StoredMessage], part: str) -> None:
    lines, taken = back.go_back(chat.agent, chat.app.effects, messages, part)
    for line in lines:
        chat.say(visible(line))
    chat.draft = taken or chat.draft


def save(chat: Chat, rest: str) -> None:
    path = Path(rest or f"handrail-{chat.agent.session_id}.md").expanduser()
    info = chat.store.get(chat.agent.session_id)
    if path.suffix == ".jsonl":
        text = "".join(f"{line}\n" for line in as_jsonl(chat.store, info.id))
    else:
        text = _as_markdown(chat.agent.loop.conversation.messages, info)
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise ToolFailed(f"{path} is there already; /save another name") from None
    except OSError as error:
        raise ToolFailed(f"{path} cannot be written: {error.strerror}") from None
    chat.say(f"Written to {path}. The session itself is kept anyway: handrail chat --resume {info.id}")


def resume(chat: Chat, rest: str) -> None:
    if rest:
        if chat.store.get(rest).id == chat.agent.session_id:
            chat.say("That is the current session.")
        else:
            chat.open(rest)
            greet(chat)
        return
    marks = {chat.agent.session_id: " (this one)"}
    found = [each for each in chat.store.recent(limit=LISTED) if each.title or each.id in marks]
    rows = [(each.id, since(each.updated), visible(each.title or "-") + marks.get(each.id, "")) for each in found]
    chat.screen.table(("ID", "AGE", "TITLE"), rows)
    chat.say("/resume ID continues one.", "dim")


def resume_choices(chat: Chat) -> list[str]:
    found = [info for info in chat.store.recent(limit=LISTED) if info.title and info.id != chat.agent.session_id]
    return [f"{info.id}\t{visible(info.title)}" for info in found]


def new(chat: Chat, rest: str) -> None:  # noqa: ARG001  a command's signature
    before = chat.agent.session_id
    chat.open()
    chat.agent.started_after(before)
    greet(chat)


def branch(chat: Chat, rest: str) -> None:  # noqa: ARG001  a command's signature
    before = chat.agent.session_id
    chat.open(chat.store.branch(before).id)
    chat.say(f"This is {chat.agent.session_id} now; {before} stays as it is.")


def title(chat: Chat, rest: str) -> None:
    if rest:
        chat.store.rename(chat.agent.session_id, rest)
    chat.say(chat.store.get(chat.agent.session_id).title or "It has no title yet.")


def history(chat: Chat, rest: str) -> None:
    if rest and not (rest.isascii() and rest.isdigit()):
        raise InvalidArguments("/history, or /history and how many messages")
    if not len(chat.agent.loop.conversation):
        chat.say("No messages yet.")
    show(chat.screen, chat.agent.loop.conversation.messages, last=int(rest or 20))


def compact(chat: Chat, rest: str) -> None:  # noqa: ARG001  a command's signature
    conversation = chat.agent.loop.conversation
    before = estimate(conversation)
    if chat.wait_for("summarising the conversation", chat.agent.compact()):
        chat.say(f"From about {before:,} to {estimate(conversation):,} tokens.")
    else:
        chat.say("There is too little to summarise.")


def cost(chat: Chat, rest: str) -> None:  # noqa: ARG001  a command's signature
    agent, info = chat.agent, chat.store.get(chat.agent.session_id)
    money = "no price is known" if info.cost is None else f"${info.cost:.4f}"
    if any(list_prices(agent.models[0].name)) and not chat.app.config.model.input_price:
        money += f" by list prices of {as_of()}"
    used, window = estimate(agent.loop.conversation), agent.models[0].context_tokens
    chat.say(f"{info.input_tokens:,} tokens in, {info.output_tokens:,} out; {money}")
    chat.say(f"The conversation is about {used:,} of the {window:,} tokens that fit ({used / window:.0%}).")


def children(chat: Chat, rest: str) -> None:
    """List them, or show the conversation of one."""
    found = chat.store.children(chat.agent.session_id)
    if rest:
        show(chat.screen, [each.message for each in chat.store.messages(chat.store.get(rest).id)], last=50)
        return
    for info in found:
        chat.say(f"{info.id}  {info.title}")
    chat.say("/children ID shows one." if found else "This session has no child agents.", "dim")


def greet(chat: Chat) -> None:
    """Who is there, and where the conversation was."""
    agent, info = chat.agent, chat.store.get(chat.agent.session_id)
    chat.say(f"Handrail {__version__} · {agent.models[0].name} · session {info.id}", "bold")
    if len(agent.loop.conversation):
        chat.say(shortened(f"{info.title or 'no title'}, in {agent.cwd}", chat.screen.width), "dim")
        show(chat.screen, agent.loop.conversation.messages, last=_SHOWN_AGAIN)
    else:
        chat.say("What should I do? /help lists the commands; Ctrl-D leaves.", "dim")


_RESULT_CHARS = 2_000
_SHOWN_CHARS = 600


def _as_markdown(messages: Sequence[JsonDict], info: SessionInfo) -> str:
    began = datetime.fromtimestamp(info.created, UTC).strftime("%Y-%m-%d %H:%M UTC")
    parts = [f"# {info.title or 'A conversation'}", f"Session {info.id} with {info.model}, {began}, in `{info.cwd}`."]
    for message in messages:
        text = text_of(message).strip()
        match message["role"]:
            case "user":
                parts.append(f"## You\n\n{text}")
            case "assistant":
                parts += [f"## Agent\n\n{text}"] if text else []
                parts += [f"`{call}`" for call in calls_of(message)]
            case "tool":
                cut = shortened(text, _RESULT_CHARS)
                longest = max((len(line) - len(line.lstrip("`")) for line in cut.splitlines()), default=0)
                fence = "`" * max(3, longest + 1)
                parts.append(f"{fence}\n{cut}\n{fence}")
    return "\n\n".join(parts) + "\n"


def show(screen: Screen, messages: Sequence[JsonDict], *, last: int) -> None:
    """The last messages of the user and the agent; of calls only that they were made."""
    shown = [message for message in messages if message["role"] in ("user", "assistant")]
    if len(shown) > last:
        screen.print(Text(f"… {len(shown) - last} messages above; /history {len(shown)} shows them", "dim"))
    for message in shown[-last:] if last else ():
        text = shortened(text_of(message).strip(), _SHOWN_CHARS)
        if message["role"] == "user":
            screen.print(Text(f"› {visible(text)}", "bold"))
        elif text:
            screen.markdown(text)
        for call in calls_of(message):
            screen.print(Text(f"  {visible(shortened(call, screen.width - 4))}", "dim"))
