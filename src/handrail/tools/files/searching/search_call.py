"""Run a call of `search_files`."""

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from ....base.safe_text import well_formed
from ....core.outcome import tool_result
from ....errors import InvalidArguments, ToolFailed
from ....files.content import existing, missing, not_text
from ....files.failures import shown
from ....files.task_arguments import files_of, number_argument, path_argument, read_name, text_argument
from ....protocols import Action, Files
from ....types import JsonDict, Resources, ToolContext
from ..calls import secret_reads
from . import ripgrep, scan
from .query import Found, Glob, Hit, Query, rules_above

T = TypeVar("T")
DEFAULT_LIMIT = 50
MAX_CONTEXT = 20
_SECONDS = 50.0  # less than the tool's timeout, so that the error can say what to do


def search_files(args: JsonDict, *, context: ToolContext, **_: object) -> str:
    """Return one page of what was found, and how much there is."""
    files = files_of(context)
    path = path_argument(args, default=".")
    by_name = args.get("target") == "files"
    top, only = _searched(files, path, by_name=by_name)
    limit = number_argument(args, "limit", DEFAULT_LIMIT, least=1)
    query = Query(
        top,
        text_argument(args, "pattern"),
        only=only,
        glob=Glob(text_argument(args, "file_glob")) if args.get("file_glob") else None,
        above=rules_above(files, top),
        first=number_argument(args, "offset", 0, least=0),
        context=min(number_argument(args, "context", 0, least=0), MAX_CONTEXT),
        seconds=_SECONDS,
        cancel=context.cancel,
    )
    if not query.pattern:
        raise InvalidArguments("pattern is empty; give a regular expression, or a glob for files", argument="pattern")
    answer = _Answer(path, query, limit)
    if by_name:
        return tool_result(answer.names(_found(files, query, ripgrep.list_files, scan.list_files)))
    mode = args.get("output_mode")
    shows_lines = mode not in ("files_only", "count")
    wanted = replace(query, last=query.first + limit) if shows_lines else query
    found = _found(files, wanted, ripgrep.search_lines, scan.search_lines)
    return tool_result(answer.lines(found) if shows_lines else answer.files(found, counted=mode == "count"))


def resources(args: JsonDict, context: ToolContext) -> Resources:
    return Resources(reads=(read_name(args.get("path") or ".", context),))


def actions(args: JsonDict, context: ToolContext) -> list[Action]:
    if args.get("target") == "files":
        return []  # names only
    return secret_reads(path_argument(args, default="."), context, below=True)


def _searched(files: Files, path: str, *, by_name: bool) -> tuple[str, str | None]:
    """The folder to search, and the one file in it if that is what was named."""
    resolved = files.resolve(path)
    if (found := files.stat(resolved)) is None:
        raise missing(files, path)
    if found.is_dir:
        files.entries(resolved)  # one that may not be read says so here
        return resolved, None
    if by_name:
        raise ToolFailed(f"{shown(path)} is a file; to find files by name give a folder", path=shown(path))
    current = existing(files, path)
    if current.data is not None and current.text is None:
        raise not_text(current, current.data)
    folder, _, name = resolved.rpartition("/")
    return folder or "/", name


def _found(files: Files, query: Query, fast: Callable[[Query], T], sure: Callable[[Files, Query], T]) -> T:
    """By ripgrep where it sees the files and knows the pattern, else by Python alone."""
    if (host := files.host_path(query.top)) is not None:
        with contextlib.suppress(ripgrep.NotForRipgrep):
            return fast(replace(query, top=host))
    return sure(files, query)


class _Answer:
    """One page of the results, with paths that can be used as they are."""

    def __init__(self, path: str, query: Query, limit: int) -> None:
        folder = path.rstrip("/").removeprefix("./") or path
        self._prefix = "" if folder in (".", "./") else folder if query.only is not None else folder.rstrip("/") + "/"
        self._query, self._limit = query, limit

    def names(self, found: list[str]) -> JsonDict:
        glob = Glob(self._query.pattern)
        named = [path for path in found if glob(path)]
        result = self._page("files", [self._shown(path) for path in self._cut(named)], len(named))
        if named or glob.has_wildcard:
            return result
        hint = f"no file has exactly this name; to find a part of a name search for *{shown(glob.text)}*"
        return {**result, "notice": hint}

    def files(self, found: Found, *, counted: bool) -> JsonDict:
        page = self._cut(found.counts)
        total = len(found.counts)
        if counted:
            counts = [{"path": self._shown(path), "count": count} for path, count in page]
            return self._page("counts", counts, total) | {"total_matches": sum(count for _, count in found.counts)}
        return self._page("files", [self._shown(path) for path, _ in page], total)

    def lines(self, found: Found) -> JsonDict:
        kept = Hit._fields if self._query.context else ("path", "line", "text")
        page = [{name: getattr(hit, name) for name in kept} | {"path": self._shown(hit.path)} for hit in found.hits]
        return self._page("matches", page, sum(count for _, count in found.counts))

    def _page(self, name: str, page: list[Any], total: int) -> JsonDict:
        end = self._query.first + len(page)
        result: JsonDict = {name: page, "total": total, "truncated": bool(page) and end < total}
        if result["truncated"]:
            result["next_offset"] = end
        if total and not page:
            result["notice"] = f"offset {self._query.first} is past the end: there are {total} results"
        return result

    def _cut(self, found: Sequence[Any]) -> Sequence[Any]:
        return found[self._query.first : self._query.first + self._limit]

    def _shown(self, path: str) -> str:
        return well_formed(self._prefix if self._query.only is not None else self._prefix + path)
