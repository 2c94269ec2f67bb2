"""Run calls of `read_file` (which cuts a page out of a file of any size), `write_file` and `undo`."""

from __future__ import annotations

import codecs
import re
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, cast

from ...base.safe_text import well_formed
from ...core.outcome import tool_result
from ...egress.secret_sources import secret_files
from ...errors import CallNotFound, Denied, FileTooLarge, InvalidArguments, ToolFailed
from ...files.content import Current, Since, check_unchanged, existing, load, not_text, reads
from ...files.failures import shown, size_text
from ...files.task_arguments import (
    everything,
    files_of,
    judged_path,
    number_argument,
    path_argument,
    read_actions,
    read_name,
    text_argument,
    write_actions,
    written_files_of,
    written_name,
)
from ...files.text import Text, bounded_diff, diff_to_approve, line_endings, split_lines, syntax_error, with_crlf
from ...protocols import HOOK, Action, ActionKind, Files, Preview
from ...types import CancelToken, FileChange, JsonDict, Resources, ToolContext

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ...effects.calls import Calls
    from ...store.call_records import CallRecord

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
_MAX_PATHS = 50
_NAMES = {"lost": "put_back", "changed": "as_before", "created": "taken_away", "moved": "moved_back"}


class Window(NamedTuple):
    """The requested lines. A page of one line shows more of it: that is how a very long line is read."""

    offset: int
    limit: int
    column: int = 1

    @property
    def line_chars(self) -> int:
        return MAX_SINGLE_LINE_CHARS if self.limit == 1 else MAX_LINE_CHARS


def past_the_end(path: str, offset: int, total_lines: int) -> InvalidArguments:
    count = f"{total_lines} line" + ("" if total_lines == 1 else "s")
    return InvalidArguments(f"offset {offset} is past the end: {shown(path)} has {count}", total_lines=total_lines)


def _page(lines: Iterator[str], window: Window, *, total_lines: int | None) -> JsonDict:
    """Some lines of a file. Ends early when it would grow too long. `total_lines` is None when they were not counted."""
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
    page: JsonDict = {"content": well_formed("".join(kept)), "start_line": window.offset, "end_line": end_line}
    if total_lines is not None:
        page["total_lines"] = total_lines
    page["truncated"] = more
    if more:
        page["next_offset"] = end_line + 1
    if cut:
        page["cut_lines"] = cut[:100]
    if total_lines == 0:
        page["notice"] = "the file is empty"
    elif total_lines is None:
        page["notice"] = "the file is too large to count its lines; page through it with offset and limit"
    return page


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
    usual = {"offset": 1, "limit": DEFAULT_LIMIT, "column": 1}
    window = Window(*(number_argument(args, name, default, least=1) for name, default in usual.items()))
    current = existing(files, path)
    result: JsonDict = {"content": "", "path": well_formed(current.path)}
    if current.data is None:
        page = _large_page(files, current, window, context.cancel)
        result["size"] = current.stat.size
    elif current.text is None:
        raise not_text(current, current.data)
    else:
        lines = split_lines(current.text.body)
        if window.offset > max(1, len(lines)):
            raise past_the_end(path, window.offset, len(lines))
        page = _page(iter(lines[window.offset - 1 :]), window, total_lines=len(lines))
        if current.text.encoding != "utf-8":
            result["encoding"] = current.text.encoding
        if (endings := line_endings(current.text.body)) in ("crlf", "mixed"):
            result["line_endings"] = endings
    reads.record(context.task_id, current.path, version=current.stat.version, data=current.data)
    return tool_result(result | page)


def read_file_resources(args: JsonDict, context: ToolContext) -> Resources:
    return Resources(reads=(read_name(args.get("path"), context),))


def read_file_actions(args: JsonDict, context: ToolContext) -> list[Action]:
    return secret_reads(path_argument(args), context)


