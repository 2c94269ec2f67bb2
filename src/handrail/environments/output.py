"""Keep the start and the end of an output of any size in bounded memory, and describe binary output instead of showing it.
Known secret values are hidden in it: the runtime's own, and those that commands were given."""

import itertools
import operator
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple

from ..base.safe_text import clean
from .command_input import is_secret_name

DEFAULT_HEAD_BYTES = DEFAULT_TAIL_BYTES = 64 << 10
_CHUNK_BYTES, _RING_BYTES, _SAMPLE_BYTES = 64 << 10, 256 << 10, 8192
_FEWEST_BYTES = 256  # less is shown as it is
_MAX_STRAY = 0.15  # a NUL-separated list has some, and a text in an old encoding
_SHOWN_BYTES = 32
_STRINGS_CHARS = 2000
_SHORTEST_LINE = 6
_STRAY = bytes([*range(7), *range(14, 27), *range(28, 32), 127])
_SHORT_TEXT = re.compile(rb"[\x20-\x7e]{2,5}")
_STRINGS = re.compile(rb"[\x20-\x7e]{6,}")
MASK = "[secret]"
_SHORTEST = 8
# A shorter one, without a digit, or with a space may be an ordinary word: `SECRET_BACKEND=production`.
_RANDOM = re.compile(r"(?=\S*\d)(?=\S*[A-Za-z])\S{12,}")
_CERTAIN_NAME = re.compile(r"(?i)(?:(?:^|_|api)key|token|secret|passw(?:or)?d|passphrase|credential)s?$")
Listener = Callable[[bytes], None]


class Output(NamedTuple):
    """What was kept. All of it is in `head` if it was short enough."""

    head: bytes
    tail: bytes
    total_bytes: int

    @property
    def skipped_bytes(self) -> int:
        return self.total_bytes - len(self.head) - len(self.tail)


class OutputSink:
    """Takes one command's output. `listener` gets every piece as it arrives.

    `on_long` is called once, when the output gets too long to be kept whole, with everything but the latest piece. It returns
    the listener from then on. Most outputs are short, and cost nothing extra.
    """

    def __init__(
        self,
        *,
        head_bytes: int = DEFAULT_HEAD_BYTES,
        tail_bytes: int = DEFAULT_TAIL_BYTES,
        listener: Listener | None = None,
        on_long: Callable[[bytes], Listener] | None = None,
    ) -> None:
        self.listener, self._on_long = listener, on_long
        self.total_bytes = 0
        self._head_bytes, self._tail_bytes = head_bytes, tail_bytes
        self._pieces: list[bytes] = []
        self._head = b""
        self._ring: memoryview | None = None
        self._at = 0

    def read_from(self, fd: int) -> int:
        """Read what is there: returns the number of bytes, 0 at the end. Raises BlockingIOError if there is nothing."""
        if self._ring is not None:
            return self._read_into_ring(fd)
        data = os.read(fd, _CHUNK_BYTES)
        self.feed(data)
        return len(data)

    def feed(self, data: bytes) -> None:
        if self._ring is not None:
            self._put(data)
        else:
            self._pieces.append(data)
            self.total_bytes += len(data)
            if self.total_bytes > self._head_bytes + self._tail_bytes:
                if self._on_long is not None:
                    self.listener = self._on_long(b"".join(self._pieces[:-1]))
                whole = b"".join(self._pieces)
                self._pieces.clear()
                self._head = whole[: self._head_bytes]
                self._ring = memoryview(bytearray(max(_RING_BYTES, self._tail_bytes)))
                self.total_bytes -= len(whole) - self._head_bytes
                self._put(whole[self._head_bytes :])
        if self.listener is not None and data:
            self.listener(data)

    def output(self) -> Output:
        if self._ring is None:
            return Output(b"".join(self._pieces), b"", self.total_bytes)
        kept = min(self._tail_bytes, self.total_bytes - len(self._head))
        start = self._at - kept
        tail = bytes(self._ring[start : self._at] if start >= 0 else bytes(self._ring[start:]) + self._ring[: self._at])
        return Output(self._head, tail, self.total_bytes)

    def _put(self, data: bytes) -> None:
        assert self._ring is not None
        self.total_bytes += len(data)
        size = len(self._ring)
        data = data[-size:]
        first = min(len(data), size - self._at)
        self._ring[self._at : self._at + first] = data[:first]
        self._ring[: len(data) - first] = data[first:]
        self._at = (self._at + len(data)) % size

    def _read_into_ring(self, fd: int) -> int:
        """Read directly into the ring, so that a long output is not copied."""
        ring, at = self._ring, self._at
        assert ring is not None
        room = ring[at:]
        count = os.readv(fd, [room] if len(room) >= _CHUNK_BYTES else [room, ring[: _CHUNK_BYTES - len(room)]])
        self.total_bytes += count
        self._at = (at + count) % len(ring)
        if self.listener is not None and count:
            end = at + count
            piece = ring[at:end] if end <= len(ring) else bytes(ring[at:]) + ring[: end - len(ring)]
            self.listener(bytes(piece))
        return count


