"""What is written where: the result on stdout, everything else on stderr, colours only for a terminal that wants them."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import re
import shlex
import shutil
import sys
import textwrap
import threading
from collections.abc import Iterator, Sequence
from enum import IntEnum
from functools import partial
from pathlib import Path
from typing import Any, NoReturn, TextIO

import typer

from ..core.outcome import Outcome, error_of
from ..errors import HandrailError, ToolError, ToolFailed, UnknownToolset

_STYLES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "cyan": "36"}
_DIRECTION_MARKS = [0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A)]
# Controls but tab and newline, other line ends, and marks that change the direction of text: a terminal obeys them, so they are
# shown as text.
_UNSEEN = [*range(9), *range(11, 32), *range(127, 160), 0x2028, 0x2029, *_DIRECTION_MARKS]
_MADE_VISIBLE = {code: f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}" for code in _UNSEEN}
_notes = threading.Lock()
_held: list[str] | None = None
_NAME = "handrail"
_EXTRA = re.compile(r"pip install 'handrail\[([\w,-]+)\]'")


def typed(arguments: str) -> str:
    """A command line for the shell and the folder that this program was started from."""
    return f"{_program()} {arguments}"


def as_typed(text: str) -> str:
    """The text with each `handrail ...` in backquotes, and each extra to install, as it has to be typed here."""
    text = text.replace(f"`{_NAME} ", f"`{_program()} ")
    return _EXTRA.sub(lambda found: _install(found[1]), text) if "pip install" in text else text


def _install(extra: str) -> str:
    """How to add an extra to this very installation: by its own pip, from the clone that it runs from if there is one."""
    pip = os.path.join(os.path.dirname(sys.executable), "pip")
    if not os.path.exists(pip):
        return f"pip install '{_NAME}[{extra}]'"
    found = shutil.which("pip")
    program = "pip" if found and os.path.samefile(found, pip) else shlex.quote(_nearest(pip))
    clone = Path(__file__).parents[3]
    what = f"-e '{_nearest(str(clone))}[{extra}]'" if (clone / "pyproject.toml").is_file() else f"'{_NAME}[{extra}]'"
    return f"{program} install {what}"


def _nearest(path: str) -> str:
    return min(path, os.path.relpath(path), key=len)


def _program() -> str:
    called = sys.argv[0]
    if os.path.basename(called) != _NAME:  # by `python -m handrail`, or by a program of somebody else
        return f"{shlex.quote(sys.executable)} -m {_NAME}"
    found = shutil.which(_NAME)
    if found is not None and os.path.realpath(found) == os.path.realpath(called):
        return _NAME
    return shlex.quote(called)


def say(message: str) -> None:
    """Report an error or a note on stderr."""
    note(f"handrail: {as_typed(message)}")


def note(line: str, *, mark: str = "") -> None:
    """One line on stderr, after a mark that may be painted. It waits while a question is shown."""
    text = f"{mark} {fitted(visible(line), sys.stderr)}\n" if mark else f"{fitted(visible(line), sys.stderr)}\n"
    with _notes:
        if _held is not None:
            _held.append(text)
            return
    _to_stderr(text)


@contextlib.contextmanager
def notes_held() -> Iterator[None]:
    """Keep notes back while a question is shown."""
    global _held  #  there is one stderr
    with _notes:
        _held = []
    try:
        yield
    finally:
        with _notes:
            kept, _held = _held, None
        _to_stderr("".join(kept))


def _to_stderr(text: str) -> None:
    with contextlib.suppress(OSError):  # nobody reads it any more
        sys.stderr.write(text)
        sys.stderr.flush()


def fitted(text: str, stream: TextIO | None = None, *, indent: int = 0) -> str:
    """Prose: at a terminal, with its lines broken between words, and what goes on below a line `indent` further in."""
    if not (stream or sys.stdout).isatty():
        return text
    width = shutil.get_terminal_size().columns
    wrap = partial(textwrap.wrap, width=width, break_long_words=False, break_on_hyphens=False)
    return "\n".join(
        part
        for line in text.split("\n")
        for part in wrap(line, subsequent_indent=" " * (len(line) - len(line.lstrip()) + indent)) or [""]
    )


def emit(text: str, stream: TextIO | None = None, *, end: str = "\n") -> None:
    """Write a part of the result. When the reader has gone away (`| head`) the command ends, without complaint."""
    stream = stream or sys.stdout
    try:
        stream.write(text + end)
        stream.flush()
    except OSError as error:
        raise typer.Exit(give_up(stream, error)) from None


def emit_bytes(data: bytes) -> None:
    """The same for what is not text, or not known to be."""
    try:
        sys.stdout.flush()
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
    except OSError as error:
        raise typer.Exit(give_up(sys.stdout, error)) from None


def emit_to(path: Path | None, text: str) -> None:
    """The whole result, into a file if there is one."""
    try:
        emit(text, end="") if path is None else path.write_text(text, "utf-8")
    except OSError as error:
        raise ToolFailed(f"{path} cannot be written: {error.strerror}") from None


def give_up(stream: TextIO, error: OSError) -> ExitCode:
    """Write nothing more to a stream that cannot be written. Returns how to end: the result is lost, or nobody wanted it."""
    point_at_nothing(stream)
    if error.errno == errno.EPIPE:
        return ExitCode.READER_GONE
    why = "stdout is closed" if error.errno == errno.EBADF else error.strerror
    say(f"the result cannot be written: {why}; what the command did is done")
    return ExitCode.FAILED


def emit_json(value: Any, stream: TextIO | None = None) -> None:
    stream = stream or sys.stdout
    text = json.dumps(value, ensure_ascii=False, indent=2)
    emit(visible(text) if stream.isatty() else text, stream)


def emit_table(
    headers: Sequence[str],
    rows: Sequence[Sequence[str]],
    values: Any = None,
    *,
    as_json: bool = False,
    wide: int | None = None,
    empty: str = "",
) -> None:
    """A table on stdout: drawn to fit a terminal, or plain columns that a program can cut. `wide` may wrap. With `as_json`, the
    `values` instead.

    `empty` is said instead of a table without rows: what to do next.
    """
    if as_json:
        emit_json(values)
    elif empty and not rows:
        emit(fitted(as_typed(empty)))
    elif sys.stdout.isatty():
        _draw(headers, rows, wide)
    else:
        widths = [max(map(len, column)) for column in zip(headers, *rows, strict=True)]
        for row in (headers, *rows):
            emit("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


def emit_either(value: Any, text: str, *, as_json: bool) -> None:
    """The `value` as JSON for programs, or the `text` that says it."""
    if as_json:
        emit_json(value)
    else:
        emit(text)


def colours(stream: TextIO) -> bool:
    """Whether a stream is to have colours."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def paint(text: str, style: str, *, on: bool) -> str:
    return f"\x1b[{_STYLES[style]}m{text}\x1b[0m" if on and text else text


