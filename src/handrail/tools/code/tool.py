"""The tool that runs a model's Python, with the model's other tools as functions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from ...core.availability import usable_unless
from ...core.builtin import registry
from ...errors import ToolFailed
from ...protocols import Action, ActionKind
from ...types import Resources

if TYPE_CHECKING:
    from ...core.entry import ToolEntry
    from ...types import JsonDict, ToolContext, Unavailable

_DESCRIPTION = (
    "Run a Python script that calls your other tools as functions, for work that takes several calls with logic between them: "
    "loops, filters, results too long to read. Only what it prints comes back. "
    "It runs where `terminal` commands run, with that shell's working directory and variables. "
    "`from handrail_tools import NAME`; arguments are the tool's own. A function returns the tool's result, JSON already read, "
    "and raises handrail_tools.ToolError when the call fails."
)
_MAX_NAMES_CHARS = 2000
_TOOLSET = "code_execution"
_NOT_FROM_CODE = (_TOOLSET, "tool_search")

SCHEMA = {
    "description": _DESCRIPTION,
    "parameters": {
        "type": "object",
        "properties": {
            "code": {"type": "string", "description": "Python source. Nothing is kept from one script to the next."},
            "timeout": {
                "type": "number",
                "exclusiveMinimum": 0,
                "description": "Seconds that the script may take, without those that its tools take.",
            },
        },
        "required": ["code"],
    },
}


def execute_code(args: JsonDict, *, context: ToolContext | None = None, **_: object) -> str:
    from ...environments.command_request import environments_of
    from .script_run import run

    environments = environments_of(context)
    assert context is not None
    if context.tools is None:
        raise ToolFailed("this runtime lets no tool call others; use the runtime's own dispatch")
    return run(args, context, environments, _callable_from_code(context.tools.entries()))


def _callable_from_code(entries: Iterable[ToolEntry]) -> list[ToolEntry]:
    """The tools that a script can call: not those that the agent's loop handles, nor those that call others."""
    return [entry for entry in entries if not entry.needs_agent and entry.toolset not in _NOT_FROM_CODE]


def _actions(args: JsonDict, context: ToolContext) -> Sequence[Action]:
    """What the gate judges: the script, where it would run, and what it could reach from there. Its calls are judged each."""
    from ...environments.command_request import environments_of

    environments = environments_of(context)
    environment = environments.of(context.task_id)
    return [
        Action(
            ActionKind.CODE,
            args["code"],
            cwd=environments.cwd(context.task_id),
            environment=environment.name,
            isolated=environment.isolated,
            reaches_host=environment.reaches_host,
            details={"language": "python"},
        )
    ]


def _resources(args: JsonDict, context: ToolContext | None = None) -> Resources:  # noqa: ARG001  a script may touch any file
    from ...files.task_arguments import everything

    return Resources(writes=(everything(context),))


def _names_now(listed: frozenset[str]) -> JsonDict:
    """The description with the tools that a script of this model can call."""
    names = [entry.name for entry in _callable_from_code(registry.get_entries(sorted(listed)))]
    shown: list[str] = []
    for name in names:
        if sum(map(len, shown)) > _MAX_NAMES_CHARS:
            break
        shown.append(name)
    rest = f" and {len(names) - len(shown)} more, all in dir(handrail_tools)" if len(shown) < len(names) else ""
    return {"description": f"{_DESCRIPTION} NAME is one of: {', '.join(shown)}{rest}." if shown else _DESCRIPTION}


def _check() -> Unavailable | bool:
    from ...environments.task_settings import missing_by_default

    return usable_unless(missing_by_default())


registry.register(
    name="execute_code",
    toolset=_TOOLSET,
    schema=SCHEMA,
    handler=execute_code,
    check_fn=_check,
    dynamic_schema_overrides=_names_now,
    emoji="🐍",
    # The output is bounded while it comes, as that of a command; the script's own time limit is the call's.
    max_result_size_chars=float("inf"),
    resources=_resources,
    actions=_actions,
)
