"""Show what a call has changed, and what was not saved.

Files lost, changed, created and moved, and hosts contacted.

Examples:
  handrail effects 17
  handrail effects 17 --diff
  handrail effects 17 --json | jq -r '.lost[].path'
"""

import os
import sys
import time
from collections.abc import Sequence
from typing import Annotated, NoReturn

from ...effects.calls import Calls
from ...store.call_records import CallRecord
from ...types import JsonDict
from ..call_text import counted, shortened
from ..options import Exit, Json, argument, option
from ..output import ExitCode, colours, emit, emit_json, fitted, paint, say, visible
from ..runtime import open_runtime

DONE = ("undone", "possible")
Force = Annotated[bool, option("--force", "Overwrite what has changed since; a copy of that is kept beside it.")]
_WORDS = {"lost": "deleted", "changed": "changed", "created": "created", "moved": "moved"}
_MAX_HEAD = 60
_MAX_LISTED = 200
_SIGNS = {"lost": ("-", "red"), "changed": ("~", "yellow"), "created": ("+", "green"), "moved": (">", "cyan")}
Number = Annotated[int, argument("CALL", "Its number, as `handrail calls` names it.")]
Diff = Annotated[bool, option("--diff", "Show the lines that differ.")]


def effects(number: Number, diff: Diff = False, as_json: Json = False) -> None:
    calls = open_runtime().effects
    told = calls.describe(number, diff=diff)
    emit_json(told) if as_json else _show_effects(told, calls.records.get(number), keep_days=calls.keep_days)


def state_text(record: CallRecord, keep_days: float) -> str:
    if record.outcome:
        return record.outcome
    if record.undone_by:
        return f"undone by call {record.undone_by}"
    if record.ended is None:
        return "still running" if record.is_changing else "nothing changed so far"
    if not record.is_changing:
        return record.reason or "nothing to undo"
    if record.is_pruned:
        return "not kept any more"
    until = time.localtime(record.ended + keep_days * 86_400)
    return f"can be undone until {until.tm_mday} {time.strftime('%b', until)}"


def call_row(record: CallRecord, keep_days: float) -> list[str]:
    counts = [f"{record.counts[kind]:,} {word}" for kind, word in _WORDS.items() if record.counts.get(kind)]
    counts += [f"{counted(record.hosts, 'host')} contacted"] if record.hosts else []
    counts += [f"watched: {record.coverage}"] if record.coverage != "full" else []
    head, effect = shortened(" ".join(record.head.split()), _MAX_HEAD), ", ".join(counts) or "nothing changed"
    return [str(record.number), record.tool, visible(head), effect, state_text(record, keep_days)]


def _show_effects(told: JsonDict, record: CallRecord, *, keep_days: float) -> None:
    """What a call has changed, one path per line."""
    painted = colours(sys.stdout)
    emit(fitted(f"call {record.number}  {record.tool}  {visible(record.head)}", indent=4))
    when = time.strftime("%d %b %H:%M:%S", time.localtime(record.begun))
    emit(fitted(f"made {when} in {visible(record.folder)} ({record.environment}); {state_text(record, keep_days)}"))
    for kind, (sign, style) in _SIGNS.items():
        found = told.get(kind, [])
        for one in found[:_MAX_LISTED]:
            emit(paint(f"  {sign} {visible(_path_text(kind, one))}", style, on=painted))
            for line in one.get("diff", "").splitlines()[2:]:
                emit(f"      {visible(line)}")
        left = told.get("counts", {}).get(kind, 0) - len(found[:_MAX_LISTED])
        if left > 0:
            emit(f"  {sign} and {left:,} more; --json lists them")
    for host in told.get("hosts", []):
        emit(f"  ! contacted {visible(host)}, which cannot be undone")
    for line in record.left_running:
        emit(f"  ! left running: {visible(shortened(line, 100))}")
    for one in told.get("unsaved", []):
        emit(f"  ! not saved: {visible(one['path'] or 'something')}: {visible(one['reason'])}")
    if record.reason:
        emit(f"  ! watched: {record.coverage}: {visible(record.reason)}")
    if record.undone_by:
        emit(f"`handrail redo {record.number}` brings it back.")
    elif told.get("reason"):
        emit(f"It cannot be undone: {visible(told['reason'])}.")
    else:
        emit(f"`handrail undo {record.number}` takes it back; --only PATH a part of it.")


