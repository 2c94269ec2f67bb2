"""The tool `write_file`: the whole content of a file, at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..safe_text import well_formed
from ..types import JsonDict, Resources
from .files.content import Current, check_unchanged, load
from .files.diff import bounded_diff
from .files.seen import Since, seen
from .files.task import files_of, path_argument, resource_name, task_of, text_argument
from .files.text import Text, line_endings, with_crlf
from .registry import registry, tool_result

if TYPE_CHECKING:
    from ..types import ToolContext

SCHEMA: JsonDict = {
    "description": (
        "Write a whole file, replacing what was there; missing folders are made. An existing file keeps its mode, "
        "its encoding and its CRLF line ends. Refused when the file changed since you read it."
    ),
    "parameters": {
        "type": "object",
        "properties": {
            "path": {"type": "string", "description": "Absolute, relative to the working directory, or from ~."},
            "content": {"type": "string", "description": "The complete new content."},
        },
        "required": ["path", "content"],
    },
}


def write_file(args: JsonDict, *, context: ToolContext | None = None, **_: object) -> str:
    files, task_id = files_of(context), task_of(context)
    path = path_argument(args)
    content = text_argument(args, "content")
    current = load(files, path)
    since = check_unchanged(seen, task_id, current) if current else None
    data, target = _encoded(content, current)
    resolved = current.path if current else files.resolve(path)
    written = files.write(resolved, data)
    seen.record(task_id, resolved, version=written.version, data=data)
    result: JsonDict = {"path": well_formed(resolved), "bytes_written": len(data), "created": current is None}
    if current is not None:
        result |= _compared(current, target.body, resolved)
    if since is Since.UNREAD:
        result["overwrote_unread"] = True
    if target.encoding != "utf-8":
        result["encoding"] = target.encoding
    if line_endings(target.body) in ("crlf", "mixed"):
        result["line_endings"] = line_endings(target.body)
    return tool_result(result)


def _encoded(content: str, current: Current | None) -> tuple[bytes, Text]:
    """The bytes to write, in the line ends and the encoding that the file has."""
    before = current.text if current else None
    if before is None:
        return content.encode(), Text(content)
    if line_endings(before.body) == "crlf":
        content = with_crlf(content)
    try:
        return before.encode(content), Text(content, before.codec, before.mark)
    except UnicodeEncodeError:  # a one-byte encoding that lacks the character; `encoding` in the result tells
        return content.encode(), Text(content)


def _compared(current: Current, after: str, path: str) -> JsonDict:
    if current.text is None:
        return {"diff": "[the old content was not text, or too large to compare]"}
    diff = bounded_diff(current.text.body, after, path=path)
    return {"diff": diff} if diff else {"diff": "", "notice": "the content is the same as before"}


def _resources(args: JsonDict) -> Resources:
    return Resources(writes=(resource_name(args.get("path")),))


registry.register(
    name="write_file",
    toolset="file",
    schema=SCHEMA,
    handler=write_file,
    emoji="✍️",
    resources=_resources,
)
