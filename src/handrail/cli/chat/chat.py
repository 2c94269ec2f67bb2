"""The chat: read a message, act on it, until the user leaves. Slash commands read and change its state."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable, Coroutine, Iterable, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from rich.text import Text

from ...agent.agent import Agent
from ...agent.agent_factory import open_agent
from ...agent.events import End
from ...app import Handrail
from ...approval.policy import Mode, usual_mode
from ...base.suggest import nearest
from ...base.workers import run_async
from ...config.paths import state_dir
from ...environments import protection
from ...environments.profiles import Profile
from ...errors import HandrailError, InvalidArguments
from ...store.sessions import SessionStore
from ...types import CancelToken, JsonDict
from ..output import as_typed, visible
from ..runtime import TerminalPerson
from . import turn
from .mentions import mentioned
from .own_commands import run_own
from .pastes import Pastes
from .screen import Screen
from .server_offers import ServerOffers
from .status_line import StatusLine
from .turn import Leave
from .type_ahead import COMMAND_SIGNS, TypedAhead
from .view import OpenChild, View

if TYPE_CHECKING:
    from .input import Input, PlainInput

T = TypeVar("T")
CODING = "coding"


class Command(NamedTuple):
    """A slash command. `run` gets what follows the name; `choices` complete it, each with what it is after a tab."""

    name: str
    usage: str
    about: str
    run: Callable[[Chat, str], None]
    choices: Callable[[Chat], Iterable[str]] = lambda _: ()
    aliases: tuple[str, ...] = ()


def with_text(act: Callable[[Chat, str], None], text: Callable[[str], str]) -> Callable[[Chat, str], None]:
    """What a command does whose text depends on the words after it."""
    return lambda chat, rest: act(chat, text(rest))


class Chat:
    """One user, one screen, and one agent at a time. `options` go to `open_agent` whenever an agent is made."""

    def __init__(
        self, app: Handrail, screen: Screen, store: SessionStore, commands: Sequence[Command], **options: Any
    ) -> None:
        self.app, self.screen, self.store = app, screen, store
        found = app.plugins.contributions.chat_commands if app.plugins else {}
        added = (Command(name, each.hint, each.about, with_text(Chat.say, each.reply)) for name, each in found.items())
        self._commands, self.options = [*commands, *added], options
        self.offers = ServerOffers(app)
        self.view = View(screen, app.runtime.registry, OpenChild(store))
        self.view.shows_thoughts = app.config.model.show_reasoning
        self.agent: Agent  # since `open`
        self.mode = Mode.AUTO
        self.notes: list[str] = []  # for the agent, with the next message
        self.models: list[str] = []  # names of the provider's models, once they were looked up
        self.pastes = Pastes()
        self.draft = ""  # already typed at the next prompt
        self._ahead: list[str] = []  # messages that were typed while the agent worked
        self._status = StatusLine(app, store, lambda: self.agent, lambda: self.mode)
        self.view.status_line = partial(self._status.text, is_busy=True)

    @property
    def commands(self) -> list[Command]:
        """Those of the chat, of plugins, and the prompts of MCP servers."""
        offered = self.offers.prompts
        return [*self._commands, *(Command(*each[:3], with_text(Chat.ask, each.text)) for each in offered)]

    def open(self, resume: str | None = None) -> None:
        """Continue a session, or start one. The previous one is closed, and deleted if it is empty."""
        agent = open_agent(self.app, store=self.store, resume=resume, **self.options)
        self.close()
        self.agent = agent
        self.view.todos = agent.todos.items
        if agent.loop.tool_calls.toolsets[0] is None:  # nobody chose any
            agent.loop.tool_calls.at_hand = [CODING]
        self.set_mode(self.mode)

    def set_mode(self, mode: Mode) -> None:
        """How much the agent may do by itself, in this session and those that follow it here."""
        if mode is not self.mode or mode is not Mode.AUTO:  # the gate is loaded with the first action
            self.app.gate.modes.default = mode
        self.mode = mode

    def set_profile(self, profile: Profile | None = None) -> None:
        """For this session; without one it is open, or contained if it was open. A mode that you did not choose goes with it."""
        before = self.app.environments.settings(self.agent.session_id).options.get("profile")
        profile = profile or (Profile.CONTAINED if before == Profile.OPEN else Profile.OPEN)
        self.app.environments.set_profile(self.agent.session_id, profile)
        self.set_mode(usual_mode(profile) if self.mode is usual_mode(before) else self.mode)
        self._status.refresh()

    def close(self) -> None:
        if not hasattr(self, "agent"):
            return
        self.agent.close()
        if not self.was_used:
            self.store.delete(self.agent.session_id)

    @property
    def was_used(self) -> bool:
        """Whether the session has any messages."""
        return hasattr(self, "agent") and len(self.agent.loop.conversation) > 0

    def talk(self, first: str = "") -> None:
        """Runs until the user leaves, which raises Leave."""
        with contextlib.closing(self.pastes):
            if (found := self.protection()) is not None:  # in full at the first chat, then in a few words
                short = f"{re.split('[:;]', found.line)[0]} (/status)"
                line = short if _history().exists() else f"{found.line}; F2 changes the profile"
                self.say(f"{line[0].upper()}{line[1:]}.", "dim" if found.is_whole else "yellow")
            if first:
                self.screen.write(f"› {visible(first)}\n")
                self._do(first)
            typed = TypedAhead(self.draft, self.pastes)  # before the first prompt; Enter sends there, too
            with self.screen.reading_keys() as reads:
                if reads:
                    typed.feed(self.screen.keys(0))
            self._ahead += map(self.pastes.unfolded, typed.lines)
            self.draft, interrupts = typed.text, 0
            while True:
                try:
                    line = self._read()
                except EOFError:
                    raise Leave from None
                except KeyboardInterrupt:
                    interrupts = interrupts + 1 if self._input.is_empty else 0
                    if interrupts > 1:
                        raise Leave(130) from None
                    if interrupts:
                        self.say("Ctrl-C again, Ctrl-D or /quit leaves.", "dim")
                    continue
                interrupts = 0
                if line.strip():
                    self._do(line)

    def protection(self) -> protection.Enforcement | None:
        """What holds back commands on this machine; None if they run elsewhere."""
        terminal = self.app.config.terminal
        if terminal.backend != "local" or terminal.backends.get("local", {}).get("sandbox"):
            return None
        return protection.examine(self.app.config)

    def ask(self, text: str, *, attaches: bool = True) -> None:
        """One turn of the agent. With `attaches` the files that the text mentions are sent with it."""
        whole, self.notes = "\n\n".join([text, *self.notes]), []
        self.view.begin(f"{self.agent.models[0].name} is thinking · Esc stops it")
        self.view.child.begin(self.agent.session_id)
        typed = self.view.ahead = TypedAhead(self.draft, self.pastes)
        message = self._with_mentions(whole) if attaches else whole
        try:
            with self.screen.reading_keys() as reads:
                ended = turn.run(
                    lambda: self.agent.run(message, self.view.listen),
                    stop=self._stop,
                    draw=self.view.draw,
                    suspend=self.screen.suspend,
                    read_keys=partial(self._read_keys, typed) if reads else None,
                )
        finally:
            self.view.ahead = None
            self.view.end()
        self._show_heard(typed)
        unheard = self.agent.take_unheard()
        if ended.end is End.ANSWERED:
            self._ahead += unheard
            self.draft = typed.text
        else:  # all of it was typed for another course of things
            self.draft = "\n".join([*self._ahead, *unheard, typed.text]).rstrip("\n")
            self._ahead.clear()

    def _read_keys(self, typed: TypedAhead) -> None:
        """What is typed while the agent works: Esc stops it, a message is heard before its next step, a command runs
        after it."""
        sent = len(typed.lines)
        typed.feed(self.screen.keys(turn.FRAME_SECONDS / 2))
        for line in typed.lines[sent:]:
            take = self._ahead.append if line.startswith(COMMAND_SIGNS) else self.agent.steer
            take(self.pastes.unfolded(line))
        self._show_heard(typed)
        if typed.opened:
            typed.opened = False
            self.view.child.next()
        while typed.modes:
            typed.modes -= 1
            self.set_mode(self.mode.next)
        if typed.escaped:
            typed.escaped = False
            self._stop()

    def _show_heard(self, typed: TypedAhead) -> None:
        """A message that the agent has heard goes from the lines below into the conversation."""
        waiting = [self.pastes.refolded(each) for each in (*self._ahead, *self.agent.unheard)]
        for line in [each for each in typed.lines if each not in waiting]:
            typed.lines.remove(line)
            self.screen.print(Text(f"› {visible(line)}"))

    def _with_mentions(self, text: str) -> str | list[JsonDict]:
        found = mentioned(text, self.agent.cwd)
        for problem in found.problems:
            self.say(problem, "yellow")
        if missing := [f"@{name}" for name in found.unknown if ":" not in name and f"@{name}" in text]:
            self.say(f"No such file here, so sent as text: {', '.join(missing)}", "dim")
        if found.attached:
            self.say(f"With {', '.join(found.attached)}", "dim")
        whole = "\n\n".join([text, *found.texts, *self.offers.mentioned(text)])
        return [{"type": "text", "text": whole}, *found.images] if found.images else whole

    def _stop(self) -> None:
        self.view.stopping()
        self.agent.interrupt()
        if isinstance(self.app.runtime.person, TerminalPerson):
            self.app.runtime.person.interrupt()

    def wait_for(self, status: str, work: Coroutine[Any, Any, T]) -> T:
        """What the work returns; the status is shown meanwhile. Ctrl-C cancels it, and a second one leaves."""
        cancel = CancelToken()
        stop, waits = partial(cancel.cancel, "interrupted by Ctrl-C"), partial(run_async, work, cancel=cancel)
        self.view.begin(status)
        try:
            return turn.run(waits, stop=stop, draw=self.view.draw, suspend=self.screen.suspend)
        finally:
            self.view.end()

    def say(self, text: str, style: str = "") -> None:
        self.screen.print(Text(visible(as_typed(text)), style))

    def _do(self, line: str, *, is_typed: bool = True) -> None:
        """What the user typed may be a command, and name files to send; what a plugin says is only a message."""
        try:
            if not is_typed:
                self.ask(line, attaches=False)
            elif line.startswith("!"):
                self._run_own(line[1:])
            elif (found := self._command_of(line)) is not None:
                command, rest = found
                self.app.runtime.hooks.announce("cli", command.name, line, self.agent.session_id)
                command.run(self, rest)
            else:
                self.ask(line)
        except HandrailError as error:
            self.say(str(error), "red")

    def _command_of(self, line: str) -> tuple[Command, str] | None:
        """The command and what follows it. None for a message, also for one that starts with a path."""
        if not line.startswith("/"):
            return None
        typed = re.split(r"\s", line[1:], maxsplit=1)[0]
        name, rest = typed.lower(), line[1 + len(typed) :]
        self.offers.refresh(typed.rpartition(":")[0])
        for command in self.commands:
            if name in (command.name, *command.aliases):
                return command, rest.strip()
        if name and ("/" in name or os.path.exists(f"/{name}")):
            return None
        near = nearest(name, [command.name for command in self.commands])
        hint = f"did you mean /{near}?" if near else "/help shows them"
        raise InvalidArguments(f"there is no command /{name}; {hint}")

    def _run_own(self, command: str) -> None:
        is_private = command.startswith("!")
        command = command.lstrip("!").strip()
        if not command:
            self.say("!command runs your command in the agent's shell; !!command hides it from the agent.")
            return
        ran = run_own(self.app, self.screen, command, task_id=self.agent.session_id)
        if not is_private:
            self.notes.append(self.app.environments.masker(ran.for_agent(command)))

    def _read(self) -> str:
        if self._ahead:
            line = self._ahead.pop(0)
            self._input.remember(line)
            self.screen.write(f"{self._prompt()}{visible(self.pastes.refolded(line))}\n")
            return line
        draft, self.draft = self.draft, ""
        self.offers.refresh()
        self.agent.wake = self._input.wake
        if injected := self.agent.take_injected():  # a plugin has something to say while the user says nothing
            self.draft = draft
            line = "\n\n".join(injected)
            self.screen.write(f"{self._prompt()}{visible(line)}\n")
            self._do(line, is_typed=False)
            return ""
        return self._input.read(self._prompt, text=draft)

    def _prompt(self) -> str:
        return "› " if self.mode is Mode.AUTO else f"{self.mode.value} › "

    @cached_property
    def _input(self) -> Input | PlainInput:
        from .input import Input, PlainInput

        if not self.screen.moves:
            return PlainInput(self.screen)
        return Input(
            history=_history(),
            choices=lambda: {each.name: (each.about, partial(each.choices, self)) for each in self.commands},
            resources=lambda: self.offers.resources,
            pastes=self.pastes,
            toolbar=self._status.text,
            coloured=self.screen.coloured,
            folder=lambda: self.agent.cwd,
            next_mode=lambda: self.set_mode(self.mode.next),
            next_profile=self.set_profile,
        )


def _history() -> Path:
    return state_dir() / "chat_history"
