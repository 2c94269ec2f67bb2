"""Run a call of `patch`."""

from functools import partial

from ....base.safe_text import well_formed
from ....core.outcome import tool_result
from ....errors import InvalidArguments
from ....files.content import reads
from ....files.local import check_path
from ....files.task_arguments import (
    everything,
    files_of,
    judged_path,
    path_argument,
    text_argument,
    write_actions,
    written_files_of,
    written_name,
)
from ....files.text import MAX_DIFF_CHARS, bounded_diff, decode, diff_to_approve, syntax_error
from ....protocols import Action, Preview
from ....types import FileChange, JsonDict, Resources, ToolContext
from .changes import Change, parse_patch, paths_of
from .place import How
from .plan import Diff, Done, Plan, commit, replace_string


def patch(args: JsonDict, *, context: ToolContext, **_: object) -> str:
    task_id = context.task_id
    plan = _planned(args, context)
    steps = plan.steps()
    for step in steps:
        judged_path(step.path, context)
    written = commit(written_files_of(context), steps)
    for step in steps:
        before, after = step.before and step.before.text, None
        if step.data is None:
            reads.forget(task_id, step.path)
        else:
            reads.record(task_id, step.path, version=written[step.path].version, data=step.data)
            after = decode(step.data)
        context.changes.append(FileChange(well_formed(step.path), before and before.body, after and after.body))
    result = _described(plan.done)
    if context.effects is not None and context.effects.number:
        result["call"] = context.effects.number
    broken = {step.path: syntax_error(step.path, step.data) for step in steps if step.data is not None}
    if errors := {well_formed(path): problem for path, problem in broken.items() if problem}:
        result["syntax_errors"] = errors
    return tool_result(result)


def actions(args: JsonDict, context: ToolContext) -> list[Action]:
    """Writes to every file that the call would change. Raises InvalidArguments as the call itself would."""
    preview = partial(_preview, args, context)
    if not _is_patch(args):
        return write_actions([path_argument(args)], context, preview)
    paths = [path for change in _changes(args) for path in (change.path, change.move_to) if path is not None]
    return write_actions(paths, context, preview)


def _planned(args: JsonDict, context: ToolContext, diff: Diff = bounded_diff) -> Plan:
    plan = Plan(files_of(context), reads, context.task_id, diff)
    if _is_patch(args):
        for change in _changes(args):
            plan.change(change)
    else:
        path, replace_all = path_argument(args), bool(args.get("replace_all"))
        old, new = text_argument(args, "old_string"), text_argument(args, "new_string")
        plan.edit(path, lambda body: replace_string(body, old, new, replace_all=replace_all, path=path))
    return plan


def _preview(args: JsonDict, context: ToolContext) -> Preview:
    plan = _planned(args, context, diff_to_approve)
    bases = [f"{step.path} {step.before.digest if step.before else ''}" for step in plan.steps()]
    moved = [f"[{well_formed(one.path)} is moved to {well_formed(one.moved_to)}]" for one in plan.done if one.moved_to]
    return Preview("\n".join([*(one.diff for one in plan.done if one.diff), *moved]), "\n".join(bases))


def _changes(args: JsonDict) -> list[Change]:
    given_path = path_argument(args) if args.get("path") else None
    changes = list(parse_patch(text_argument(args, "patch"), path=given_path))
    for change in changes:
        for path in (change.path, change.move_to):
            if path is not None:
                check_path(path)
    return changes


def resources(args: JsonDict, context: ToolContext) -> Resources:
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
