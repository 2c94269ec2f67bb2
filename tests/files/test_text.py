"""Bytes become text and the same bytes again."""

from __future__ import annotations

import codecs

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.files.text import decode, line_endings, split_lines

MARKS = [b"", codecs.BOM_UTF8, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE, codecs.BOM_UTF32_LE]


@given(mark=st.sampled_from(MARKS), data=st.one_of(st.binary(max_size=60), st.text(max_size=30).map(str.encode)))
def test_whatever_is_taken_for_text_can_be_written_back_to_the_byte(mark: bytes, data: bytes) -> None:
    text = decode(mark + data)
    if text is not None and not text.body.startswith("\ufeff"):
        assert text.encode(text.body) == mark + data


@given(st.text(alphabet="ab\r\n\x0b\u2028"))
def test_lines_put_together_are_the_text(body: str) -> None:
    lines = split_lines(body)
    assert "".join(lines) == body
    assert all(line.index("\n") == len(line) - 1 for line in lines[:-1])


@pytest.mark.parametrize(
    ("body", "kind"),
    [("", "none"), ("a", "none"), ("a\nb", "lf"), ("a\r\nb\r\n", "crlf"), ("a\r\nb\n", "mixed"), ("a\rb", "none")],
)
def test_line_endings_are_named(body: str, kind: str) -> None:
    assert line_endings(body) == kind


@pytest.mark.parametrize(
    "data", [b"a\0b", bytes(range(1, 256)), b"\x81\x8d\x8f", "日本語".encode("shift-jis"), b"\xff\xfea"]
)
def test_what_is_not_text_is_not_made_up(data: bytes) -> None:
    assert decode(data) is None
