"""Slash commands about the work: what changed, what is set up, prompts that are used often, and the user's own."""

import base64
import contextlib
import os
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path

from rich.table import Table
from rich.text import Text

from ... import __version__
from ...approval.policy import MEANINGS
from ...base.suggest import did_you_mean
from ...config.paths import config_path, state_dir
from ...errors import InvalidArguments, ToolFailed
from ...tools.skills.library import Library
from ..call_text import counted
from ..output import visible
from .chat import Chat, Command
from .diffs import diff_rows
from .own_commands import run_quietly

_DIFF_LINES = 200
_LAST_COMMIT = "$(git rev-parse --quiet --verify HEAD || git hash-object -t tree /dev/null)"  # or an empty tree
_INIT = (
    "Look at this project, then write AGENTS.md in its root for the agents that will work here: what it is, how to build, run, "
    "test and lint it (try the commands), how the code is laid out, and the conventions that are not obvious. Keep it under 60 "
    "lines. If there is an AGENTS.md already, improve it."
)
_REVIEW = (
    "Review the uncommitted changes of this project (git diff HEAD, and new files){about}. Read the code around them. Report "
    "only what is wrong or risky: bugs, missed cases, security, tests that are missing; each with file, line and a fix, worst "
    "first. Change nothing."
)
THEMES = ("ansi_dark", "ansi_light", "monokai", "github-dark", "default", "bw")


def diff(chat: Chat, rest: str) -> None:
    """The uncommitted changes; by git in the agent's shell, which is where the agent works."""
    run = partial(run_quietly, chat.app, task_id=chat.agent.session_id)
    ran = run(f"git --no-pager diff --no-ext-diff --no-color {_LAST_COMMIT} -- {rest}")
    if ran.exit_code:
        if "not a git repository" in ran.output.lower():
            raise ToolFailed("this folder is not in a git repository; `/rewind` lists what your messages changed")
        raise ToolFailed(f"git: {ran.output.strip()[:300]}")
    new = run(f"git ls-files --others --exclude-standard -- {rest}")
    names = [] if new.exit_code else new.output.splitlines()
    if not (names or ran.output.strip()):
        chat.say(f"Nothing has changed {f'in {rest} ' if rest else ''}since the last commit.")
    for part in ran.output.split("diff --git ")[1:]:
        path = part.partition("\n")[0].rpartition(" b/")[2]
        hunks = part[part.find("@@") :] if "@@" in part else ""
        chat.say(path, "bold")
        chat.screen.print(*diff_rows(hunks, path, _DIFF_LINES, theme=chat.screen.code_theme))
    for name in names:
        chat.say(f"{name} (new; git does not track it yet)", "bold")


def status(chat: Chat, rest: str) -> None:  # noqa: ARG001  a command's signature
    agent = chat.agent
    chat.say(f"Handrail {__version__}, session {agent.session_id}")
    facts = {
        "model": ", ".join(each.name for each in agent.models),
        "mode": f"{chat.mode.value}: {MEANINGS[chat.mode]}",
        "folder": f"{agent.cwd}, commands run on {chat.app.environments.settings(agent.session_id).backend}",
    }
    if (found := chat.protection()) is not None:
        facts["safety"] = f"{found.detail}{found.fix and f'; {found.fix}'}"
    rows = Table.grid(padding=(0, 2, 0, 0))
    for name, fact in facts.items():
        rows.add_row(name, Text(visible(fact), "yellow" if name == "safety" and found and not found.is_whole else ""))
    chat.screen.print(rows)
    mcp(chat, "")


def mcp(chat: Chat, rest: str) -> None:  # noqa: ARG001  a command's signature
    """The MCP servers, and how they are."""
    found = chat.app.mcp.connections.status() if chat.app.mcp is not None else {}
    absent = chat.app.mcp.absent() if chat.app.mcp is not None else {}
    if not found and not absent:
        chat.say("No MCP servers. `handrail mcp add NAME -- COMMAND` adds one.")
    for name in dict.fromkeys([*found, *absent]):
        state = absent.get(name) or f"{found[name].state.value}, {counted(found[name].tools, 'tool')}"
        chat.say(f"mcp     {name}: {state}")


def skills(chat: Chat, rest: str) -> None:  # noqa: ARG001  a command's signature
    found = Library(chat.app.config.skills).all()
    for each in found:
        chat.say(f"/{each.name:20} {each.reason or each.header.description}")
    if not found:
        chat.say("No skills. `handrail skills list` says where they are looked for.")


def init(chat: Chat, rest: str) -> None:
    chat.ask(f"{_INIT} {rest}".strip())


def review(chat: Chat, rest: str) -> None:
    chat.ask(_REVIEW.format(about=f", above all: {rest}" if rest else ""))


def copy(chat: Chat, rest: str) -> None:  # noqa: ARG001  a command's signature
    """The last answer to the clipboard, by the terminal: over ssh and in tmux too, where the terminal allows it."""
    said = [each for each in chat.agent.loop.conversation.messages if each["role"] == "assistant"]
    texts = [each["content"] for each in said if isinstance(each.get("content"), str) and each["content"]]
    if not texts:
        raise InvalidArguments("there is no answer to copy yet")
    chat.screen.write(f"\x1b]52;c;{base64.b64encode(texts[-1].encode()).decode('ascii')}\x07")
    chat.say(f"Copied {len(texts[-1]):,} characters.")


def theme(chat: Chat, rest: str) -> None:
    if rest:
        if rest not in THEMES:
            raise InvalidArguments(f"there is no theme {rest!r}; {did_you_mean(rest, THEMES)}")
        chat.screen.code_theme = rest
        _theme_file().write_text(rest, "utf-8")
    others = ", ".join(each for each in THEMES if each != chat.screen.code_theme)
    chat.say(f"Code and diffs use the theme {chat.screen.code_theme}. Others: {others}")


def last_theme() -> str:
    """The theme that was chosen last, in any chat."""
    with contextlib.suppress(OSError, UnicodeDecodeError):
        if (name := _theme_file().read_text("utf-8")) in THEMES:
            return name
    return THEMES[0]


def _theme_file() -> Path:
    return state_dir() / "chat_theme"


def own_commands(app_skills: Library, taken: Iterable[str]) -> list[Command]:
    """The user's own commands: Markdown files in `commands` beside config.yaml, and skills by their names."""
    known = set(taken)
    files = sorted((config_path().parent / "commands").glob("*.md"))
    found = [_of_file(path) for path in files if path.stem not in known]
    known |= {command.name for command in found}
    skills = [each for each in app_skills.ready() if each.name not in known]
    by_name = "Use the skill {!r} (read it with skill_view first). {}"
    return [
        *found,
        *(_sends(each.name, each.header.description, partial(by_name.format, each.name)) for each in skills),
    ]


def _of_file(path: Path) -> Command:
    first = _lines(path)[:1]

    def text(rest: str) -> str:
        text = "\n".join(_lines(path))
        return text.replace("$ARGUMENTS", rest) if "$ARGUMENTS" in text else f"{text}\n\n{rest}"

    return _sends(path.stem, first[0].lstrip("# ") if first else "your own command", text)


def _lines(path: Path) -> Sequence[str]:
    try:
        return path.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ToolFailed(f"{os.fspath(path)} cannot be read: {error}") from None


def _sends(name: str, about: str, text: Callable[[str], str]) -> Command:
    """A command that asks the agent what `text` makes of the words after it."""
    return Command(name, "[TEXT]", visible(about)[:60], lambda chat, rest: chat.ask(text(rest).strip()))
