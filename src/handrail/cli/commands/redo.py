"""Bring back what an undo took back.

Examples:
  handrail redo 17

Exit codes: 0 it is back, 1 it is not, and nothing was changed.
"""

from pathlib import PurePath
from typing import Annotated

from ...types import JsonDict
from ..options import DryRun, Json, argument
from ..runtime import open_runtime
from .effects import Force, leave

Number = Annotated[int, argument("CALL", "The call that was undone.", min=1)]


def redo(number: Number, dry_run: DryRun = False, force: Force = False, as_json: Json = False) -> None:
    calls = open_runtime().effects
    is_whole = calls.records.get(number).undone_by
    answer = calls.redo(number, dry_run=dry_run, force=force)
    redone = calls.describe(number) if is_whole else _turned(answer)
    leave([answer], calls, verb="redone", as_json=as_json, redone=redone)


def _turned(answer: JsonDict) -> JsonDict:
    """What came back with a part of a call: the other way round, and a folder stands for what is in it."""
    folders = {one["path"] for one in answer["lost"] if one["kind"] == "folder"}
    created = [one for one in answer["lost"] if folders.isdisjoint(map(str, PurePath(one["path"]).parents))]
    moved = [{**one, "path": one["to"], "to": one["path"]} for one in answer["moved"]]
    return {"lost": answer["created"], "changed": answer["changed"], "created": created, "moved": moved}
