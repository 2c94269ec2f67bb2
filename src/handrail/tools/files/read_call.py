"""Run a call of `read_file`."""

from __future__ import annotations

import codecs

from ...base.safe_text import well_formed
from ...core.outcome import tool_result
from ...errors import FileTooLarge
from ...files.content import Current, existing, not_text
from ...files.failures import shown, size_text
from ...files.read_tracking import reads
from ...files.task_arguments import files_of, number_argument, path_argument, read_name, task_of
from ...files.text import line_endings, split_lines
from ...protocols import Action, Files
from ...types import CancelToken, JsonDict, Resources, ToolContext
from .page import Page, Window, page_of, page_of_large
from .secret_reads import secret_reads

DEFAULT_LIMIT = 2000


def read_file(args: JsonDict, *, context: ToolContext | None = None, **_: object) -> str:
    """Return a page, the lines it covers, and where the next one starts."""
    files = files_of(context)
    path = path_argument(args)
    window = Window(
        number_argument(args, "offset", 1, least=1),
        number_argument(args, "limit", DEFAULT_LIMIT, least=1),
        number_argument(args, "column", 1, least=1),
    )
    current = existing(files, path)
    result: JsonDict = {"content": "", "path": well_formed(current.path)}
    if current.data is None:
        page = _large_page(files, current, window, context.cancel if context else None)
        result["size"] = current.stat.size
    elif current.text is None:
        raise not_text(current, current.data)
    else:
        page = page_of(split_lines(current.text.body), window, path=path)
        if current.text.encoding != "utf-8":
            result["encoding"] = current.text.encoding
        if (endings := line_endings(current.text.body)) in ("crlf", "mixed"):
            result["line_endings"] = endings
    reads.record(task_of(context), current.path, version=current.stat.version, data=current.data)
    return tool_result(result | _described(page, empty=current.data == b""))


def resources(args: JsonDict, context: ToolContext | None = None) -> Resources:
    return Resources(reads=(read_name(args.get("path"), context),))


def actions(args: JsonDict, context: ToolContext) -> list[Action]:
    return secret_reads(path_argument(args), context)


def _large_page(files: Files, current: Current, window: Window, cancel: CancelToken | None) -> Page:
    head = files.read(current.path, max_bytes=1 << 16)
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise FileTooLarge(
            f"{shown(current.path)} is UTF-16 and {size_text(current.stat.size)}, too large to be decoded here; "
            "make a UTF-8 copy with iconv and read that",
            size=current.stat.size,
        )
    if b"\0" in head:
        raise not_text(current, head)
    return page_of_large(files, current.path, window, cancel)


def _described(page: Page, *, empty: bool) -> JsonDict:
    result: JsonDict = {"content": page.content, "start_line": page.start_line, "end_line": page.end_line}
    if page.total_lines is not None:
        result["total_lines"] = page.total_lines
    result["truncated"] = page.more
    if page.more:
        result["next_offset"] = page.end_line + 1
    if page.cut_lines:
        result["cut_lines"] = list(page.cut_lines[:100])
    if empty:
        result["notice"] = "the file is empty"
    elif page.total_lines is None:
        result["notice"] = "the file is too large to count its lines; page through it with offset and limit"
    return result
