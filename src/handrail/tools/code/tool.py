"""The tool `execute_code`: run Python that calls the other tools as functions."""

from collections.abc import Iterable

from ...core.builtin import family, number, registry, text
from ...core.entry import ToolEntry
from ...types import JsonDict

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


def callable_from_code(entries: Iterable[ToolEntry]) -> list[ToolEntry]:
    """The tools that a script can call: not those of the agent loop, nor those that call others."""
    return [entry for entry in entries if not entry.needs_agent and entry.toolset not in _NOT_FROM_CODE]


def _names_now(listed: frozenset[str]) -> JsonDict:
    """The description with the tools that a script of this model can call."""
    names = [entry.name for entry in callable_from_code(registry.get_entries(sorted(listed)))]
    shown: list[str] = []
    for name in names:
        if sum(map(len, shown)) > _MAX_NAMES_CHARS:
            break
        shown.append(name)
    rest = f" and {len(names) - len(shown)} more, all in dir(handrail_tools)" if len(shown) < len(names) else ""
    return {"description": f"{_DESCRIPTION} NAME is one of: {', '.join(shown)}{rest}." if shown else _DESCRIPTION}


registry.register(
    **family(_TOOLSET, "handrail.tools.code.script_run")(
        "execute_code",
        _DESCRIPTION,
        ("code",),
        code=text("Python source. Nothing is kept from one script to the next."),
        timeout=number("Seconds that the script may take, without those that its tools take.", exclusiveMinimum=0),
    ),
    check_fn="handrail.environments.backend_table:check_default",
    dynamic_schema_overrides=_names_now,
    emoji="🐍",
    # The output is bounded while it arrives; the script's own timeout is the call's.
    max_result_size_chars=float("inf"),
    resources="handrail.tools.code.script_run:resources",
    actions="handrail.tools.code.script_run:actions",
    waits=True,
    toolset_description="run code that calls tools",
    example={
        "code": (
            "from handrail_tools import terminal\n"
            'lines = [terminal(command=f"echo {n} | md5sum")["output"] for n in range(20)]\n'
            "print(max(lines))\n"
        )
    },
)
