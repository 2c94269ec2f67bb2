"""Commands that you run yourself in the chat, with `!` before them."""

from typing import NamedTuple

from ...app import Handrail
from ...base.safe_text import TextCleaner, clean
from ...environments.base import CommandResult
from ...environments.held_calls import held_calls
from ...types import CancelToken
from ..output import visible
from . import turn
from .screen import Screen

_MAX_CHARS = 8_000
_QUIET_SECONDS = 30.0


class Ran(NamedTuple):
    exit_code: int
    output: str

    def for_agent(self, command: str) -> str:
        text = self.output
        if len(text) > _MAX_CHARS:
            half = _MAX_CHARS // 2
            text = f"{text[:half]}\n[... {len(text) - _MAX_CHARS:,} characters were left out ...]\n{text[-half:]}"
        return f"[I ran `{command}` myself; exit code {self.exit_code}. Its output:]\n{text.strip()}"


def run_own(app: Handrail, screen: Screen, command: str, *, task_id: str) -> Ran:
    """Run it to its end and show what it prints. Ctrl-C ends it."""
    cancel = CancelToken()
    ended, output = turn.run(
        lambda: _execute(app, screen, command, task_id, cancel),
        stop=lambda: cancel.cancel("interrupted by Ctrl-C"),
        draw=lambda: None,
        suspend=screen.suspend,
    )
    notes = [f"exit code {ended.exit_code}"] if ended.exit_code else []
    if ended.cancelled:
        notes = ["stopped"]
    if ended.restarted is not None:
        notes.append(str(ended.restarted))
    for note in notes:
        screen.write(f"{note}\n")
    return Ran(ended.exit_code, output)


def run_quietly(app: Handrail, command: str, *, task_id: str) -> Ran:
    """The same without showing anything: for a command of the chat itself."""
    with app.environments.use(task_id) as environment:
        ended = environment.execute(command, timeout=_QUIET_SECONDS)
    return Ran(ended.exit_code, clean(ended.output.head) + clean(ended.output.tail))


def _execute(
    app: Handrail, screen: Screen, command: str, task_id: str, cancel: CancelToken
) -> tuple[CommandResult, str]:
    """How it ended, and what it printed."""
    cleaner = TextCleaner()

    def show(text: str) -> None:
        if text:
            screen.write(visible(text))

    with app.environments.use(task_id) as environment, held_calls(environment).of_person():
        ended = environment.execute(command, cancel=cancel, on_output=lambda piece: show(cleaner.feed(piece)))
    rest = cleaner.finish()
    show(f"{rest}\n" if rest else "")
    parts = [clean(ended.output.head), clean(ended.output.tail)] if ended.output.tail else [clean(ended.output.head)]
    return ended, "\n[...]\n".join(parts)
