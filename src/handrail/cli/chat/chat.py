"""The chat: read what the person says, do it, until they leave. Its state is what slash commands look at and change."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, TypeVar

from ...agent.agent_factory import open_agent
from ...agent.events import End
from ...errors import HandrailError
from ..output import visible
from ..terminal_person import TerminalPerson
from . import turn
from .plain_input import PlainInput
from .turn import Leave
from .type_ahead import TypedAhead
from .user_command import run_own
from .view import View

if TYPE_CHECKING:
    from ...agent.agent import Agent
    from ...app import Handrail
    from ...store.sessions import SessionStore
    from .input import Input
    from .screen import Screen

T = TypeVar("T")


class Chat:
    """One person, one screen, and one agent at a time. `options` go to `open_agent` whenever an agent is made."""

    def __init__(self, here: Handrail, screen: Screen, store: SessionStore, **options: Any) -> None:
        self.here, self.screen, self.store = here, screen, store
        self.options = options
        self.view = View(screen, here.runtime.registry)
        self.view.shows_thoughts = here.config.model.show_reasoning
        self.agent: Agent  # since `open`
        self.yolo = False
        self.notes: list[str] = []  # for the agent, with the next message
        self.draft = ""  # what stands at the next prompt already
        self._ahead: list[str] = []  # messages that were typed while the agent worked

    # What there is to do

    def open(self, resume: str | None = None) -> None:
        """Go on with a session, or begin one. The one before is closed; it is gone if nothing was said in it."""
        agent = open_agent(self.here, store=self.store, resume=resume, **self.options)
        self.close()
        self.agent = agent

    def load_ahead(self) -> None:
        """Have ready what the first question needs."""
        load = getattr(self.agent.models[0], "load", None)
        if load is not None:
            threading.Thread(target=load, name="handrail-load").start()

    def close(self) -> None:
        if not hasattr(self, "agent"):
            return
        self.agent.close()
        if not self.was_used:
            self.store.delete(self.agent.session_id)

    @property
    def was_used(self) -> bool:
        """Whether there is a session that somebody said something in."""
        return hasattr(self, "agent") and len(self.agent.loop.conversation) > 0

    def talk(self, first: str = "") -> None:
        """Until the person leaves: raises Leave."""
        if first:
            self.screen.write(f"› {visible(first)}\n")
            self._do(first)
        self._hear_what_came_early()
        interrupts = 0
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

    def ask(self, text: str) -> None:
        """One turn of the agent."""
        notes, self.notes = self.notes, []
        self.view.begin(f"{self.agent.models[0].name} is thinking · Ctrl-C stops it")
        typed = self.view.ahead = TypedAhead(self.draft)
        try:
            with self.screen.hearing_keys() as hears:
                ended = self.wait_for(
                    lambda: self.agent.run("\n\n".join([text, *notes]), self.view.listen),
                    stop=self._stop,
                    hear=(lambda: typed.feed(self.screen.keys(turn.FRAME_SECONDS / 2))) if hears else None,
                )
        finally:
            self.view.ahead = None
            self.view.end()
        if ended.end is End.ANSWERED:
            self._ahead += typed.lines
            self.draft = typed.text
        else:  # all of it was typed for another course of things
            self.draft = "\n".join([*self._ahead, *typed.lines, typed.text]).rstrip("\n")
            self._ahead.clear()

    def _stop(self) -> None:
        self.view.stopping()
        self.agent.interrupt()
        if isinstance(self.here.runtime.person, TerminalPerson):
            self.here.runtime.person.interrupt()

    def wait_for(
        self, work: Callable[[], T], *, stop: Callable[[], object], hear: Callable[[], object] | None = None
    ) -> T:
        """Something that takes a while, with the screen alive. Ctrl-C stops it, and a second one leaves."""
        return turn.run(work, stop=stop, draw=self.view.draw, hear=hear)

    def say(self, text: str, style: str = "") -> None:
        from rich.text import Text

        self.screen.print(Text(visible(text), style))

    # How it is done

    def _do(self, line: str) -> None:
        from .slash_commands import command_of

        try:
            if line.startswith("!"):
                self._run_own(line[1:])
            elif (found := command_of(line)) is not None:
                command, rest = found
                command.run(self, rest)
            else:
                self.ask(line)
        except HandrailError as error:
            self.say(str(error), "red")

    def _run_own(self, command: str) -> None:
        is_private = command.startswith("!")
        command = command.lstrip("!").strip()
        if not command:
            self.say("!command runs a command of yours where the agent's run; !!command without telling the agent.")
            return
        ran = run_own(self.here, self.screen, command, task_id=self.agent.session_id)
        if not is_private:
            self.notes.append(self.here.environments.masker(ran.for_agent(command)))

    def _hear_what_came_early(self) -> None:
        """Before there was a prompt the terminal took Enter for a line's end; it was meant to send."""
        typed = TypedAhead(self.draft)
        with self.screen.hearing_keys() as hears:
            if hears:
                typed.feed(self.screen.keys(0))
        self._ahead += typed.lines
        self.draft = typed.text

    def _read(self) -> str:
        prompt = "yolo › " if self.yolo else "› "
        if self._ahead:
            line = self._ahead.pop(0)
            self._input.remember(line)
            self.screen.write(f"{prompt}{visible(line)}\n")
            return line
        draft, self.draft = self.draft, ""
        return self._input.read(prompt, text=draft)

    @cached_property
    def _input(self) -> Input | PlainInput:
        if not self.screen.moves:
            return PlainInput(self.screen)
        from ...config.paths import state_dir
        from .input import Input
        from .slash_commands import COMMANDS

        return Input(
            history=state_dir() / "chat_history",
            choices={command.name: (command.about, partial(command.choices, self)) for command in COMMANDS},
            toolbar=self._toolbar,
            coloured=self.screen.coloured,
        )

    def _toolbar(self) -> str:
        where = self.agent.cwd.replace(os.path.expanduser("~"), "~", 1)
        return f" {self.agent.models[0].name} · {where} · Alt-Enter: new line · /help"


def log_to(screen: Screen) -> None:
    """Warnings of the runtime, where the person looks."""

    class Lines(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            from rich.text import Text

            screen.print(Text(visible(record.getMessage()), "yellow"))

    logging.root.addHandler(Lines(logging.WARNING))