def is_binary(data: bytes) -> bool:
    """Whether some part of it is not text."""
    if len(data) < _FEWEST_BYTES:
        return False
    samples = (data[at : at + _SAMPLE_BYTES] for at in range(0, len(data), _SAMPLE_BYTES))
    return any(len(sample) >= _FEWEST_BYTES and _is_stray(sample) for sample in samples)


def _is_stray(data: bytes) -> bool:
    strays = len(data) - len(data.translate(None, _STRAY))
    return strays + data.decode("utf-8", "replace").count("\ufffd") > _MAX_STRAY * len(data)


def describe(output: Output, *, max_chars: int = 20_000) -> str:
    """Its size, its first bytes, and the text in it: whole lines of head and tail, or the words in one that has no lines."""
    note = (
        f"[binary output of {output.total_bytes:,} bytes, starting with {output.head[:_SHOWN_BYTES].hex(' ')}; "
        "write it to a file, or look at it with file, xxd or strings]"
    )
    head, tail = _text_lines(output.head), _text_lines(output.tail)
    if not head and not tail:
        words = "\n".join(found.group().decode() for found in _STRINGS.finditer(output.head))
        return f"{note}\nText in it:\n{words[:_STRINGS_CHARS]}" if words else note
    if output.skipped_bytes:
        head.append(b"[%d bytes left out]" % output.skipped_bytes)
    text = clean(b"\n".join(head + tail))
    if len(text) > max_chars:
        half = max_chars // 2
        text = f"{text[:half]}\n[{len(text) - max_chars:,} characters left out]\n{text[-half:]}"
    return f"{note}\nText in it:\n{text}"


def _text_lines(data: bytes) -> list[bytes]:
    """The lines that are text, and for those between them how much was left out. Empty when none is text. Text that touches the
    others without a line break, as of `printf 'key: '; cat key.bin`, counts too."""
    lines = data.split(b"\n")
    found: list[bytes] = []
    has_text = False
    for is_stray, group in itertools.groupby(zip(lines, _strays(lines), strict=True), key=operator.itemgetter(1)):
        run = [line for line, _ in group]
        if is_stray:
            start, end = _text_at_start(run[0]), _text_at_start(run[-1][::-1])[::-1]
            left_out = sum(map(len, run)) + len(run) - len(start) - len(end)
            run = [*filter(None, [start]), b"[%d bytes that are not text]" % left_out, *filter(None, [end])]
            has_text = has_text or bool(start or end)
        else:
            has_text = has_text or any(len(line) >= _SHORTEST_LINE or _SHORT_TEXT.match(line) for line in run)
        found += run
    return found * has_text


def _text_at_start(line: bytes) -> bytes:
    found = _STRINGS.match(line)
    return found[0] if found else b""


def _strays(lines: list[bytes]) -> Iterator[bool]:
    is_stray = False
    for number, line in enumerate(lines):
        if number in (0, len(lines) - 2) and _SHORT_TEXT.fullmatch(line):  # what a command says before and after
            is_stray = False
        elif len(line) >= _SHORTEST_LINE:  # a shorter one is like those before it
            is_stray = b"\0" in line or _is_stray(line)
        yield is_stray


def secret_values(variables: Mapping[str, str]) -> set[str]:
    """The secret values among these variables. A value of several lines counts as each of its lines."""
    found = set()
    for name, value in variables.items():
        if len(value) < _SHORTEST or not is_secret_name(name):
            continue
        for line in value.splitlines():
            if len(line) >= _SHORTEST and (_RANDOM.fullmatch(line) or _CERTAIN_NAME.search(name)):
                found.add(line)
    return found


class Masker:
    """Replaces each of the values by `[secret]`. Costs one search per value."""

    def __init__(self, values: Iterable[str]) -> None:
        # The longest first: one may be a part of another.
        self._values = sorted(values, key=lambda value: (-len(value), value))
        self.longest = len(self._values[0]) if self._values else 0

    def __call__(self, text: str) -> str:
        for value in self._values:
            if value in text:
                text = text.replace(value, MASK)
        return text


class MaskedStream:
    """The same for a text in pieces: as much is held back as could be the start of a value."""

    def __init__(self, masker: Masker) -> None:
        self._masker, self._held = masker, ""

    def feed(self, text: str) -> str:
        if self._masker.longest == 0:
            return text
        text = self._masker(self._held + text)
        keep = len(text) - (self._masker.longest - 1)
        if keep <= 0:
            self._held = text
            return ""
        self._held = text[keep:]
        return text[:keep]

    def finish(self) -> str:
        held, self._held = self._held, ""
        return held
