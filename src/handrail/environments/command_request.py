"""What tools share that run commands: the request that they read, and the capture of a command's output, with progress lines for
listeners, all of it for the result store, head and tail for the model."""

import logging
import re
import time
from collections.abc import Callable
from typing import NamedTuple, Self

from ..base.safe_text import TextCleaner, clean
from ..errors import InvalidArguments
from ..protocols import ResultWriter, StoredResult
from ..settings.sections import TerminalConfig
from ..types import JsonDict, ToolContext
from .output import MaskedStream, Masker, Output, OutputSink, describe, is_binary
from .tasks import TaskEnvironments

log = logging.getLogger(__name__)
_PROGRESS_SECONDS, _PROGRESS_CHARS = 0.1, 200
_PROGRESS_BYTES = 4 * _PROGRESS_CHARS
_HEAD_CHARS, _TAIL_CHARS = 8_000, 12_000
_PART_BYTES = 32 << 10
_LINES = re.compile(rb"[\r\n]+")


class Request(NamedTuple):
    """Arguments that can be used as they are. `notes` tell the model what was changed in its request."""

    command: str
    timeout: float
    workdir: str | None
    pty: bool
    separate: bool
    notify_on_complete: bool
    watch_patterns: tuple[str, ...]
    notes: tuple[str, ...]


def read_request(args: JsonDict, environments: TaskEnvironments) -> Request:
    terminal = environments.config.terminal
    command = args["command"]
    if not command.strip():
        raise InvalidArguments("command is empty; give a shell command", argument="command")
    notes = []
    asked = args.get("timeout") or min(terminal.timeout, terminal.max_timeout)
    if asked > terminal.max_timeout and not args.get("background"):
        notes.append(
            f"the time limit is {terminal.max_timeout:g} s, the most that is allowed, not {asked:g} s; "
            "what takes longer runs with background"
        )
    if args.get("background") and args.get("timeout"):
        notes.append("timeout is not for background commands: it runs until it ends, or process kills it")
    if not args.get("background") and (args.get("notify_on_complete") or args.get("watch_patterns")):
        notes.append("notify_on_complete and watch_patterns are for background commands; here they did nothing")
    return Request(
        command,
        min(float(asked), terminal.max_timeout),
        args.get("workdir") or None,
        bool(args.get("pty")),
        bool(args.get("separate_stderr")),
        bool(args.get("notify_on_complete")),
        tuple(args.get("watch_patterns") or ()),
        tuple(notes),
    )


# Takes a command's output and exit code, and returns what is shown instead.
Change = Callable[[str, int | None], str]


class Shown(NamedTuple):
    """What the model gets of an output, and where the rest is."""

    text: str
    stored: JsonDict | None = None


