"""Take back what a call has changed on disk.

It works for commands, scripts and file tools. Nothing is lost: `handrail redo` brings back what was taken back.

Examples:
  handrail undo 17
  handrail undo --last
  handrail undo --last 3 --dry-run
  handrail undo 17 --only src/app.js

Exit codes: 0 it is undone, 1 it is not, and nothing was changed.
"""

import os
from typing import Annotated

from ...effects.calls import folder_here
from ...types import JsonDict
from ..options import BadParameter, DryRun, Json, argument, option
from ..output import ExitCode, refuse
from ..runtime import open_runtime
from .effects import DONE, Force, leave


def undo(
    number: Annotated[int | None, argument("[CALL]", "Its number; with --last how many.", min=1)] = None,
    last: Annotated[bool, option("--last", "The last calls made in this folder that changed something.")] = False,
    session: Annotated[str | None, option("ID", "All calls of a session, the last first.")] = None,
    only: Annotated[str, option("PATH", "Only what was changed there and below.")] = "",
    dry_run: DryRun = False,
    force: Force = False,
    as_json: Json = False,
) -> None:
    if sum((last, session is not None, number is not None and not last)) != 1:
        raise BadParameter("name a call, or give --last or --session; `handrail calls` lists the calls")
    calls = open_runtime().effects
    if number is not None and not last:
        numbers = [number]
    elif session is not None:
        numbers = [one.number for one in calls.last(10_000, session=session)]
    else:
        numbers = [one.number for one in calls.last(number or 1, folder=folder_here())]
    if not numbers:
        where = f"of session {session}" if session else "made in this folder"
        refuse(f"no call {where} can be undone; `handrail calls --all` lists the calls", ExitCode.FAILED)
    path = os.path.abspath(only) if only else ""
    answers: list[JsonDict] = []
    for one in numbers:
        answers.append(calls.undo(one, only=path, force=force, dry_run=dry_run))
        if answers[-1]["status"] not in DONE:
            break
    leave(answers, calls, verb="undone", as_json=as_json)
