"""Run something in an environment in the name of a call, so that what it changes is kept."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .open_call import NO_JOURNAL

if TYPE_CHECKING:
    from ..environments.base import Environment
    from ..types import ToolContext


def call_number(context: ToolContext, environment: Environment, head: str, folder: str) -> int:
    """The number of the call, taken before `head` runs; 0 if no journal is kept."""
    effects = context.effects
    if effects is None or not effects.begin(head, folder=folder, environment=environment):
        return 0
    if not hasattr(environment, "coverage"):  # one that a plugin brings
        effects.covered(*NO_JOURNAL)
        return 0
    return effects.number


def has_run(context: ToolContext, environment: Environment, *, changed: bool, running: bool = False) -> int:
    """Called when it has ended or, if something is still `running`, has been started. The number, if there is a change."""
    effects = context.effects
    if effects is None or not effects.number:
        return 0
    effects.is_changed, effects.is_running = effects.is_changed or changed, effects.is_running or running
    if hasattr(environment, "coverage"):
        effects.covered(*environment.coverage)
    return effects.number if changed or running else 0