def _path_text(kind: str, one: JsonDict) -> str:
    path = one["path"] + ("/" if one.get("kind") == "folder" else "")
    if kind == "moved":
        return f"{path} -> {one['to']}"
    if kind == "changed":
        sizes = " -> ".join(f"{size:,}" for size in dict.fromkeys((one["size"], one["size_now"]))) + " bytes"
        mode = f", mode {one['mode']:o} -> {one['mode_now']:o}" if one["mode"] != one["mode_now"] else ""
        return f"{path}  {sizes}{mode}"
    if kind == "created" and one.get("kind") == "folder":
        return f"{path}  {counted(one['files'], 'file')}, {one['size']:,} bytes"
    unsaved = "" if one.get("saved", True) else ", not saved"
    return path if one.get("kind") == "folder" else f"{path}  {one['size']:,} bytes{unsaved}"


def leave(answers: Sequence[JsonDict], calls: Calls, *, verb: str, as_json: bool) -> NoReturn:
    """Say what undos did, and end the command."""
    if as_json:
        emit_json(list(answers))
    for answer in () if as_json else answers:
        number, status = answer["call"], answer["status"]
        if status == "refused":
            say(f"call {number} was not {verb}: {answer['reason']}")
        elif status == "conflict":
            _show_conflict(answer, calls)
        else:
            _show_done(answer, verb if status == "undone" else f"would be {verb}")
    is_done = all(one["status"] in DONE and not one["failed"] for one in answers)
    raise Exit(ExitCode.OK if is_done else ExitCode.FAILED)


def _show_done(answer: JsonDict, verb: str) -> None:
    done = ("restored", "reverted", "removed", "moved back")
    if verb.endswith("redone"):  # what the undo took back is the other way round
        done = ("created again", "changed again", "deleted again", "moved again")
    words = dict(zip(_WORDS, done, strict=True))
    parts = [f"{len(answer[kind]):,} {word}" for kind, word in words.items() if answer[kind]]
    own = f" (call {answer['number']})" if answer.get("number") else ""
    emit(f"call {answer['call']} {verb}{own}: {', '.join(parts) or 'nothing was different'}")
    for kind, sign in zip(words, "+~-<", strict=True):
        for one in answer[kind][:_MAX_LISTED]:
            emit(f"  {sign} {visible(one['path'])}")
    for path, beside in answer.get("kept_beside", {}).items():
        emit(f"  what was at {visible(path)} is now {visible(os.path.basename(beside))}")
    for one in answer.get("failed", []):
        say(f"{one['path']} could not be put back: {one['reason']}")


def _show_conflict(answer: JsonDict, calls: Calls) -> None:
    number = answer["call"]
    say(f"call {number} was not undone, and nothing was changed: this was changed since")
    for one in answer["conflicts"][:_MAX_LISTED]:
        who = f"somebody else at {time.strftime('%d %b %H:%M:%S', time.localtime(one['when']))}"
        if one["call"]:
            record = calls.records.find(one["call"])
            about = f" ({record.tool}: {shortened(record.head, 40)})" if record is not None else ""
            who = f"call {one['call']}{about}"
        say(f"  {one['path']} by {who}")
    later = sorted({one["call"] for one in answer["conflicts"] if one["call"]}, reverse=True)
    first = f"`handrail undo {later[0]}` first, or " if later else ""
    say(f"{first}--only PATH for a part, or --force, which keeps what is there now beside it")
