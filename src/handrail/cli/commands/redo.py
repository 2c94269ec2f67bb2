"""Bring back what an undo took back.

Examples:
  handrail redo 17

Exit codes: 0 it is back, 1 it is not, and nothing was changed.
"""

from typing import Annotated

from ..options import DryRun, Json, argument
from ..runtime import open_runtime
from .effects import Force, leave

Number = Annotated[int, argument("CALL", "The call that was undone.", min=1)]


def redo(number: Number, dry_run: DryRun = False, force: Force = False, as_json: Json = False) -> None:
    calls = open_runtime().effects
    leave([calls.redo(number, dry_run=dry_run, force=force)], calls, verb="redone", as_json=as_json)
