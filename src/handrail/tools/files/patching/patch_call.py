"""Run a call of `patch`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ....base.safe_text import well_formed
from ....core.outcome import tool_result
from ....errors import InvalidArguments
from ....files.diff import MAX_DIFF_CHARS
from ....files.read_tracking import reads
from ....files.roots import check_path
from ....files.task_arguments import (
    everything,
    files_of,
    judged_path,
    path_argument,
    task_of,
    text_argument,
    write_actions,
    written_name,
)
from ....types import Resources
from .apply import replace_string
from .commit import Step, commit
from .match import How
from .patch_text import parse_patch, paths_of
from .plan import Done, Plan

if TYPE_CHECKING:
    from ....protocols import Action, FileStat
    from ....types import JsonDict, ToolContext
    from .changes import Change


def patch(args: JsonDict, *, context: ToolContext | None = None, **_: object) -> str:
    """Return what was done to each file, and the diff."""
    files, task_id = files_of(context), task_of(context)
    plan = Plan(files, reads, task_id)
    if _is_patch(args):
        for change in _changes(args):
            plan.change(change)
    else:
        _plan_replacement(plan, args)
    steps = plan.steps()
    for step in steps:
        judged_path(step.path, context)
    _remember(task_id, steps, commit(files, steps))
    return tool_result(_described(plan.done))


def actions(args: JsonDict, context: ToolContext) -> list[Action]:
    """Writes to every file that the call would change. Raises InvalidArguments as the call itself would."""
    if not _is_patch(args):
        return write_actions([path_argument(args)], context)
    paths = [path for change in _changes(args) for path in (change.path, change.move_to) if path is not None]
    return write_actions(paths, context)


def _changes(args: JsonDict) -> list[Change]:
    given_path = path_argument(args) if args.get("path") else None
    changes = list(parse_patch(text_argument(args, "patch"), path=given_path))
    for change in changes:
        for path in (change.path, change.move_to):
            if path is not None:
                check_path(path)
    return changes


def resources(args: JsonDict, context: ToolContext | None = None) -> Resources:
    """Every file that the call names."""
    path, text = args.get("path"), args.get("patch")
    names: list[str] | None = [path] if isinstance(path, str) and path else []
    if isinstance(text, str) and text:
        named = paths_of(text, path=path if isinstance(path, str) and path else None)
        names = None if named is None else [*(names or []), *named]
    return Resources(writes=tuple(written_name(name, context) for name in names) if names else (everything(context),))


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
            reads.forget(task_id, step.path)
        else:
            reads.record(task_id, step.path, version=written[step.path].version, data=step.data)


def _described(done: list[Done]) -> JsonDict:
    result: JsonDict = {"files": [_file(one) for one in done]}
    diff = "\n".join(one.diff for one in done if one.diff)
    if len(diff) > MAX_DIFF_CHARS:
        diff = f"{diff[:MAX_DIFF_CHARS]}\n[{len(diff) - MAX_DIFF_CHARS} more characters of diff]"
    result["diff"] = diff
    if any(how not in (How.EXACT, How.TRAILING) for one in done for _, how in one.hunks):
        result["notice"] = "not every hunk matched exactly; check in the diff that the right lines were changed"
    return result


def _file(one: Done) -> JsonDict:
    described: JsonDict = {"path": well_formed(one.path), "action": one.action}
    if one.moved_to:
        described["moved_to"] = well_formed(one.moved_to)
    if one.hunks:
        described["hunks_applied"] = len(one.hunks)
        described["hunks"] = [{"line": line, "matched": how.value} for line, how in one.hunks[:50]]
    return described
