"""Output of any size and speed costs bounded memory, and loses nothing that was to be kept."""

from __future__ import annotations

import os

from ...environments.output import OutputSink
from .check import check, expect, expect_that
from .place import Place

_MEGABYTES = 100
_MAX_GROWTH_MEGABYTES = 40
_LINES_A_SECOND = 10_000
_BURSTS_A_SECOND = 20


@check()
def the_head_and_the_tail_are_kept(place: Place) -> None:
    """Of more output than is asked for, exactly the first and the last bytes are kept, and all are counted."""
    whole = "".join(f"{number}\n" for number in range(1, 50_001)).encode()
    output = place.run("seq 50000", output=OutputSink(head_bytes=1000, tail_bytes=2000)).output
    expect(output.total_bytes, len(whole), "number of bytes")
    expect(output.head, whole[:1000], "head")
    expect(output.tail, whole[-2000:], "tail")
    expect(output.skipped_bytes, len(whole) - 3000, "number of bytes that were left out")


@check(quick=False)
def a_hundred_megabytes_cost_bounded_memory(place: Place) -> None:
    """100 MB of output are counted to the byte, with head and tail, and this process does not grow with them."""
    size = _MEGABYTES << 20
    memory = _Memory()
    command = f"echo the head; head -c {size} /dev/zero; echo; echo the tail"
    result = place.run(command, on_output=memory.look, timeout=place.patience * 3)
    memory.look(b"")
    expect(result.exit_code, 0, "exit code")
    expect(result.output.total_bytes, size + len("the head\n\nthe tail\n"), "number of bytes")
    expect_that(result.output.head.startswith(b"the head\n\0"), "the head is not what was printed first")
    expect_that(result.output.tail.endswith(b"\0\nthe tail\n"), "the tail is not what was printed last")
    grown = memory.grown >> 20
    expect_that(grown <= _MAX_GROWTH_MEGABYTES, f"this process grew by {grown} MB for {_MEGABYTES} MB of output")


@check(quick=False)
def ten_thousand_lines_a_second_arrive(place: Place) -> None:
    """10,000 lines a second arrive all and in order, with a listener who hears them as they come."""
    lines = int(_LINES_A_SECOND * place.flood_seconds)
    burst = _LINES_A_SECOND // _BURSTS_A_SECOND
    heard = _Lines()
    command = (
        f"for ((kit_i = 0; kit_i < {lines}; kit_i += {burst})); do "
        f"seq $((kit_i + 1)) $((kit_i + {burst})); sleep {1 / _BURSTS_A_SECOND}; done"
    )
    result = place.run(command, on_output=heard.take, timeout=place.patience + 4 * place.flood_seconds)
    expect(result.exit_code, 0, "exit code")
    expect(heard.count, -(-lines // burst) * burst, "number of lines in order")
    expect_that(heard.pieces > 1, "all came at once, at the end")


class _Memory:
    """How much this process has grown at most since it was made."""

    def __init__(self) -> None:
        self._first, self._heard, self._due = _resident_bytes(), 0, 0
        self.grown = 0

    def look(self, piece: bytes) -> None:
        self._heard += len(piece)
        if self._heard >= self._due:
            self._due = self._heard + (1 << 20)
            self.grown = max(self.grown, _resident_bytes() - self._first)


class _Lines:
    """Counts lines that count up by themselves, until one is wrong."""

    def __init__(self) -> None:
        self.count = self.pieces = 0
        self._rest = b""

    def take(self, piece: bytes) -> None:
        self.pieces += 1
        *lines, self._rest = (self._rest + piece).split(b"\n")
        for line in lines:
            if line != b"%d" % (self.count + 1):
                return
            self.count += 1


def _resident_bytes() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