class Capture:
    """Pass its `sink` to a command, then ask it what to show. Leaving it discards what was stored only in part."""

    def __init__(
        self, context: ToolContext, masker: Masker, limits: TerminalConfig, *, change: Change | None = None
    ) -> None:
        self._context, self._masker, self._change = context, masker, change
        self._max_chars, self._max_stored_bytes = limits.max_output_chars, limits.max_stored_bytes
        watches = context.on_progress is not None
        self.sink = OutputSink(
            listener=self._report if watches else None,
            # Output that is stored while it arrives would be stored without the change.
            on_long=self._begin if context.results is not None and change is None else None,
        )
        self._reported_at, self._at_line_end = 0.0, True
        self._writer: ResultWriter | None = None
        self._problem = "this runtime has no result store" if context.results is None else ""
        if change is not None:
            self._problem = "a plugin changes the output of commands"
        self._taken_bytes, self._first = 0, ""

    def shown(self, output: Output, exit_code: int | None = None) -> Shown:
        if self._writer is None and (is_binary(output.head) or is_binary(output.tail)):
            return Shown(self._masker(describe(output, max_chars=self._max_chars)))
        if output.skipped_bytes or output.tail:
            return self._shown_long(output, exit_code)
        text = self._changed(self._masker(clean(output.head)), exit_code)
        if len(text) <= self._max_chars:
            return Shown(text)
        stored = None
        try:
            if self._context.results is not None:
                stored = self._context.results.put(self._context.tool, text)
        except OSError as error:
            self._give_up(error)
        return self._in_parts(text, text, stored, f"{len(text):,} characters")

    def shown_stderr(self, data: bytes) -> str:
        """What was kept apart; of a long one the end."""
        text = describe(Output(data, b"", len(data))) if is_binary(data) else clean(data)
        return self._masker(text)[-self._max_chars :]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._discard()

    def _discard(self) -> None:
        writer, self._writer = self._writer, None
        if writer is not None:
            writer.discard()

    def _report(self, piece: bytes) -> None:
        """Report the last complete line, now and then. Half of a line could be half of a secret."""
        begins_a_line, self._at_line_end = self._at_line_end, piece.endswith((b"\n", b"\r"))
        now = time.monotonic()
        if now - self._reported_at < _PROGRESS_SECONDS:
            return
        begins_a_line = begins_a_line and len(piece) <= _PROGRESS_BYTES
        whole = _LINES.split(piece[-_PROGRESS_BYTES:])[0 if begins_a_line else 1 : -1]
        lines = [line for line in whole if line.strip()]
        if lines:
            self._reported_at = now
            self._context.progress(self._masker(clean(lines[-1])).strip()[:_PROGRESS_CHARS])

    def _begin(self, before: bytes) -> Callable[[bytes], None]:
        assert self._context.results is not None
        if is_binary(before):  # it will be described instead
            return self._take
        self._cleaner, self._stream = TextCleaner(), MaskedStream(self._masker)
        try:
            self._writer = self._context.results.writer(self._context.tool)
        except OSError as error:
            self._give_up(error)
        self._keep(before)
        return self._take

    def _take(self, piece: bytes) -> None:
        watches = self._context.on_progress is not None
        if watches:
            self._report(piece)
        if self._writer is not None and self._taken_bytes < self._max_stored_bytes:
            self._keep(piece)
        elif not watches:
            self.sink.listener = None  # the rest is not needed

    def _keep(self, piece: bytes) -> None:
        piece = piece[: self._max_stored_bytes - self._taken_bytes]
        self._taken_bytes += len(piece)
        # In parts that the allocator can serve from memory at hand: new pages would cost more than everything else.
        for at in range(0, len(piece), _PART_BYTES):
            self._store(self._stream.feed(self._cleaner.feed(piece[at : at + _PART_BYTES])))

    def _store(self, text: str) -> None:
        if len(self._first) <= self._max_chars:
            self._first += text[: self._max_chars + 1]
        try:
            if self._writer is not None:
                self._writer.write(text)
        except OSError as error:
            self._give_up(error)

    def _give_up(self, error: OSError) -> None:
        """A full disk must not cost the command."""
        self._problem = error.strerror or str(error)
        log.warning("a long output of %s could not be kept: %s", self._context.tool, self._problem)
        self._discard()

    def _changed(self, text: str, exit_code: int | None) -> str:
        return text if self._change is None else self._change(text, exit_code)

    def _shown_long(self, output: Output, exit_code: int | None) -> Shown:
        edge = max(0, self._masker.longest - 1)  # what a cut may have left of a secret
        tail = self._masker(clean(output.tail))[edge:]
        if self._writer is None:
            head = self._masker(clean(output.head))
            head, tail = (self._changed(part, exit_code) for part in (head[: len(head) - edge], tail))
            return self._in_parts(head, tail, None, f"{output.total_bytes:,} bytes")
        left_out = output.total_bytes - self._taken_bytes
        self._store(self._stream.feed(self._cleaner.finish()))
        if left_out <= 0:  # otherwise what the stream still holds may end within a secret
            self._store(self._stream.finish())
        if left_out <= 0 and len(self._first) <= self._max_chars:  # a progress bar was most of it
            return Shown(self._first)
        if left_out > 0:
            self._store(f"\n[... {left_out:,} bytes were not kept, but for the end ...]\n{tail}")
        stored = None
        writer, self._writer = self._writer, None
        try:
            stored = writer.finish() if writer is not None else None
        except OSError as error:
            self._writer = writer
            self._give_up(error)
        return self._in_parts(self._first, tail, stored, f"{output.total_bytes:,} bytes")

    def _in_parts(self, head: str, tail: str, stored: StoredResult | None, size: str) -> Shown:
        share = min(1.0, self._max_chars / (_HEAD_CHARS + _TAIL_CHARS))
        head, tail = _cut(head, int(_HEAD_CHARS * share)), _cut(tail, -int(_TAIL_CHARS * share))
        if stored is None:
            note = f"the middle of {size} is left out, and lost: {self._problem}"
            return Shown(f"{head}\n[... {note} ...]\n{tail}")
        note = f"the middle of {size} is left out; read_result with id {stored.id} pages or greps all of it"
        where: JsonDict = {"output": {"id": stored.id, "chars": stored.chars, "lines": stored.lines}}
        return Shown(f"{head}\n[... {note} ...]\n{tail}", where)


def capture_of(request: Request, context: ToolContext, environments: TaskEnvironments) -> Capture:
    plugins, change = environments.change_output, None
    if plugins is not None and plugins.is_wanted():

        def change(text: str, exit_code: int | None) -> str:
            return plugins(request.command, text, exit_code, context.task_id, context.session_id)

    return Capture(context, environments.masker, environments.config.terminal, change=change)


def _cut(text: str, chars: int) -> str:
    """The first (or, negative, the last) characters, ending at a line if one is near."""
    part = text[:chars] if chars > 0 else text[chars:]
    edge = part.rfind("\n") if chars > 0 else part.find("\n")
    if edge == -1 or abs((len(part) if chars > 0 else 0) - edge) > abs(chars) // 4:
        return part
    return part[:edge] if chars > 0 else part[edge + 1 :]
