"""What is typed while the agent works becomes messages, and the beginning of one."""

from __future__ import annotations

import pytest

from handrail.cli.chat.pastes import Pastes
from handrail.cli.chat.type_ahead import TypedAhead


@pytest.mark.parametrize(
    ("typed", "lines", "text"),
    [
        ("one\rtwo\nthr", ["one", "two"], "thr"),
        ("\r\r  \r", [], ""),
        ("wrong\x7f\x7f\x7f\x7f\x7fright\r", ["right"], ""),
        ("\x7f\x7fa", [], "a"),
        ("a b  c\x17d", [], "a b  d"),
        ("gone\x15kept", [], "kept"),
        ("a\x1b[D\x1b[1;5C\x1bOPb", [], "ab"),
        ("first\\\rsecond\r", ["first\nsecond"], ""),
        ("first\x1b\rsecond\r", ["first\nsecond"], ""),
        ("x \x1b[200~pasted\rof two\x1b[201~ y\r", ["x pasted\nof two y"], ""),
        ("naïve 配置\r", ["naïve 配置"], ""),
        ("\x01\x02\x00\tx", [], "x"),
        ("\x1bfx", [], "x"),
    ],
)
@pytest.mark.parametrize("piece", [1, 3, 1000])
def test_keys_become_messages_however_they_arrive(typed: str, lines: list[str], text: str, piece: int) -> None:
    ahead = TypedAhead()
    data = typed.encode()
    for place in range(0, len(data), piece):
        ahead.feed(data[place : place + piece])
    assert (ahead.lines, ahead.text) == (lines, text)


def test_a_message_that_was_begun_earlier_goes_on() -> None:
    ahead = TypedAhead("half a ")
    ahead.feed(b"line\rand")
    assert (ahead.lines, ahead.text) == (["half a line"], "and")


def test_bytes_that_are_no_text_do_no_harm() -> None:
    ahead = TypedAhead()
    ahead.feed(b"a\xff\xfeb\r")
    assert ahead.lines == ["a��b"]


def test_esc_by_itself_is_told_from_keys_that_begin_with_it() -> None:
    typed = TypedAhead()
    typed.feed(b"\x1b")
    assert not typed.escaped
    typed.feed(b"[A")  # an arrow, in two pieces
    typed.feed(b"")
    assert not typed.escaped
    typed.feed(b"ab\x1b")
    typed.feed(b"")
    assert typed.escaped
    assert typed.text == "ab"


def test_shift_tab_is_counted_and_types_nothing() -> None:
    ahead = TypedAhead()
    ahead.feed(b"a\x1b[Zb\x1b[Z")
    assert (ahead.text, ahead.modes) == ("ab", 2)


def test_a_long_paste_is_folded_here_too_and_whole_where_it_is_sent() -> None:
    pastes, long = Pastes(), "\n".join(f"line {number}" for number in range(400))
    typed = TypedAhead("see ", pastes)
    typed.feed(f"\x1b[200~{long}\x1b[201~ please\r".encode())
    assert typed.lines == ["see [Pasted text #1 +400 lines] please"]
    assert pastes.unfolded(typed.lines[0]) == f"see {long} please"
    assert pastes.refolded(f"see {long} please") == typed.lines[0]