def visible(text: str) -> str:
    """Text that came from elsewhere, with nothing in it that a terminal would obey."""
    return text.replace("\r\n", "\n").translate(_MADE_VISIBLE)


def direction_escaped(text: str) -> str:
    """JSON text with the marks that change the direction of text as `\\uXXXX`, which means the same."""
    return text.translate({code: f"\\u{code:04x}" for code in _DIRECTION_MARKS})


@contextlib.contextmanager
def result_stream() -> Iterator[TextIO]:
    """stdout, for the result alone: what a tool, or a program that it starts, prints from here on goes to stderr.

    That is not taken back at the end: a call that was left behind may print until the process is gone.
    """
    kept = sys.stdout
    kept.flush()
    sys.stdout = sys.stderr
    if not (_has_descriptor(kept, 1) and _has_descriptor(sys.stderr, 2)):
        yield kept
        return
    with open(os.dup(1), "w", encoding=kept.encoding, errors=kept.errors) as moved:
        os.dup2(2, 1)
        yield moved


def _has_descriptor(stream: TextIO, number: int) -> bool:
    try:
        return stream.fileno() == number
    except (OSError, ValueError):
        return False


_NARROW = 36  # columns for a cell of several words; with fewer, it goes below its row


def _draw(headers: Sequence[str], rows: Sequence[Sequence[str]], wide: int | None) -> None:
    from rich.console import Console
    from rich.padding import Padding
    from rich.table import Table
    from rich.text import Text

    console, texts = Console(), [[*map(Text.from_ansi, row)] for row in rows]
    widths = [max(cell.cell_len for cell in column) for column in zip(map(Text, headers), *texts, strict=True)]
    wanted = widths.pop(wide) if wide is not None else 0
    room = console.width - sum(widths) - 2 * len(widths)
    if wide is None or room >= min(_NARROW, wanted):
        table = Table(box=None, pad_edge=False, header_style="bold")
        for index, header in enumerate(headers):
            table.add_column(header, no_wrap=index != wide, overflow="fold" if index == wide else "ellipsis")
        for row in texts:
            table.add_row(*row)
        console.print(table)
        return
    for number, row in enumerate([[Text(each, "bold") for each in headers], *texts]):
        cell = row.pop(wide)
        is_beside = wide == len(row) and cell.cell_len <= room
        for each, width in zip(row, widths, strict=True):
            each.align("left", max(width, each.cell_len))
        line = Text("  ").join([*row, *([cell] if is_beside else [])])
        line.rstrip()
        console.print(line, *([] if is_beside or not number else [Padding(cell, (0, 0, 0, 4))]), sep="\n")


