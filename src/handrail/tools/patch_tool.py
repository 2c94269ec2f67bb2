"""The tool `patch`: change parts of files, by a string to replace or by a patch over several files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..errors import InvalidArguments
from ..safe_text import well_formed
from ..types import JsonDict, Resources
from .files.apply import replace_string
from .files.commit import Step, commit
from .files.diff import MAX_DIFF_CHARS
from .files.match import How
from .files.patch_text import parse_patch, paths_of
from .files.plan import Outcome, Plan
from .files.roots import check_path
from .files.seen import seen
from .files.task import EVERYTHING, files_of, path_argument, resource_name, task_of, text_argument
from .registry import registry, tool_result

if TYPE_CHECKING:
    from ..protocols import FileStat
    from ..types import ToolContext

SCHEMA: JsonDict = {
    "description": (
        "Change parts of files. Mode `replace`: put new_string for old_string in path; old_string must be there once, "
        "unless replace_all. Mode `patch`: several changes, in several files, all or none. Small differences in "
        "whitespace and quotes are forgiven. Gives the diff of what was changed."
    ),
    "parameters": {
        "type": "object",
        "properties": {
            "mode": {"type": "string", "enum": ["replace", "patch"], "default": "replace"},
            "path": {"type": "string", "description": "The file (mode replace)."},
            "old_string": {"type": "string", "description": "Text to replace, with enough around it to be unique."},
            "new_string": {"type": "string", "description": "What replaces it; empty deletes."},
            "replace_all": {"type": "boolean", "default": False, "description": "Replace every occurrence."},
            "patch": {
                "type": "string",
                "description": (
                    "A unified diff, or this form (mode patch):\n*** Begin Patch\n*** Update File: a.py\n@@ def f():\n"
                    " context\n-old line\n+new line\n*** Add File: b.py\n+line\n*** Delete File: c.py\n*** End Patch\n"
                    "`*** Move to: d.py` after an Update line renames. Three lines of context around a change are best."
                ),
            },
        },
    },
}


def patch(args: JsonDict, *, context: ToolContext | None = None, **_: object) -> str:
    files, task_id = files_of(context), task_of(context)
    plan = Plan(files, seen, task_id)
    if _is_patch(args):
        given_path = path_argument(args) if args.get("path") else None
        for change in parse_patch(text_argument(args, "patch"), path=given_path):
            for path in (change.path, change.move_to):
                if path is not None:
                    check_path(path)
            plan.change(change)
    else:
        _plan_replacement(plan, args)
    steps = plan.steps()
    _remember(task_id, steps, commit(files, steps))
    return tool_result(_described(plan.outcomes))


def _is_patch(args: JsonDict) -> bool:
    """A patch that came without its mode is still a patch."""
    if args.get("mode", "replace") not in ("replace", "patch"):
        raise InvalidArguments("mode is `replace` or `patch`", argument="mode")
    return args.get("mode") == "patch" or (bool(args.get("patch")) and args.get("old_string") is None)


def _plan_replacement(plan: Plan, args: JsonDict) -> None:
    path = path_argument(args)
    old, new = text_argument(args, "old_string"), text_argument(args, "new_string")
    replace_all = bool(args.get("replace_all"))
    plan.edit(path, lambda body: replace_string(body, old, new, replace_all=replace_all, path=path))


def _remember(task_id: str | None, steps: list[Step], written: dict[str, FileStat]) -> None:
    for step in steps:
        if step.data is None:
            seen.forget(task_id, step.path)
        else:
            seen.record(task_id, step.path, version=written[step.path].version, data=step.data)


def _described(outcomes: list[Outcome]) -> JsonDict:
    result: JsonDict = {"files": [_file(outcome) for outcome in outcomes]}
    diff = "\n".join(outcome.diff for outcome in outcomes if outcome.diff)
    if len(diff) > MAX_DIFF_CHARS:
        diff = f"{diff[:MAX_DIFF_CHARS]}\n[{len(diff) - MAX_DIFF_CHARS} more characters of diff]"
    result["diff"] = diff
    if any(how not in (How.EXACT, How.TRAILING) for outcome in outcomes for _, how in outcome.hunks):
        result["notice"] = "not every hunk matched exactly; check in the diff that the right lines were changed"
    return result


def _file(outcome: Outcome) -> JsonDict:
    described: JsonDict = {"path": well_formed(outcome.path), "action": outcome.action}
    if outcome.moved_to:
        described["moved_to"] = well_formed(outcome.moved_to)
    if outcome.hunks:
        described["hunks_applied"] = len(outcome.hunks)
        described["hunks"] = [{"line": line, "matched": how.value} for line, how in outcome.hunks[:50]]
    return described


def _resources(args: JsonDict) -> Resources:
    path, text = args.get("path"), args.get("patch")
    names: list[str] | None = [path] if isinstance(path, str) and path else []
    if isinstance(text, str) and text:
        named = paths_of(text, path=path if isinstance(path, str) and path else None)
        names = None if named is None else [*(names or []), *named]
    return Resources(writes=tuple(map(resource_name, names)) if names else (EVERYTHING,))


registry.register(
    name="patch",
    toolset="file",
    schema=SCHEMA,
    handler=patch,
    emoji="🩹",
    resources=_resources,
)
