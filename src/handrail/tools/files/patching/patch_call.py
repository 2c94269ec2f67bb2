"""Run a call of `patch`."""

from __future__ import annotations

from functools import partial

from ....base.safe_text import well_formed
from ....core.outcome import tool_result
from ....errors import InvalidArguments, ToolError
from ....files.content import reads
from ....files.roots import check_path
from ....files.task_arguments import (
    everything,
    files_of,
    judged_path,
    path_argument,
    task_of,
    text_argument,
    write_actions,
    written_files_of,
    written_name,
)
from ....files.text import MAX_DIFF_CHARS, bounded_diff, decode, diff_to_approve, syntax_error
from ....protocols import Action, FileStat, Preview
from ....types import FileChange, JsonDict, Resources, ToolContext
from .apply import replace_string
from .changes import Change
from .match import How
from .plan import Diff, Done, Plan, Step, commit
from .unified import is_unified, parse_unified
from .v4a import is_v4a, parse_v4a


def patch(args: JsonDict, *, context: ToolContext | None = None, **_: object) -> str:
    """Return what was done to each file, and the diff."""
    task_id = task_of(context)
    plan = _planned(args, context)
    steps = plan.steps()
    for step in steps:
        judged_path(step.path, context)
    _remember(task_id, steps, commit(written_files_of(context), steps))
    result = _described(plan.done)
    if context is not None:
        context.changes.extend(FileChange(well_formed(step.path), *_texts(step)) for step in steps)
        if context.effects is not None and context.effects.number:
            result["call"] = context.effects.number
    broken = {step.path: syntax_error(step.path, step.data) for step in steps if step.data is not None}
    if errors := {well_formed(path): problem for path, problem in broken.items() if problem}:
        result["syntax_errors"] = errors
    return tool_result(result)


def _texts(step: Step) -> tuple[str | None, str | None]:
    before = step.before.text if step.before is not None else None
    after = None if step.data is None else decode(step.data)
    return (None if before is None else before.body), (None if after is None else after.body)


def actions(args: JsonDict, context: ToolContext) -> list[Action]:
    """Writes to every file that the call would change. Raises InvalidArguments as the call itself would."""
    preview = partial(_preview, args, context)
    if not _is_patch(args):
        return write_actions([path_argument(args)], context, preview)
    paths = [path for change in _changes(args) for path in (change.path, change.move_to) if path is not None]
    return write_actions(paths, context, preview)


def _planned(args: JsonDict, context: ToolContext | None, diff: Diff = bounded_diff) -> Plan:
    plan = Plan(files_of(context), reads, task_of(context), diff)
    if _is_patch(args):
        for change in _changes(args):
            plan.change(change)
    else:
        _plan_replacement(plan, args)
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


def parse_patch(text: str, *, path: str | None = None) -> list[Change]:
    """The changes in order. `path` names the file of a patch that names none. Raises InvalidArguments."""
    text = _unwrapped(text)
    if is_v4a(text):
        return parse_v4a(text)
    if is_unified(text):
        return parse_unified(text, path=path)
    if path is not None and any(line[:1] in ("+", "-") for line in text.split("\n")):
        return parse_v4a(f"*** Update File: {path}\n{text}")
    raise InvalidArguments(
        "patch is neither a V4A patch (`*** Begin Patch`, `*** Update File: <path>`, hunks, `*** End Patch`) "
        "nor a unified diff (`--- a/<path>`, `+++ b/<path>`, `@@ -1,3 +1,4 @@`)"
    )


def paths_of(text: str, *, path: str | None = None) -> list[str] | None:
    """Every path that a patch reads or writes; None when it cannot be understood."""
    try:
        changes = parse_patch(text, path=path)
    except ToolError:
        return None
    return [name for change in changes for name in (change.path, change.move_to) if name]


def _unwrapped(text: str) -> str:
    """Without what a transport or a chat puts around it: a code fence, CRLF on every line."""
    lines = text.split("\n")
    if len(lines) > 1 and all(line.endswith("\r") for line in lines[:-1]):
        lines = [line.removesuffix("\r") for line in lines]
    while lines and not lines[0].strip():
        lines.pop(0)
    if lines and lines[0].startswith("```"):
        closing = next((at for at in range(len(lines) - 1, 0, -1) if lines[at].strip() == "```"), len(lines))
        lines = lines[1:closing]
    return "\n".join(lines)