def end_quietly() -> None:
    """Flush both streams here, where a reader that has gone away can be ignored. A result that is lost is a failure."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError as error:
            if error.errno in (errno.EPIPE, errno.EIO) or stream is sys.stderr:  # of a pipe, and of a terminal
                point_at_nothing(stream)
            else:
                sys.exit(give_up(stream, error))


def point_at_nothing(stream: TextIO) -> None:
    """What is still buffered would be written when Python ends, and fail again there, with a traceback."""
    with contextlib.suppress(OSError, ValueError):
        nothing = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, stream.fileno())
        os.close(nothing)


def refuse(message: str, code: ExitCode | None = None) -> NoReturn:
    """Report what is wrong with how the command was used, or with what was found, and end it."""
    say(message)
    raise typer.Exit(ExitCode.USAGE if code is None else code)


class ExitCode(IntEnum):
    OK = 0
    FAILED = 1
    USAGE = 2
    DENIED = 3
    BLOCKED = 4
    TIMEOUT = 124
    INTERRUPTED = 130
    # As the shell reports a program that died of SIGPIPE: whoever read our output went away.
    READER_GONE = 141


_BY_ERROR_TYPE = {
    "denied": ExitCode.DENIED,
    "timeout": ExitCode.TIMEOUT,
    "cancelled": ExitCode.INTERRUPTED,
    "invalid_arguments": ExitCode.USAGE,
    "unknown_tool": ExitCode.USAGE,
}


def exit_code_of(outcome: Outcome) -> ExitCode:
    """The code for the outcome of a call."""
    failure = error_of(outcome)
    return ExitCode.OK if failure is None else _BY_ERROR_TYPE.get(str(failure.get("error_type")), ExitCode.FAILED)


def exit_code_of_error(error: HandrailError) -> ExitCode:
    """The code for an error that ended a command."""
    if isinstance(error, UnknownToolset):
        return ExitCode.USAGE
    return _BY_ERROR_TYPE.get(error.error_type, ExitCode.FAILED) if isinstance(error, ToolError) else ExitCode.FAILED
