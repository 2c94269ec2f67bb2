"""`process`: look after what runs in the background, and answer what it asks."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, cast

from ...core.builtin import registry
from ...core.registry import tool_result
from ...errors import InvalidArguments, ToolFailed
from ...protocols import Action, ActionKind
from ...types import JsonDict, Resources, ToolContext

if TYPE_CHECKING:
    from ...processes.interact import Typed
    from ...processes.table import ProcessTable
    from ...processes.tracked import Status, TrackedProcess

_MAX_WAIT_SECONDS = 600.0
_DEFAULT_WAIT_SECONDS = 60.0
_SETTLE_SECONDS = 1.0
_POLL_BYTES = 4_000
_POLL_SCREEN_LINES = 10
_LOG_LINES = 200


def process(args: JsonDict, *, context: ToolContext | None = None, **_: object) -> str:
    table = _table(context)
    assert context is not None
    action = args["action"]
    if action == "list":
        return _list(table, context, everything=args.get("all", False))
    tracked = table.get(_session_id(args))
    return _ACTIONS[action](table, tracked, args, context)


def _list(table: ProcessTable, context: ToolContext, *, everything: bool) -> str:
    from ...environments.task_settings import DEFAULT_TASK

    found = [(one, one.status()) for one in table.list(context.task_id or DEFAULT_TASK)]
    shown = [_summary(one, status) for one, status in found if everything or not one.record.ended_at]
    ended = len(found) - len(shown)
    more = {"ended": f"{ended} more have ended; all=true lists them"} if ended else {}
    return tool_result(processes=shown, **more)


def _poll(table: ProcessTable, tracked: TrackedProcess, args: JsonDict, context: ToolContext) -> str:  # noqa: ARG001
    return _view(table, tracked, tracked.status())


def _log(table: ProcessTable, tracked: TrackedProcess, args: JsonDict, context: ToolContext) -> str:  # noqa: ARG001
    from ...processes.log_pages import page

    status = tracked.status()
    table.seen(tracked, status)
    shown = page(tracked, offset=args.get("offset"), limit=args.get("limit", _LOG_LINES), pattern=args.get("pattern"))
    return tool_result(**_summary(tracked, status), **shown)


def _wait(table: ProcessTable, tracked: TrackedProcess, args: JsonDict, context: ToolContext) -> str:
    from ...processes.interact import wait

    asked = args.get("timeout", _DEFAULT_WAIT_SECONDS)
    waited = wait(tracked, min(asked, _MAX_WAIT_SECONDS), context.cancel)
    more: JsonDict = {"waited_seconds": round(waited.seconds, 1)}
    if waited.status.state.value == "running" and not waited.waits_for_input:
        more["note"] = "it still runs; wait again, or go on and come back to it"
        if asked > _MAX_WAIT_SECONDS:
            more["note"] += f" (one wait is at most {_MAX_WAIT_SECONDS:g} s)"
    return _view(table, tracked, waited.status, **more)


def _kill(table: ProcessTable, tracked: TrackedProcess, args: JsonDict, context: ToolContext) -> str:  # noqa: ARG001
    from ...processes.tracked import State

    before = tracked.status()
    if before.state is State.EXITED:
        return _view(table, tracked, before, note="it had ended already")
    tracked.kill()
    return _view(table, tracked, tracked.status(), killed=True)


def _write(table: ProcessTable, tracked: TrackedProcess, args: JsonDict, context: ToolContext) -> str:
    from ...processes.interact import send

    send(tracked, _typed(tracked, args))
    return _after_input(table, tracked, args, context)


def _close(table: ProcessTable, tracked: TrackedProcess, args: JsonDict, context: ToolContext) -> str:
    tracked.use(lambda one: one.close_stdin())
    return _after_input(table, tracked, args, context)


def _resize(table: ProcessTable, tracked: TrackedProcess, args: JsonDict, context: ToolContext) -> str:
    if not tracked.record.has_pty:
        raise ToolFailed(f"{tracked.id} has no terminal that could be resized; only one that was started with pty has")
    rows, columns = tracked.record.rows, tracked.record.columns
    tracked.resize(args.get("rows", rows), args.get("columns", columns))
    return _after_input(table, tracked, args, context)


def _after_input(table: ProcessTable, tracked: TrackedProcess, args: JsonDict, context: ToolContext) -> str:
    """What it made of it, so that the model need not ask."""
    from ...processes.interact import settle

    settle(tracked, min(args.get("timeout", _SETTLE_SECONDS), _MAX_WAIT_SECONDS), context.cancel)
    return _view(table, tracked, tracked.status())


_ACTIONS: dict[str, Callable[[ProcessTable, TrackedProcess, JsonDict, ToolContext], str]] = {
    "poll": _poll,
    "log": _log,
    "wait": _wait,
    "kill": _kill,
    "write": _write,
    "submit": _write,
    "close": _close,
    "resize": _resize,
}


# What the model sees


def _summary(tracked: TrackedProcess, status: Status) -> JsonDict:
    record = tracked.record
    until = time.time() if status.ended_at is None else status.ended_at
    shown: JsonDict = {
        "session_id": record.id,
        "command": record.command,
        "status": status.state.value,
        "pid": record.pid,
        "seconds": round(max(0.0, until - record.started_at), 1),
    }
    if status.exit_code is not None:
        shown["exit_code"] = status.exit_code
    if status.reason:
        shown["reason"] = status.reason
    if record.has_pty:
        shown["pty"] = True
    return shown


def _view(table: ProcessTable, tracked: TrackedProcess, status: Status, **more: object) -> str:
    """The answer of all actions on one process. `seen` first: a watch that was paused goes on after what is shown here."""
    from ...environments.errors import NoSuchProcess
    from ...processes.log_pages import last_lines

    table.seen(tracked, status)
    shown = {**_summary(tracked, status), **more}
    if status.state.value == "running" and tracked.waits_for_input():
        shown["waiting_for_input"] = True
    try:
        shown |= _screen(tracked) if tracked.record.has_pty else last_lines(tracked, _POLL_BYTES)
    except NoSuchProcess as error:
        shown |= {"output": "", "note": str(error)}
    return tool_result(shown)


def _screen(tracked: TrackedProcess) -> JsonDict:
    screen = tracked.screen()
    text = tracked.presented(screen.text)
    (rows, columns), (row, column) = screen.size, screen.cursor
    last = [line for line in text.splitlines() if line.strip()][-_POLL_SCREEN_LINES:]
    return {
        "output": "\n".join(last),
        "screen": text,
        "cursor": {"row": row, "column": column},
        "size": {"rows": rows, "columns": columns},
    }


# What it is asked for


def _table(context: ToolContext | None) -> ProcessTable:
    if context is None or context.processes is None:
        raise ToolFailed("this runtime keeps no background processes")
    return cast("ProcessTable", context.processes)


def _session_id(args: JsonDict) -> str:
    if not args.get("session_id"):
        raise InvalidArguments(
            f"action {args['action']!r} needs session_id, the id that came when the process was started; "
            "the action list shows them",
            argument="session_id",
        )
    return str(args["session_id"])


def _typed(tracked: TrackedProcess, args: JsonDict) -> Typed:
    from ...processes.interact import typed

    submits = args["action"] == "submit"
    text, keys = args.get("data", ""), args.get("keys", [])
    if not (text or keys or submits):
        raise InvalidArguments("action 'write' needs data (text), or keys, or both: the text is typed first")
    return typed(tracked, text, keys, enter=submits)


def _actions(args: JsonDict, context: ToolContext) -> Sequence[Action]:
    """Only what is typed is judged, with what stands in the line already: the process was judged when it was started."""
    if args["action"] not in ("write", "submit"):
        return ()
    table = _table(context)
    tracked = table.get(_session_id(args))
    environment = table.environment(tracked.record)
    foreground, hides = tracked.reader()
    details = {
        "command": tracked.record.command,
        "session_id": tracked.id,
        "pty": tracked.record.has_pty,
        "foreground": foreground,
        **({"echo": False} if hides else {}),
    }
    return [
        Action(
            ActionKind.INPUT,
            _typed(tracked, args).line,
            environment=environment.name,
            isolated=environment.isolated,
            reaches_host=environment.reaches_host,
            details={**details, "keys": tuple(args.get("keys", ()))},
        )
    ]


def _resources(args: JsonDict, context: ToolContext | None = None) -> Resources:
    """Looks run together, but in order with commands; a server that is killed is gone before the next one is started."""
    from ...files.task_arguments import everything

    name = everything(context)
    return Resources(reads=(name,)) if args["action"] in ("list", "poll", "log", "wait") else Resources(writes=(name,))


registry.register(
    name="process",
    toolset="terminal",
    schema={
        "description": (
            "Look after processes that run in the background: list them, poll one (status and latest output), read its log, "
            "wait for it, kill it, or give it input. Input is write (text and keys as they are), submit (text and Enter) "
            "or close (end of input); the answer shows what the program did with it. A program on a terminal (pty) "
            "shows its screen as a person would see it; waiting_for_input is true when it reads and has nothing to read."
        ),
        "parameters": {
            "type": "object",
            "properties": {
                "action": {
                    "type": "string",
                    "enum": ["list", *_ACTIONS],
                    "description": "What to do. All but list need session_id.",
                },
                "session_id": {"type": "string", "description": "Which process (proc_...)."},
                "data": {"type": "string", "description": "Text for write or submit."},
                "keys": {
                    "type": "array",
                    "items": {"type": "string"},
                    "description": (
                        "Keys for write or submit, typed after data: ENTER, TAB, ESC, UP, DOWN, LEFT, RIGHT, HOME, END, "
                        "PAGEUP, PAGEDOWN, BACKSPACE, DELETE, F1 to F12, C-c (Control), M-x (Alt), S-TAB (Shift)."
                    ),
                },
                "timeout": {
                    "type": "number",
                    "minimum": 0,
                    "description": (
                        "Seconds: for wait at most so many (60, up to 600); after input for the program to take it (1)."
                    ),
                },
                "offset": {
                    "type": "integer",
                    "minimum": 1,
                    "description": "First line of the log, or with a pattern the first match. Default: the end.",
                },
                "limit": {
                    "type": "integer",
                    "minimum": 1,
                    "maximum": 5000,
                    "description": "Lines or matches of the log (200).",
                },
                "pattern": {"type": "string", "description": "Only lines of the log that match this expression."},
                "all": {"type": "boolean", "description": "List those that have ended, too."},
                "rows": {"type": "integer", "minimum": 2, "maximum": 500, "description": "For resize."},
                "columns": {"type": "integer", "minimum": 2, "maximum": 500, "description": "For resize."},
            },
            "required": ["action"],
        },
    },
    handler=process,
    emoji="⚙️",
    timeout=_MAX_WAIT_SECONDS + 30,
    resources=_resources,
    actions=_actions,
)
