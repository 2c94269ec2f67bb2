"""What a call of `terminal` asks for, and what bounds it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, cast

from ..errors import InvalidArguments, ToolFailed

if TYPE_CHECKING:
    from ..types import JsonDict, ToolContext
    from .tasks import TaskEnvironments


class Request(NamedTuple):
    """Arguments that can be used as they are. `notes` are for the model: what was changed in what it asked for."""

    command: str
    timeout: float
    workdir: str | None
    pty: bool
    notify_on_complete: bool
    watch_patterns: tuple[str, ...]
    notes: tuple[str, ...]


def read_request(args: JsonDict, environments: TaskEnvironments) -> Request:
    terminal = environments.config.terminal
    command = args["command"]
    if not command.strip():
        raise InvalidArguments("command is empty; give a shell command", argument="command")
    notes = []
    asked = args.get("timeout") or min(terminal.timeout, terminal.max_timeout)
    if asked > terminal.max_timeout and not args.get("background"):
        notes.append(
            f"the time limit is {terminal.max_timeout:g} s, the most that is allowed, not {asked:g} s; "
            "what takes longer runs with background"
        )
    if args.get("background") and args.get("timeout"):
        notes.append("timeout is not for background commands: it runs until it ends, or process kills it")
    if not args.get("background") and (args.get("notify_on_complete") or args.get("watch_patterns")):
        notes.append("notify_on_complete and watch_patterns are for background commands; here they did nothing")
    return Request(
        command,
        min(float(asked), terminal.max_timeout),
        args.get("workdir") or None,
        bool(args.get("pty")),
        bool(args.get("notify_on_complete")),
        tuple(args.get("watch_patterns") or ()),
        tuple(notes),
    )


def environments_of(context: ToolContext | None) -> TaskEnvironments:
    if context is None or context.environments is None:
        raise ToolFailed(
            "this runtime has no environments to run commands in; give it some: environments=TaskEnvironments()"
        )
    return cast("TaskEnvironments", context.environments)