def _large_page(files: Files, current: Current, window: Window, cancel: CancelToken) -> JsonDict:
    """The page of a file that is too large for memory: read in pieces from its start to the end of the page."""
    head = files.read(current.path, max_bytes=1 << 16)
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise FileTooLarge(
            f"{shown(current.path)} is UTF-16 and {size_text(current.stat.size)}, too large to be decoded here; "
            "make a UTF-8 copy with iconv and read that",
            size=current.stat.size,
        )
    if b"\0" in head:
        raise not_text(current, head)
    return _page(_lines_from(files, current.path, window.offset, cancel), window, total_lines=None)


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
    from ...judge.values.disk import local_homes
    from ...judge.values.paths import classes, with_homes

    with with_homes(local_homes()):
        if classes(place, "/").isdisjoint(_SECRET_BELOW if below else _SECRET):
            return []
    return [action._replace(details={"below": below}) for action in read_actions([path], context)]


def write_file(args: JsonDict, *, context: ToolContext, **_: object) -> str:
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


def write_file_resources(args: JsonDict, context: ToolContext) -> Resources:
    return Resources(writes=(written_name(args.get("path"), context),))


def write_file_actions(args: JsonDict, context: ToolContext) -> list[Action]:
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


def undo(args: JsonDict, *, context: ToolContext, **_: object) -> str:
    calls, record = _chosen(args, context)
    only = files_of(context).resolve(path_argument(args, "only")) if args.get("only") else ""
    how: JsonDict = {"only": only, "force": bool(args.get("force"))}
    told = calls.undo(record.number, session=context.session_id, task=context.task_id, **how)
    status = told["status"]
    if status == "refused":
        raise ToolFailed(f"call {record.number} was not undone: {told['reason']}")
    if status == "conflict":
        conflicts = [(one["path"], one["call"]) for one in told["conflicts"][:_MAX_PATHS]]
        by = "; ".join(f"{path} by {f'call {call}' if call else 'somebody else'}" for path, call in conflicts)
        raise ToolFailed(
            f"call {record.number} was not undone, and nothing was changed, because this was changed since: {by}. Undo the later "
            f"calls first, or only a part, or ask the user",
            conflicts=told["conflicts"][:_MAX_PATHS],
        )
    shown: JsonDict = {"undone": record.number, "tool": record.tool, "what": record.head}
    for kind, name in _NAMES.items():
        if told[kind]:
            shown[name] = [one["path"] for one in told[kind][:_MAX_PATHS]]
    shown |= {"call": told["number"], **({"kept_beside": told["kept_beside"]} if told["kept_beside"] else {})}
    if told["failed"]:
        shown |= {"error": "some of it could not be put back", "error_type": "tool_failed", "failed": told["failed"]}
    return tool_result(shown)


def undo_resources(args: JsonDict, context: ToolContext) -> Resources:  # noqa: ARG001  it may concern any file
    return Resources(writes=(everything(context),))


def undo_actions(args: JsonDict, context: ToolContext) -> list[Action]:
    """Taking back what it did itself needs no question, unless it sets aside what others did since."""
    if not args.get("force"):
        return []
    _, record = _chosen(args, context)
    why = "it takes back a call although others have changed its files since; what is there now is kept beside them"
    about = {"why": why, "rule": "undo.force"}
    return [Action(ActionKind.TOOL, f"undo call {record.number}: {record.head}", details=about)]


def _chosen(args: JsonDict, context: ToolContext) -> tuple[Calls, CallRecord]:
    """Only calls of the same session, or of the same task where there is none, can be taken back."""
    if context.effects is None:
        raise ToolFailed("this runtime keeps no journal of what calls change")
    calls = cast("Calls", context.effects.calls)
    session, task = context.session_id, context.task_id
    if args.get("call"):
        record = calls.records.get(int(args["call"]))
        if record.tool == HOOK or (record.session, record.task if session is None else task) != (session, task):
            by = "a hook" if record.tool == HOOK else "another session"
            raise Denied(f"call {record.number} was made by {by}; only the user can undo it", decided_by="session")
        return calls, record
    mine = [
        one
        for one in calls.last(1000, session=session)
        if one.tool != HOOK and (session is not None or (one.session, one.task) == (None, task))
    ]
    if not mine:
        raise CallNotFound("no call of this session has changed anything that could be undone")
    return calls, mine[0]
