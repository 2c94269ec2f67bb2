"""Run a call of `read_file`: cut a page out of a file of any size."""

from __future__ import annotations

import codecs
import re
from typing import TYPE_CHECKING, NamedTuple

from ...base.safe_text import well_formed
from ...core.outcome import tool_result
from ...egress.secret_sources import secret_files
from ...errors import Denied, FileTooLarge, InvalidArguments
from ...files.content import Current, existing, not_text, reads
from ...files.failures import shown, size_text
from ...files.task_arguments import files_of, number_argument, path_argument, read_actions, read_name
from ...files.text import line_endings, split_lines
from ...protocols import Action, Files
from ...types import CancelToken, JsonDict, Resources, ToolContext

if TYPE_CHECKING:
    from collections.abc import Iterator

DEFAULT_LIMIT = 2000
MAX_LINE_CHARS = 2_000
MAX_SINGLE_LINE_CHARS = 50_000
MAX_PAGE_CHARS = 80_000
_BLOCK_BYTES = 1 << 20
# At most this much of a very long line is held in memory.
_MAX_HELD_BYTES = 8 << 20
_SECRET = frozenset(("credential",))
_SECRET_BELOW = frozenset(("credential", "root", "home-root"))
# Every path that can be a secret has one of these in it.
_MAY_BE_SECRET = re.compile(r"/\.|^/(?:etc|var|run|vault|opt|dev)/|^/proc/.*(?:environ|mem|kcore)$|/_netrc$|/Library/")


class Window(NamedTuple):
    """The requested lines. A page of one line shows more of it: that is how a very long line is read."""

    offset: int
    limit: int
    column: int = 1

    @property
    def line_chars(self) -> int:
        return MAX_SINGLE_LINE_CHARS if self.limit == 1 else MAX_LINE_CHARS


class Page(NamedTuple):
    """Some lines of a file. `total_lines` is None when they were not counted."""

    content: str
    start_line: int
    end_line: int
    more: bool
    total_lines: int | None
    cut_lines: tuple[int, ...]


def page_of(lines: list[str], window: Window, *, path: str) -> Page:
    """The page of a file that is in memory."""
    if window.offset > max(1, len(lines)):
        raise past_the_end(path, window.offset, len(lines))
    return _page(iter(lines[window.offset - 1 :]), window, total_lines=len(lines))


def page_of_large(files: Files, path: str, window: Window, cancel: CancelToken) -> Page:
    """The page of a file that is too large for memory: read in pieces from its start to the end of the page."""
    return _page(_lines_from(files, path, window.offset, cancel), window, total_lines=None)


def past_the_end(path: str, offset: int, total_lines: int) -> InvalidArguments:
    count = f"{total_lines} line" + ("" if total_lines == 1 else "s")
    return InvalidArguments(f"offset {offset} is past the end: {shown(path)} has {count}", total_lines=total_lines)


def _page(lines: Iterator[str], window: Window, *, total_lines: int | None) -> Page:
    """Ends early when it would grow too long."""
    kept: list[str] = []
    cut: list[int] = []
    chars, more = 0, False
    for number, line in enumerate(lines, window.offset):
        text = _cut_line(line, number, window)
        if len(kept) == window.limit or (kept and chars + len(text) > MAX_PAGE_CHARS):
            more = True
            break
        chars += len(text)
        kept.append(text)
        if text is not line:
            cut.append(number)
    end_line = window.offset + len(kept) - 1
    return Page(well_formed("".join(kept)), window.offset, end_line, more, total_lines, tuple(cut))


def _cut_line(line: str, number: int, window: Window) -> str:
    first, last = window.column - 1, window.column - 1 + window.line_chars
    body = line.rstrip("\r\n")
    if first == 0 and len(body) <= last:
        return line
    shown_part = body[first:last]
    if first:
        shown_part = f"[from character {window.column}] {shown_part}"
    if len(body) > last:
        left = len(body) - last
        shown_part += f" [cut: {left} more characters; go on with offset={number} limit=1 column={last + 1}]"
    return shown_part + line[len(body) :]


def _lines_from(files: Files, path: str, first: int, cancel: CancelToken) -> Iterator[str]:
    """The lines from number `first` on. Earlier lines are counted, not kept."""
    number, position, held, ended = 1, 0, bytearray(), True
    while block := files.read(path, offset=position, max_bytes=_BLOCK_BYTES):
        cancel.raise_if_cancelled()
        ended = block.endswith(b"\n")
        block, position = (block if position else block.removeprefix(codecs.BOM_UTF8)), position + len(block)
        newlines = block.count(b"\n")
        if number + newlines < first:
            number += newlines
            continue
        *pieces, rest = block.split(b"\n")
        for piece in pieces:
            if number >= first:
                yield _line(held, piece + b"\n")
                held.clear()
            number += 1
        if number >= first and len(held) <= _MAX_HELD_BYTES:
            held += rest
    total = number - 1 if ended else number
    if first > total:
        raise past_the_end(path, first, total)
    if held:
        yield _line(held, b"")


def _line(held: bytearray, rest: bytes) -> str:
    line = bytes(held) + rest
    if len(line) <= _MAX_HELD_BYTES:
        return line.decode("utf-8", "replace")
    return line[:_MAX_HELD_BYTES].decode("utf-8", "replace") + " [the line goes on and cannot be shown further]\n"


def read_file(args: JsonDict, *, context: ToolContext, **_: object) -> str:
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
        page = _large_page(files, current, window, context.cancel)
        result["size"] = current.stat.size
    elif current.text is None:
        raise not_text(current, current.data)
    else:
        page = page_of(split_lines(current.text.body), window, path=path)
        if current.text.encoding != "utf-8":
            result["encoding"] = current.text.encoding
        if (endings := line_endings(current.text.body)) in ("crlf", "mixed"):
            result["line_endings"] = endings
    reads.record(context.task_id, current.path, version=current.stat.version, data=current.data)
    return tool_result(result | _described(page, empty=current.data == b""))


def resources(args: JsonDict, context: ToolContext) -> Resources:
    return Resources(reads=(read_name(args.get("path"), context),))


def actions(args: JsonDict, context: ToolContext) -> list[Action]:
    return secret_reads(path_argument(args), context)


def _large_page(files: Files, current: Current, window: Window, cancel: CancelToken) -> Page:
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


def secret_reads(path: str, context: ToolContext, *, below: bool = False) -> list[Action]:
    """`below`: everything in a folder will be read. The environment is not asked unless it is a secret: it may not run yet."""
    files = files_of(context)
    resolved = files.resolve(path)
    place = files.host_path(resolved) or resolved
    if below and any(each.startswith(place.rstrip("/") + "/") for each in secret_files(context.config.secrets)):
        raise Denied("a file below that folder holds a secret that you use without seeing it; search another folder")
    if not below and _MAY_BE_SECRET.search(place) is None:
        return []
    # Loaded only when needed: most reads are of ordinary files.
    from ...judge.values.homes import local_homes
    from ...judge.values.paths import classes, with_homes

    with with_homes(local_homes()):
        if classes(place, "/").isdisjoint(_SECRET_BELOW if below else _SECRET):
            return []
    return [action._replace(details={"below": below}) for action in read_actions([path], context)]
