"""Talk with an agent that works in this folder.

Enter sends, Alt-Enter starts a new line. Esc or Ctrl-C stops what is running; a second Ctrl-C leaves. Dangerous
actions ask first. `!command` runs your own command in the agent's shell. /help shows the rest.

`handrail setup` chooses the model. Or set HANDRAIL_MODEL and the key of its provider, such as OPENAI_API_KEY or
ANTHROPIC_API_KEY. Needs `pip install 'handrail[agent]'`.

Examples:
  handrail chat
  handrail chat "what is this project?"
  handrail chat --continue
  handrail chat --resume 20261116-0912 --model gpt-5-mini

Exit codes: 0 left, 1 no model or no such session, 2 no terminal, 130 left by Ctrl-C.
"""

import contextlib
import sys
import threading
from typing import Annotated

from rich.text import Text

from ...agent.agent_factory import LAST, open_store
from ...agent.models.model_selection import HOW_TO, find
from ...approval.policy import read_mode, usual_mode
from ...config.store import load_config
from ...errors import ModelError
from ...tools.skills.library import Library
from ..chat.chat import Chat
from ..chat.screen import Screen
from ..chat.session_commands import greet
from ..chat.slash_commands import COMMANDS
from ..chat.turn import Leave, leave_on_signals
from ..chat.work_commands import last_theme, own_commands
from ..folder_trust import ask_about_folder
from ..options import (
    Continue,
    Disabled,
    Exit,
    Mode,
    Model,
    Resume,
    Toolsets,
    TrustFolder,
    Yolo,
    argument,
    option,
    require_terminal,
)
from ..output import as_typed, emit, fitted, typed, visible
from ..runtime import log_as_notes, open_runtime


def chat(
    message: Annotated[str, argument("[MESSAGE]", "What to say first.")] = "",
    model: Model = None,
    goes_on: Continue = False,
    resume: Resume = None,
    toolset: Toolsets = None,
    disable: Disabled = None,
    mode: Mode = "",
    yolo: Yolo = False,
    trust_folder: TrustFolder = False,
    or_demo: Annotated[bool, option("--or-demo", "Without a model or a terminal: show the demo.")] = False,
) -> None:
    if or_demo and (reason := _not_possible()):
        from ..demo.show import play

        play()
        emit(fitted(f"\n{_console()}\n{reason}"))
        return
    if or_demo:
        emit(_console())
    require_terminal("handrail ask")
    ask_about_folder(trust=trust_folder)
    made = _made("yolo" if yolo else mode, {"model": model, "toolsets": toolset, "without": disable})
    with contextlib.closing(made.store), contextlib.closing(made):
        code = 0
        try:
            leave_on_signals(made.pastes.close)
            made.open(LAST if goes_on else resume)
            greet(made)
            if (load := getattr(made.agent.models[0], "load", None)) is not None:  # what the first question needs
                threading.Thread(target=load, name="handrail-load").start()
            made.talk(message)
        except Leave as left:
            if made.was_used:
                made.say(f"Continue with: {typed(f'chat --resume {made.agent.session_id}')}", "dim")
            code = left.code
    raise Exit(code)


def _made(mode: str, with_agent: dict[str, str | list[str] | None]) -> Chat:
    try:
        import prompt_toolkit  # noqa: F401  fail now, not at the first prompt
    except ImportError:
        raise ModelError("the chat needs more packages; pip install 'handrail[agent]'") from None
    screen = Screen()
    screen.code_theme = last_theme()
    log_as_notes(lambda text: screen.print(Text(visible(text), "yellow")))
    app = open_runtime(hold=screen.held)
    own = own_commands(Library(app.config.skills), [name for each in COMMANDS for name in (each.name, *each.aliases)])
    made = Chat(app, screen, open_store(), [*COMMANDS, *own], **with_agent)
    made.mode = read_mode(mode) if mode else usual_mode(app.environments.settings(None).options.get("profile"))
    return made


def _console() -> str:
    return as_typed("To watch and approve in a browser: `handrail serve` prints a link to the web console.")


def _not_possible() -> str:
    """Why there is only the demo, and what would change that; empty when there can be a chat."""
    if find(load_config().model) is None:
        return as_typed(f"To talk with a model instead: {HOW_TO}.")
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        return as_typed("A model is configured: at a terminal this opens `handrail chat`.")
    return ""
