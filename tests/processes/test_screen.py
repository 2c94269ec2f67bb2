"""What is on a terminal, from what a program sends to it."""

from __future__ import annotations

import random

import pytest

from handrail.processes.screen import Screen


def shown(*pieces: bytes, rows: int = 5, columns: int = 20) -> Screen:
    screen = Screen(rows, columns)
    for piece in pieces:
        screen.feed(piece)
    return screen


def test_text_stands_where_it_was_put() -> None:
    screen = shown(b"one\r\n\x1b[3;5Hthree\x1b[1;1HO")
    assert screen.text == "One\n\n    three"
    assert screen.cursor == (1, 2)
    assert screen.size == (5, 20)


def test_it_scrolls() -> None:
    assert shown(b"".join(b"%d\r\n" % number for number in range(10))).text == "6\n7\n8\n9"


def test_characters_may_come_in_halves() -> None:
    assert shown(b"caf\xc3", b"\xa9 \xe4\xbd", b"\xa0").text == "café 你"
    assert shown(b"a\x1b", b"[", b"3", b"1mred\x1b]0;ti", b"tle\x1b", b"\\!").text == "ared!"


@pytest.mark.parametrize(
    "unknown",
    [
        b"\x1bP+q436f\x1b\\",
        b"\x1bP$q q\x1b\\",
        b"\x1b_apc\x1b\\",
        b"\x1b[?4m",
        b"\x1b[>4;2m",
        b"\x1b[38:5:196m",
        b"\x1b[?2026$p",
        b"\x1b[!p",
        b"\x1b[2 q",
        b"\x1b[>c",
        b"\x1b[=1;1u",
        b"\x1b[<u",
        b"\x1b[?1;2c",
        b"\x1b[22;0;0t",
        b"\x1b[?1004h\x1b[?2004h",
        b"\x1b]8;;http://x\x07",
        b"\x1b=\x1b>",
        b"\x1b[48m",
    ],
)
def test_what_says_nothing_about_the_screen_is_not_shown(unknown: bytes) -> None:
    assert shown(b"a" + unknown + b"b").text == "ab"
    assert shown(*(bytes([byte]) for byte in b"a" + unknown + b"b")).text == "ab"


def test_what_a_full_screen_program_covers_comes_back() -> None:
    screen = shown(b"before\r\n\x1b[?1049h\x1b[2Jover\x1b[5;1Hall")
    assert screen.text == "\nover\n\n\nall"
    screen.feed(b"\x1b[?1049lafter")
    assert screen.text == "before\nafter"


def test_lines_and_regions_are_scrolled() -> None:
    assert shown(b"1\r\n2\r\n3\r\n4\x1b[2S").text == "3\n4"
    assert shown(b"1\r\n2\x1b[1T").text == "\n1\n2"
    assert shown(b"1\r\n2\r\n3\r\n4\x1b[2;3r\x1b[1S").text == "1\n3\n\n4"


def test_a_character_is_repeated() -> None:
    assert shown(b"-\x1b[4b>").text == "----->"


def test_boxes_are_drawn() -> None:
    assert shown(b"\x1b(0lqk\x1b(B x").text == "┌─┐ x"


def test_the_cursor_can_be_kept_and_fetched() -> None:
    assert shown(b"ab\x1b[s\x1b[3;1Hc\x1b[ud").text == "abd\n\nc"
    assert shown(b"\t\tx\x1b[Z\x1b[Zy", columns=40).text == "        y       x"


def test_a_program_says_which_cursor_keys_it_wants() -> None:
    screen = shown(b"\x1b[?1h\x1b=")
    assert screen.wants_application_keys
    screen.feed(b"\x1b[?1l\x1b>")
    assert not screen.wants_application_keys


def test_modes_are_taken_from_what_is_skipped() -> None:
    screen = shown()
    screen.skip(b"much text \x1b[?1h and \x1b[?1049h more \x1b[5;5H")
    assert screen.text == ""
    assert screen.wants_application_keys


def test_it_can_be_resized() -> None:
    screen = shown(b"\x1b[5;1Hlast")
    screen.resize(3, 10)
    assert screen.size == (3, 10)
    screen.feed(b"\x1b[2J\x1b[9;99Hx")
    assert screen.text == "\n\n         x"


def test_no_rubbish_breaks_it() -> None:
    rubbish = random.Random(1)
    alphabet = [b"\x1b", b"[", b"]", b"?", b";", b"1", b"99999", b"m", b"H", b"r", b"h", b"P", b"\x07", b"x", b"\xff"]
    alphabet += [bytes([code]) for code in range(64, 127)]
    screen = Screen(5, 20)
    for _ in range(3000):
        screen.feed(b"".join(rubbish.choices(alphabet, k=20)))
        screen.text  # noqa: B018  it can be had
    screen.feed(b"\x18\x1bc\x1b[?1049l\x1bcstill here")
    assert "still here" in screen.text
