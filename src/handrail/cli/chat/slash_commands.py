"""The table of slash commands."""

from __future__ import annotations

from rich.table import Table

from ...agent.rewind import PARTS
from ...approval.policy import Mode
from ...environments.profiles import Profile
from . import session_commands, tool_commands, work_commands
from .chat import Chat, Command
from .turn import Leave


def help_(chat: Chat, rest: str) -> None:  # noqa: ARG001  a command's signature
    table = Table.grid(padding=(0, 2))
    for command in chat.commands:
        table.add_row(f"/{command.name} {command.usage}".rstrip(), command.about)
    for key, about in _KEYS:
        table.add_row(key, about)
    chat.screen.print(table)


def quit_(chat: Chat, rest: str) -> None:  # noqa: ARG001  a command's signature
    raise Leave


_KEYS = (
    ("!command", "run a command in the agent's shell; the agent sees it"),
    ("!!command", "the same, but hidden from the agent"),
    ("Alt-Enter", "a new line; also Ctrl-J, or \\ and Enter"),
    ("@path", "attach a file, an image, or the names in a folder"),
    ("Ctrl-V", "attach the image in the clipboard"),
    ("Shift-Tab", "the next mode: plan, ask, auto, yolo"),
    ("F2", "the other profile: contained, or open (with sudo)"),
    ("while it works", "the agent gets what you send before its next step"),
    ("Ctrl-O", "while it works: open a child agent, the next, none"),
    ("Esc, Ctrl-C", "stop what is running; Ctrl-C again: leave"),
)

COMMANDS = (
    Command("help", "", "list the commands", help_, aliases=("?",)),
    Command("tools", "", "list the agent's tools", tool_commands.tools),
    Command("toolsets", "[+NAME|-NAME]", "list the agent's toolsets; add or remove one", tool_commands.toolsets,
            lambda chat: [f"{sign}{name}" for name in chat.app.toolsets.names() for sign in "+-"]),
    Command("model", "[NAME]", "show the model, or switch to another one", tool_commands.model,
            tool_commands.model_choices),
    Command("reasoning", "[on|off]", "show or hide the model's reasoning", tool_commands.reasoning, lambda _: ("on", "off"),
            ("thinking",)),
    Command("processes", "[log|kill ID]", "list the background processes", tool_commands.processes,
            lambda chat: ["log", "kill", *(one.id for one in chat.app.processes.list())], ("ps",)),
    Command("children", "[ID]", "list the session's child agents, or show what one did", session_commands.children,
            lambda chat: [info.id for info in chat.store.children(chat.agent.session_id)], ("agents",)),
    Command("approve", "[ID [ANSWER]]", "show pending requests and grants, or answer a request", tool_commands.approve,
            lambda chat: [stored.request.id for stored in chat.app.gate.store.pending()], ("approvals", "permissions")),
    Command("mode", "[MODE]", "show or change how much the agent may do by itself", tool_commands.mode,
            lambda _: [each.value for each in Mode]),
    Command("profile", "[PROFILE]", "show or change what commands may write and reach",
            tool_commands.profile, lambda _: [each.value for each in Profile]),
    Command("yolo", "[on|off]", "stop asking for approval in this chat, or ask again", tool_commands.yolo,
            lambda _: ("on", "off")),
    Command("undo", "[message|files]", "take back your last message and its changes on disk",
            session_commands.undo, lambda _: PARTS),
    Command("rewind", "[N [PART]]", "list your messages, or go back to before one of them",
            session_commands.rewind, session_commands.rewind_choices, ("rollback",)),
    Command("diff", "[PATH]", "show what has changed since the last commit", work_commands.diff),
    Command("review", "[ABOUT]", "have the uncommitted changes reviewed", work_commands.review),
    Command("init", "", "have AGENTS.md written for this project", work_commands.init),
    Command("status", "", "session, model, mode, folder and servers", work_commands.status),
    Command("mcp", "", "list the MCP servers, and how they are", work_commands.mcp),
    Command("skills", "", "list the skills; /NAME uses one", work_commands.skills),
    Command("copy", "", "copy the last answer to the clipboard", work_commands.copy),
    Command("theme", "[NAME]", "change the colours of code and diffs", work_commands.theme, lambda _: work_commands.THEMES),
    Command("save", "[FILE]", "write the conversation to a file: .md or .jsonl", session_commands.save,
            aliases=("export",)),
    Command("resume", "[ID]", "list earlier sessions, or continue one", session_commands.resume,
            session_commands.resume_choices, ("sessions",)),
    Command("new", "", "start a new session", session_commands.new, aliases=("clear",)),
    Command("branch", "", "continue in a copy of this session", session_commands.branch, aliases=("fork",)),
    Command("title", "[TEXT]", "show or change the title of this session", session_commands.title,
            aliases=("rename",)),
    Command("history", "[N]", "show the last messages again", session_commands.history),
    Command("compact", "", "replace all but the last turns by a summary", session_commands.compact),
    Command("cost", "", "tokens and money so far, and how full the context is", session_commands.cost,
            aliases=("context", "usage")),
    Command("quit", "", "leave; the session is kept", quit_, aliases=("exit", "q")),
)  # fmt: skip
