"""What a model reads of a program's output."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.base.safe_text import TextCleaner, clean

from ..support import costs_less_than

PIECES = st.sampled_from(
    rb"\r \n \r\n \b \x1b \x1b[ \x1b[31m \x1b[K \x1b[2K \x1b[5G \x1b[2A \x1b[3D \x1b]0;title\x07 \x1b]8;;x\x1b\\ \\ ] [ m 7 "
    rb"\0 \xff \xc3\xa9 \xe2\x82 abc \t \x9b \xc2\x85 \x07 \xf0\x9f\x98\x80".decode().split()
).map(lambda piece: piece.encode().decode("unicode_escape").encode("latin-1")) | st.just(b"x" * 8190)
OUTPUTS = st.lists(PIECES | st.binary(max_size=4), max_size=30).map(b"".join)


@pytest.mark.parametrize(
    ("output", "shown"),
    [
        (b"plain\n", "plain\n"),
        (b"no end", "no end"),
        ("naïve 😀\n".encode(), "naïve 😀\n"),
        (b"\x1b[1;31mred\x1b[0m and \x1b[38;2;1;2;3mtrue\x1b[m\n", "red and true\n"),
        (b"10%\r50%\r100%\n", "100%\n"),
        (b"downloading\rdone\n", "doneloading\n"),
        (b"downloading\r\x1b[Kdone\n", "done\n"),
        (b"downloading\x1b[2K\rdone\n", "done\n"),
        (b"dos\r\nlines\r\n", "dos\nlines\n"),
        (b"abd\bc\n", "abc\n"),
        (b"B\bBo\bol\bld\n", "Bold\n"),
        (b"\x1b]0;a title\x07text\n", "text\n"),
        (b"\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\\n", "link\n"),
        (b"\x1b]unended " + b"x" * 5000, "unended " + "x" * 5000),
        (b"a\0b\0", "a\\0b\\0"),
        (b"caf\xe9\n", "caf\\xe9\n"),
        (b"bell\x07\n", "bell\n"),
        (b"\x01\x02", "\\x01\\x02"),
        (b"\xc2\x9b31m", "\\x9b31m"),
        (b"one\x1b[1Atwo\n", "one\ntwo\n"),
        (b"half of a sequence\x1b[3", "half of a sequence"),
        (b"half of a character\xe2\x82", "half of a character\\xe2\\x82"),
        (b"\x1b(B\x1b=\x1b>text", "text"),
        (b"col\x1b[10Gumn\n", "col      umn\n"),
        (b"abcdef\x1b[3D__\n", "abc__f\n"),
    ],
)
def test_output_reads_as_on_a_terminal(output: bytes, shown: str) -> None:
    assert clean(output) == shown


@given(OUTPUTS, st.lists(st.integers(0, 60_000), max_size=8))
def test_what_comes_out_does_not_depend_on_where_the_output_was_cut(output: bytes, cuts: list[int]) -> None:
    cleaner = TextCleaner()
    places = sorted({0, len(output), *(cut % (len(output) + 1) for cut in cuts)})
    drawn = "".join(cleaner.feed(output[start:end]) for start, end in pairwise(places))
    assert drawn + cleaner.finish() == clean(output)


@given(OUTPUTS)
def test_nothing_is_left_that_only_a_terminal_understands(output: bytes) -> None:
    text = clean(output)
    assert not [char for char in text if (ord(char) < 32 and char not in "\t\n") or 0x7F <= ord(char) < 0xA0]
    assert clean(text.encode()) == text


@given(st.text(st.characters(exclude_categories=("Cc", "Cs")) | st.sampled_from("\n\t")))
def test_text_stays_as_it_is(text: str) -> None:
    assert clean(text.encode()) == text


def test_an_endless_progress_bar_costs_little_and_is_one_line() -> None:
    cleaner = TextCleaner()
    with costs_less_than(20):
        drawn = "".join(cleaner.feed(b"\r[%s] %5d" % (b"#" * 60, step)) for step in range(100_000))
    assert drawn + cleaner.finish() == f"[{'#' * 60}] 99999"


def test_a_long_line_that_is_drawn_over_and_over_costs_little() -> None:
    with costs_less_than(20):
        text = clean(b"x" * 1_000_000 + b"\ry" * 100_000)
    assert len(text) == 1_000_000
