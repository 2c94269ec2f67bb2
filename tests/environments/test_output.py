"""The beginning and the end of an output, whatever its size and pieces."""

from __future__ import annotations

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.environments.output import OutputSink


@given(
    pieces=st.lists(st.binary(max_size=300), max_size=30),
    head=st.integers(min_value=0, max_value=200),
    tail=st.integers(min_value=0, max_value=200),
)
def test_what_is_kept_is_the_head_and_the_tail(pieces: list[bytes], head: int, tail: int) -> None:
    seen: list[bytes] = []
    sink = OutputSink(head_bytes=head, tail_bytes=tail, listener=seen.append)
    for piece in pieces:
        sink.feed(piece)
    whole, output = b"".join(pieces), sink.output()
    assert b"".join(seen) == whole
    assert output.total_bytes == len(whole)
    if len(whole) <= head + tail:
        assert (output.head, output.tail) == (whole, b"")
    else:
        assert output.head == whole[:head]
        assert output.tail == whole[len(whole) - tail :]
        assert output.skipped_bytes == len(whole) - head - tail


@pytest.mark.parametrize("tail", [10, 65536, 300_000])
@pytest.mark.parametrize("size", [0, 1, 65536, 131_072, 131_073, 262_144, 999_999, 2_000_000])
def test_reading_from_a_pipe_is_the_same(size: int, tail: int) -> None:
    whole = os.urandom(size)
    seen: list[bytes] = []
    sink = OutputSink(head_bytes=1000, tail_bytes=tail, listener=seen.append)
    read, write = os.pipe()
    at = 0
    while at < size:
        at += os.write(write, whole[at : at + 40_000])
        assert sink.read_from(read) > 0
    os.close(write)
    while sink.read_from(read):
        pass
    os.close(read)
    output = sink.output()
    assert b"".join(seen) == whole
    assert output.total_bytes == size
    assert (output.head + output.tail)[-tail:] == whole[-tail:]
