"""Run a call of `write_file`."""

from __future__ import annotations

from functools import partial

from ...base.safe_text import well_formed
from ...core.outcome import tool_result
from ...files.content import Current, Since, check_unchanged, load, reads
from ...files.failures import size_text
from ...files.task_arguments import (
    files_of,
    judged_path,
    path_argument,
    text_argument,
    write_actions,
    written_files_of,
    written_name,
)
from ...files.text import Text, bounded_diff, diff_to_approve, line_endings, syntax_error, with_crlf
from ...protocols import Action, Preview
from ...types import FileChange, JsonDict, Resources, ToolContext


def write_file(args: JsonDict, *, context: ToolContext, **_: object) -> str:
    """Return what was written, and the diff."""
    files, task_id = written_files_of(context), context.task_id
    path = path_argument(args)
    content = text_argument(args, "content")
    resolved = judged_path(path, context)
    current = load(files, resolved)
    since = check_unchanged(reads, task_id, current) if current else None
    data, target = _encoded(content, current)
    written = files.write(resolved, data)
    reads.record(task_id, resolved, version=written.version, data=data)
    before = current.text.body if current is not None and current.text is not None else None
    context.changes.append(FileChange(well_formed(resolved), before, target.body))
    result: JsonDict = {"path": well_formed(resolved), "bytes_written": len(data), "created": current is None}
    if current is not None:
        result |= _compared(current, target.body, resolved)
    if context.effects is not None and context.effects.number:
        result["call"] = context.effects.number
    if since is Since.UNREAD:
        result["overwrote_unread"] = True
    if target.encoding != "utf-8":
        result["encoding"] = target.encoding
    if line_endings(target.body) in ("crlf", "mixed"):
        result["line_endings"] = line_endings(target.body)
    if problem := syntax_error(resolved, data):
        result["syntax_error"] = problem
    return tool_result(result)


def resources(args: JsonDict, context: ToolContext) -> Resources:
    return Resources(writes=(written_name(args.get("path"), context),))


def actions(args: JsonDict, context: ToolContext) -> list[Action]:
    return write_actions([path_argument(args)], context, partial(_preview, args, context))


def _preview(args: JsonDict, context: ToolContext) -> Preview:
    files, path, content = files_of(context), path_argument(args), text_argument(args, "content")
    current = load(files, path)
    resolved, base = files.resolve(path), "" if current is None else current.digest
    if current is not None:
        check_unchanged(reads, context.task_id, current)
    before = current.text if current is not None else None
    after = _encoded(content, current)[1].body
    diff = diff_to_approve(before.body if before else "", after, path=well_formed(resolved), is_new=before is None)
    if current is not None and before is None:
        lost = f"[replaces {size_text(current.stat.size)} that cannot be shown: not text, or too large]"
        return Preview(f"{diff}\n{lost}", base)
    return Preview(diff or "[the content is the same as before]", base)


def _encoded(content: str, current: Current | None) -> tuple[bytes, Text]:
    """The bytes to write, with the file's own line ends and encoding."""
    before = current.text if current else None
    if before is None:
        return content.encode(), Text(content)
    if line_endings(before.body) == "crlf":
        content = with_crlf(content)
    try:
        return before.encode(content), Text(content, before.codec, before.mark)
    except UnicodeEncodeError:  # a one-byte encoding that lacks the character; `encoding` in the result says so
        return content.encode(), Text(content)


def _compared(current: Current, after: str, path: str) -> JsonDict:
    if current.text is None:
        return {"diff": "[the old content was not text, or too large to compare]"}
    diff = bounded_diff(current.text.body, after, path=path)
    return {"diff": diff} if diff else {"diff": "", "notice": "the content is the same as before"}
