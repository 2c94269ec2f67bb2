"""Search with Python alone: slower than ripgrep, and the same on every machine and every kind of files."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from typing import Any

from ....errors import CallCancelled, InvalidArguments, ToolError, ToolFailed
from ....protocols import Files
from . import matcher
from .query import REPOSITORY, UNDO_FOLDER, Child, Found, Hit, Query, Rules, child_of

_BLOCK_BYTES = 4 << 20


def list_files(files: Files, query: Query) -> list[str]:
    """The files that are searched, sorted."""
    if query.only is not None:
        return [query.only]
    found = walk(files, query.top, query.above or Rules(), query.check)
    return sorted(path for path in found if query.wants(path))


def search_lines(files: Files, query: Query) -> Found:
    """Files are read here, by the task's rules, and matched in a process of its own, which can be stopped."""
    counts: list[tuple[str, int]] = []
    hits: list[Hit] = []
    total = 0
    with child_of(query, [sys.executable, "-I", "-S", matcher.__file__], feed=True) as child:
        _check_pattern(query, _ask(child, {"pattern": query.pattern}))
        for path in list_files(files, query):
            query.check()
            wanted = {"first": query.first - total, "last": query.last - total, "context": query.context}
            answer = _ask(child, wanted, _blocks(files, f"{query.top.rstrip('/')}/{path}"))
            if answer["count"]:
                counts.append((path, answer["count"]))
                total += answer["count"]
            hits += (Hit(path, line, text, tuple(before), tuple(after)) for line, text, before, after in answer["hits"])
    return Found(counts, hits)


def _check_pattern(query: Query, answer: Any) -> None:
    if "error" not in answer:
        return
    position = answer["position"]
    place = "" if position is None else f" at position {position}"
    raise InvalidArguments(
        f"pattern is not a valid regular expression: {answer['error']}{place}; "
        "put a backslash before literal characters",
        argument="pattern",
        position=position,
        pattern=query.pattern[:200],
    )


def _ask(child: Child, order: dict[str, Any], blocks: Iterator[bytes] | None = None) -> Any:
    source, sink = child.stdout, child.stdin
    if source is None or sink is None:
        raise ToolFailed("the search process has no pipes")
    try:
        sink.write(json.dumps(order).encode() + b"\n")
        if blocks is not None:
            for block in blocks:
                sink.write(len(block).to_bytes(4, "big") + block)
            sink.write(bytes(4))
        sink.flush()
        answer = source.readline()
    except (BrokenPipeError, ConnectionResetError):
        answer = b""
    if not answer:
        child.check()
        raise ToolFailed(f"the search process ended: {child.wait()[1].strip()[-300:]}")
    return json.loads(answer)


def _blocks(files: Files, path: str) -> Iterator[bytes]:
    """A file in pieces; what cannot be read is as good as empty."""
    position = 0
    size = min(_BLOCK_BYTES, files.max_read_bytes)
    while True:
        try:
            block = files.read(path, offset=position, max_bytes=size)
        except ToolError:
            return
        if block:
            yield block
        if len(block) < size:
            return
        position += size


def walk(files: Files, top: str, rules: Rules, check: Callable[[], None]) -> Iterator[str]:
    """The regular files below `top`, as paths relative to it, in no particular order. Links are not followed.

    `check` is called for every folder, and ends the walk by raising.
    """
    base = top if top.endswith("/") else top + "/"
    pending = [(base, rules)]
    while pending:
        folder, outer = pending.pop()
        check()
        try:
            entries = files.entries(folder)
        except CallCancelled:
            raise
        except ToolError:
            if folder == base:
                raise
            continue  # a folder that may not be read is as good as empty
        inner = outer.inside(files, folder, frozenset(entry.name for entry in entries))
        for entry in entries:
            path = folder + entry.name
            is_ours = entry.name == REPOSITORY or entry.name.startswith(UNDO_FOLDER)
            if is_ours or not (entry.is_dir or entry.is_file):
                continue
            if inner.ignores(path, is_dir=entry.is_dir):
                continue
            if entry.is_dir:
                pending.append((path + "/", inner))
            else:
                yield path[len(base) :]
