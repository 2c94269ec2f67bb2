"""Search with ripgrep. It finds what `scan` finds, only faster."""

import base64
import contextlib
import json
import os
import re
import shutil
import signal
import threading
from collections.abc import Iterator, Sequence
from typing import IO, Any

from ....errors import ToolFailed
from .query import UNDO_FOLDER, Found, Hit, Query, clip

# Nothing of the user's own settings, and only the ignore files that `ignore` reads too.
_ALWAYS = (
    *("--no-config", "--no-messages", "--hidden", "--no-require-git", "--color=never"),
    *("--no-ignore-dot", "--no-ignore-exclude", "--no-ignore-global", "--no-ignore-files", "--glob=!.git"),
    f"--glob=!{UNDO_FOLDER}*",
)
_SEARCH = ("--crlf", "--no-mmap", "--case-sensitive", "--no-multiline")
_PLAIN_GLOB = re.compile(r"[\w.*?+@ -]+")
_MAX_ARGUMENT_BYTES = 500_000


class NotForRipgrep(Exception):
    """ripgrep is not there, or reads this pattern otherwise than Python does."""


def list_files(query: Query) -> list[str]:
    """The files that are searched, sorted. Raises NotForRipgrep."""
    with _output_of(query, "--files", "--null", *_tree(query), "./") as output:
        names = output.read()
    return sorted(path for name in names.split(b"\0") if name and query.wants(path := _path(name)))


def search_lines(query: Query) -> Found:
    """First how often in which file; then only the lines that were asked for. Raises NotForRipgrep."""
    if not is_portable(query.pattern):
        raise NotForRipgrep
    counts = _counts(query)
    wanted: list[tuple[str, int, int]] = []
    total = 0
    for path, count in counts:
        first, last = max(0, query.first - total), min(count, query.last - total)
        if first < last:
            wanted.append((path, first, last))
        total += count
    return Found(counts, [hit for batch in _batches(wanted) for hit in _hits(query, batch)])


def _counts(query: Query) -> list[tuple[str, int]]:
    """ripgrep does not count files with a NUL, wherever it is."""
    where = [*_tree(query), "./"] if query.only is None else [f"./{query.only}"]
    options = ("--count", "--null", "--with-filename", *_SEARCH, f"--regexp={query.pattern}")
    with _output_of(query, *options, *where) as output:
        found = output.read()
    counts: list[tuple[str, int]] = []
    for line in re.finditer(rb"([^\0]+)\0(\d+)\r?\n", found):
        path = _path(line[1])
        if query.only is not None or query.wants(path):
            counts.append((path, int(line[2])))
    return sorted(counts)


def _hits(query: Query, wanted: Sequence[tuple[str, int, int]]) -> Iterator[Hit]:
    """The lines of some files, as (path, first, last) of the hits in each."""
    ranges = {path: (first, last) for path, first, last in wanted}
    most = max(last for _, _, last in wanted)
    options = ["--json", "--sort=path", *_SEARCH, f"--max-count={most}", f"--context={query.context}"]
    options += ["--no-config", f"--regexp={query.pattern}", "--"]
    found: dict[str, _FileLines] = {}
    with _output_of(query, *options, *(f"./{path}" for path in ranges)) as output:
        for line in output:
            event = json.loads(line)
            if event["type"] in ("match", "context") and (path := _path(_bytes(event["data"]["path"]))) in ranges:
                found.setdefault(path, _FileLines(*ranges[path])).take(event)
    for path in sorted(found):
        yield from found[path].hits(path, query.context)


class _FileLines:
    """The lines that ripgrep printed of one file: those that match, and those around them."""

    def __init__(self, first: int, last: int) -> None:
        self._first, self._last = first, last
        self._matches: list[tuple[int, str]] = []
        self._lines: dict[int, str] = {}
        self._count = 0

    def take(self, event: Any) -> None:
        data = event["data"]
        raw = _bytes(data["lines"]).removesuffix(b"\n").removesuffix(b"\r")
        text = raw.decode("utf-8", "replace")
        self._lines[data["line_number"]] = clip(text)
        if event["type"] == "match":
            if self._first <= self._count < self._last:
                found = data["submatches"]
                start = len(raw[: found[0]["start"]].decode("utf-8", "replace")) if found else 0
                self._matches.append((data["line_number"], clip(text, start)))
            self._count += 1

    def hits(self, path: str, context: int) -> Iterator[Hit]:
        for line, text in self._matches:
            before = tuple(self._lines[at] for at in range(line - context, line) if at in self._lines)
            after = tuple(self._lines[at] for at in range(line + 1, line + context + 1) if at in self._lines)
            yield Hit(path, line, text, before, after)


