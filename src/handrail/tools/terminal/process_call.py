"""Run a call of `process`."""

import time
from collections.abc import Callable
from typing import NamedTuple, cast

from ...core.outcome import tool_result
from ...environments.backend_table import DEFAULT_TASK
from ...environments.errors import NoSuchProcess
from ...errors import InvalidArguments, ToolFailed
from ...files.task_arguments import everything
from ...processes.interact import Typed, send, settle, typed, wait
from ...processes.table import ProcessTable
from ...processes.tracked import State, Status, TrackedProcess, last_lines, page
from ...protocols import Action, ActionKind
from ...types import JsonDict, Resources, ToolContext

_MAX_WAIT_SECONDS = 600.0
_DEFAULT_WAIT_SECONDS = 60.0
_SETTLE_SECONDS = 1.0
_POLL_BYTES = 4_000
_POLL_SCREEN_LINES = 10
_LOG_LINES = 200


class _Call(NamedTuple):
    table: ProcessTable
    tracked: TrackedProcess
    args: JsonDict
    context: ToolContext


def process(args: JsonDict, *, context: ToolContext, **_: object) -> str:
    table = _table(context)
    if (action := args["action"]) == "list":
        return _list(table, context, with_ended=args.get("all", False))
    return _ACTIONS[action](_Call(table, table.get(_session_id(args)), args, context))


def _list(table: ProcessTable, context: ToolContext, *, with_ended: bool) -> str:
    found = [(one, one.status()) for one in table.list(context.task_id or DEFAULT_TASK)]
    shown = [_summary(one, status) for one, status in found if with_ended or not one.record.ended_at]
    ended = len(found) - len(shown)
    more = {"ended": f"{ended} more have ended; all=true lists them"} if ended else {}
    return tool_result(processes=shown, **more)


def _log(call: _Call) -> str:
    tracked, args = call.tracked, call.args
    status = tracked.status()
    call.table.seen(tracked, status)
    shown = page(tracked, offset=args.get("offset"), limit=args.get("limit", _LOG_LINES), pattern=args.get("pattern"))
    return tool_result(**_summary(tracked, status), **shown)


def _wait(call: _Call) -> str:
    asked = call.args.get("timeout", _DEFAULT_WAIT_SECONDS)
    waited = wait(call.tracked, min(asked, _MAX_WAIT_SECONDS), call.context.cancel)
    more: JsonDict = {"waited_seconds": round(waited.seconds, 1)}
    if waited.status.state is State.RUNNING and not waited.waits_for_input:
        more["note"] = "it still runs; wait again, or go on and come back to it"
        if asked > _MAX_WAIT_SECONDS:
            more["note"] += f" (one wait is at most {_MAX_WAIT_SECONDS:g} s)"
    return _view(call, waited.status, **more)


def _kill(call: _Call) -> str:
    before = call.tracked.status()
    if before.state is State.EXITED:
        return _view(call, before, note="it had ended already")
    call.tracked.kill()
    return _view(call, call.tracked.status(), killed=True)


def _write(call: _Call) -> str:
    send(call.tracked, _typed(call.tracked, call.args))
    return _after_input(call)


def _close(call: _Call) -> str:
    call.tracked.use(lambda one: one.close_stdin())
    return _after_input(call)


def _resize(call: _Call) -> str:
    record = call.tracked.record
    if not record.has_pty:
        raise ToolFailed(f"{record.id} has no terminal to resize; only a process that was started with pty has one")
    call.tracked.resize(call.args.get("rows", record.rows), call.args.get("columns", record.columns))
    return _after_input(call)


def _after_input(call: _Call) -> str:
    """What the process did with the input, so that the model need not poll."""
    settle(call.tracked, min(call.args.get("timeout", _SETTLE_SECONDS), _MAX_WAIT_SECONDS), call.context.cancel)
    return _view(call, call.tracked.status())


_ACTIONS: dict[str, Callable[[_Call], str]] = {
    "poll": lambda call: _view(call, call.tracked.status()),
    "log": _log,
    "wait": _wait,
    "kill": _kill,
    "write": _write,
    "submit": _write,
    "close": _close,
    "resize": _resize,
}


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


def _view(call: _Call, status: Status, **more: object) -> str:
    """The result of every action on one process. `seen` comes first: a paused watch continues after what is shown here."""
    tracked = call.tracked
    call.table.seen(tracked, status)
    shown = {**_summary(tracked, status), **more}
    if status.state is State.RUNNING and tracked.waits_for_input():
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
    cursor, size = {"row": row, "column": column}, {"rows": rows, "columns": columns}
    return {"output": "\n".join(last), "screen": text, "cursor": cursor, "size": size}


def _table(context: ToolContext) -> ProcessTable:
    if context.processes is None:
        raise ToolFailed("this runtime keeps no background processes")
    return cast(ProcessTable, context.processes)


def _session_id(args: JsonDict) -> str:
    if not args.get("session_id"):
        raise InvalidArguments(
            f"action {args['action']!r} needs session_id, the id that came when the process was started; "
            "the action list shows them",
            argument="session_id",
        )
    return str(args["session_id"])


def _typed(tracked: TrackedProcess, args: JsonDict) -> Typed:
    submits = args["action"] == "submit"
    text, keys = args.get("data", ""), args.get("keys", [])
    if not (text or keys or submits):
        raise InvalidArguments("action 'write' needs data (text), or keys, or both: the text is typed first")
    return typed(tracked, text, keys, enter=submits)


def actions(args: JsonDict, context: ToolContext) -> list[Action]:
    """Only what is typed, with what the line holds already: the process was judged when it was started."""
    if args["action"] not in ("write", "submit"):
        return []
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


def resources(args: JsonDict, context: ToolContext) -> Resources:
    """Reads run in parallel, but in order with commands: a server that is killed is gone before the next one starts."""
    name = everything(context)
    return Resources(reads=(name,)) if args["action"] in ("list", "poll", "log", "wait") else Resources(writes=(name,))
