"""The tool `terminal`: a shell command in the task's environment."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ...core.availability import usable_unless
from ...core.builtin import registry
from ...protocols import Action, ActionKind
from ...types import JsonDict, Resources, Unavailable

if TYPE_CHECKING:
    from ...environments.tasks import TaskEnvironments
    from ...types import ToolContext

SCHEMA: JsonDict = {
    "description": (
        "Run a shell command (bash). The shell is the same in every call: the working directory, variables, functions and "
        "aliases stay. Gives `output` (stdout and stderr) and `exit_code`; of a long output the head and the tail. A "
        "command reads no input: use options such as -y, or pty. A server, or what takes long, runs with background. For "
        "files there are better tools: `read_file`, `write_file`, `patch`, `search_files`."
    ),
    "parameters": {
        "type": "object",
        "properties": {
            "command": {"type": "string", "description": "The command line, or several."},
            "timeout": {
                "type": "number",
                "exclusiveMinimum": 0,
                "description": "Seconds after which it is ended, as far as the user allows.",
            },
            "workdir": {
                "type": "string",
                "description": "Directory for this command alone. The shell stays where it is.",
            },
            "background": {
                "type": "boolean",
                "default": False,
                "description": "Start it and return at once, with a session_id. `process` looks after it.",
            },
            "pty": {
                "type": "boolean",
                "default": False,
                "description": (
                    "Run it on a terminal of its own, for programs that ask or draw. Returns when it ends or waits for input; "
                    "`process` answers it."
                ),
            },
            "notify_on_complete": {
                "type": "boolean",
                "default": False,
                "description": "With background: you are told when it has ended.",
            },
            "watch_patterns": {
                "type": "array",
                "items": {"type": "string", "minLength": 1},
                "description": "With background: you are told when it prints a line with one of these in it.",
            },
        },
        "required": ["command"],
    },
}


def terminal(args: JsonDict, *, context: ToolContext | None = None, **_: object) -> str:
    from ...environments.command_request import environments_of, read_request

    environments = environments_of(context)
    assert context is not None
    request = read_request(args, environments)
    if args.get("background"):
        from .background import start

        return start(request, context)
    if request.pty:
        from .background import run_on_terminal

        return run_on_terminal(request, context, environments)
    from .foreground import run

    return run(request, context, environments)


def _actions(args: JsonDict, context: ToolContext) -> Sequence[Action]:
    """What the gate judges: the command, where it would run, and what it could reach from there. Starts nothing."""
    from ...environments.command_request import environments_of

    environments = environments_of(context)
    environment = environments.of(context.task_id)
    details = {"background": bool(args.get("background")), "pty": bool(args.get("pty"))}
    return [
        Action(
            ActionKind.COMMAND,
            args["command"],
            cwd=_directory(environments, context.task_id, args.get("workdir")),
            environment=environment.name,
            isolated=environment.isolated,
            reaches_host=environment.reaches_host,
            details=details,
        )
    ]


def _directory(environments: TaskEnvironments, task_id: str | None, workdir: str | None) -> str:
    cwd = environments.cwd(task_id)
    if not workdir:
        return cwd
    if workdir.startswith("~"):
        return os.path.expanduser(workdir) if environments.has_host_paths(task_id) else workdir
    return os.path.join(cwd, workdir)


def _resources(args: JsonDict, context: ToolContext | None = None) -> Resources:  # noqa: ARG001  any command may touch any file
    from ...files.task_arguments import everything

    return Resources(writes=(everything(context),))


def _check() -> Unavailable | bool:
    """Whether the environment that the configuration names can be had."""
    from ...environments.task_settings import missing_by_default

    return usable_unless(missing_by_default())


registry.register(
    name="terminal",
    toolset="terminal",
    schema=SCHEMA,
    handler=terminal,
    check_fn=_check,
    emoji="💻",
    # The output is bounded here, where the whole can be stored while it comes; the command's own time limit is the call's.
    max_result_size_chars=float("inf"),
    resources=_resources,
    actions=_actions,
)