def _batches(wanted: Sequence[tuple[str, int, int]]) -> Iterator[list[tuple[str, int, int]]]:
    """A command line has a length that the system limits."""
    batch: list[tuple[str, int, int]] = []
    size = 0
    for entry in wanted:
        size += len(entry[0].encode("utf-8", "surrogateescape")) + 10
        if size > _MAX_ARGUMENT_BYTES and batch:
            yield batch
            batch, size = [], 0
        batch.append(entry)
    if batch:
        yield batch


@contextlib.contextmanager
def _output_of(query: Query, *options: str) -> Iterator[IO[bytes]]:
    """What ripgrep prints, to be read to its end. All of its process group is killed when the query's time is over, when it is
    cancelled, and when the block is left. Raises NotForRipgrep, CallCancelled and CallTimeout."""
    import subprocess
    import tempfile

    if (program := shutil.which("rg")) is None:
        raise NotForRipgrep
    query.check()

    def kill() -> None:
        if process.poll() is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)

    # stderr goes to a file, which need not be emptied while stdout is read.
    with (
        tempfile.TemporaryFile() as errors,
        subprocess.Popen(
            [program, *options],
            cwd=query.top,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            start_new_session=True,
        ) as process,
    ):
        timer = threading.Timer(max(0.0, query.seconds_left), kill)
        timer.daemon = True
        timer.start()
        forget = query.cancel.on_cancel(kill)
        try:
            assert process.stdout is not None
            yield process.stdout
            status = process.wait()
            query.check()
            errors.seek(0)
            _check(status, errors.read(10_000).decode("utf-8", "replace"))
        finally:
            forget()
            timer.cancel()
            kill()


def _tree(query: Query) -> list[str]:
    options = [*_ALWAYS]
    if query.above is None:
        options.append("--no-ignore-parent")
    # A type is held against the name, after the ignore files; `--glob` would override those.
    if query.glob is not None and query.glob.names_only and all(map(_PLAIN_GLOB.fullmatch, query.glob.alternatives)):
        options += (f"--type-add=handrail:{glob}" for glob in query.glob.alternatives)
        options.append("--type=handrail")
    return options


def _check(status: int, errors: str) -> None:
    """1 means that nothing was found; 2 with no words, that a file could not be read."""
    if status in (0, 1) or (status == 2 and not errors):
        return
    if status == 2:
        raise NotForRipgrep(errors)
    raise ToolFailed(f"ripgrep ended with status {status}: {errors.strip()[-300:]}")


def _path(name: bytes) -> str:
    return name.removeprefix(b"./").decode("utf-8", "surrogateescape")


def _bytes(value: Any) -> bytes:
    return value["text"].encode() if "text" in value else base64.b64decode(value["bytes"])


# Anything else (look-around, back-references, \A, \p{..}, possessive quantifiers, class set operations, flags within, \B)
# exists in one of the two only, or means something else there.
_TOKEN = re.compile(
    r"""
      \\[dDwWsS]
    | (?: \\b | [\^$] ) (?![*+?{])                  # a place cannot be repeated in Python
    | \\[tnrfv]
    | \\[.^$*+?()\[\]{}|\\/\-]                      # an escaped character of the syntax
    | \\x[0-9a-fA-F]{2} | \\u[0-9a-fA-F]{4}
    | \(\?: | \(\?P<[A-Za-z_]\w*> | \((?!\?) | \)
    | \[\^? \]? (?: [^\]\[\\&~|\-] | \\[dDwWsStnrfv.^$*+?()\[\]{}|\\/\-] | (?<=[A-Za-z0-9])-(?=[A-Za-z0-9]) )+ -? \]
    | (?: [*+?] | \{\d+(?:,\d*)?\} ) \?? (?![*+?{])
    | [.|]
    | [^\\\[\](){}*+?.^$|]
    """,
    re.VERBOSE | re.ASCII,
)


def is_portable(pattern: str) -> bool:
    position = 4 if pattern.startswith("(?i)") else 0
    while position < len(pattern):
        if (token := _TOKEN.match(pattern, position)) is None:
            return False
        position = token.end()
    return "\0" not in pattern and "\n" not in pattern
