"""A command that was allowed to be tried: it has run, and what it did is shown, to be kept or taken back."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, cast

from ..base.workers import run_async
from ..errors import CallNotFound, Denied
from ..protocols import Action, ActionKind
from .isolated_trial import FOLDER, IsolatedTrial

if TYPE_CHECKING:
    from ..environments.base import Environment
    from ..environments.local_environment import LocalEnvironment
    from ..types import JsonDict, ToolContext

TRIED = "effect.tried"
_SIGNS = {"lost": "-", "changed": "~", "created": "+", "moved": ">"}
_MAX_LINES = 40
_WHY = "it was tried and has run; this is what it did. A yes keeps it, a no takes it back"


def settle(context: ToolContext, number: int, end_left: Callable[[], object]) -> list[str]:
    """What the model has to be told if the call was tried and is not kept. `end_left` ends what the command left running."""
    effects = context.effects
    if effects is None or not effects.is_tried or effects.calls.tries_isolated or not number:
        return []
    effects.end()
    try:
        told = effects.calls.describe(number)
    except CallNotFound:  # it has changed nothing
        return []
    why = _denied(context, told, number)
    if why:
        end_left()
        return [why, effects.take_back(number)]
    return []


def isolated(context: ToolContext, environment: Environment) -> IsolatedTrial | None:
    """Where the command runs, if it is to be tried where nobody sees it."""
    if context.effects is None or not context.effects.is_tried or not context.effects.calls.tries_isolated:
        return None
    folder = Path(context.effects.calls.recorder.journal_folder).parent / FOLDER / str(context.effects.number)
    return IsolatedTrial(cast("LocalEnvironment", environment), folder)


def settle_isolated(context: ToolContext, trial: IsolatedTrial) -> list[str]:
    """As `settle`. What is kept is done in the work tree now."""
    effects, changes = context.effects, trial.changes()
    assert effects is not None
    if not changes:
        return []
    told = {kind: [{"path": one.path} for one in changes if one.kind == kind] for kind in _SIGNS}
    why = _denied(context, {**told, "counts": {kind: len(found) for kind, found in told.items()}})
    if why:
        return [why, "nothing has changed"]
    conflicts = trial.conflicts(changes)
    if conflicts:
        named = ", ".join(conflicts[:_MAX_LINES])
        return [f"It was tried, and is not kept: meanwhile somebody else has changed {named}", "nothing has changed"]
    effects.has_run(trial.environment, changed=True)
    try:
        with effects.calls.recorder.files.writing(effects.number) as record:
            trial.keep(changes, record)
    except OSError as error:
        return [f"It was tried, and cannot be kept: {error}", effects.take_back(effects.number)]
    return []


def _denied(context: ToolContext, told: JsonDict, number: int = 0) -> str:
    """Show what a command did. What the model is told if it is not kept; empty if it is."""
    details: JsonDict = {"why": _WHY, "rule": TRIED, "path": "", "project": "", "once": True}
    details["arguments"] = {"call": number}
    action = Action(ActionKind.HELD, "\n".join(_lines(told)) or "nothing is different", details=details)
    try:
        if context.gate is None:
            raise Denied("nobody can be asked", decided_by="policy")
        waiting = context.gate.review([action], context)
        if waiting is not None:
            run_async(waiting, cancel=context.cancel)
    except Denied as error:
        return f"It was tried, and is not kept: {str(error).removeprefix('Not run: ')}"
    return ""


def _lines(told: JsonDict) -> Iterator[str]:
    found = [f"{sign} {one['path']}{_more(one)}" for kind, sign in _SIGNS.items() for one in told.get(kind, ())]
    yield from found[:_MAX_LINES]
    if len(found) > _MAX_LINES:
        yield f"and {sum(told['counts'].values()) - _MAX_LINES:,} more"
    for host in told.get("hosts", ()):
        yield f"! contacted {host}, which cannot be taken back"
    for one in told.get("unsaved", ()):
        yield f"! not saved: {one['path'] or 'something'}: {one['reason']}"


def _more(one: JsonDict) -> str:
    return f" -> {one['to']}" if "to" in one else f"/ ({one['files']:,} files)" if one.get("files", 1) > 1 else ""
