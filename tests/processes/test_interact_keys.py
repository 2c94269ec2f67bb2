"""Names of keys, and what a terminal sends for them."""

from __future__ import annotations

import pytest

from handrail.errors import InvalidArguments
from handrail.processes.interact import NAMES, encode


@pytest.mark.parametrize(
    ("name", "sent"),
    [
        ("a", b"a"),
        ("é", "é".encode()),
        ("ENTER", b"\r"),
        ("enter", b"\r"),
        ("Return", b"\r"),
        ("TAB", b"\t"),
        ("ESC", b"\x1b"),
        ("Escape", b"\x1b"),
        ("SPACE", b" "),
        ("BACKSPACE", b"\x7f"),
        ("UP", b"\x1b[A"),
        ("HOME", b"\x1b[H"),
        ("DELETE", b"\x1b[3~"),
        ("PGUP", b"\x1b[5~"),
        ("PAGEDOWN", b"\x1b[6~"),
        ("F1", b"\x1bOP"),
        ("F5", b"\x1b[15~"),
        ("F12", b"\x1b[24~"),
        ("C-c", b"\x03"),
        ("C-C", b"\x03"),
        ("^c", b"\x03"),
        ("Ctrl+C", b"\x03"),
        ("ctrl-d", b"\x04"),
        ("C-[", b"\x1b"),
        ("C-\\", b"\x1c"),
        ("C-@", b"\0"),
        ("C-SPACE", b"\0"),
        ("C-?", b"\x7f"),
        ("M-x", b"\x1bx"),
        ("Alt+X", b"\x1bX"),
        ("M-ENTER", b"\x1b\r"),
        ("C-M-a", b"\x1b\x01"),
        ("S-TAB", b"\x1b[Z"),
        ("BTAB", b"\x1b[Z"),
        ("S-a", b"A"),
        ("S-UP", b"\x1b[1;2A"),
        ("C-LEFT", b"\x1b[1;5D"),
        ("M-F4", b"\x1b[1;3S"),
        ("C-S-DELETE", b"\x1b[3;6~"),
        ("-", b"-"),
        ("C--", None),
        ("^", b"^"),
    ],
)
def test_a_key_is_what_a_terminal_sends(name: str, sent: bytes | None) -> None:
    if sent is None:
        with pytest.raises(InvalidArguments, match="no terminal has a key"):
            encode([name])
    else:
        assert encode([name]) == sent


def test_cursor_keys_are_others_when_the_program_wants_it() -> None:
    assert encode(["UP", "C-UP", "x"], application=True) == b"\x1bOA\x1b[1;5Ax"


def test_every_name_is_sent_as_something() -> None:
    assert all(encode([name]) for name in NAMES)
    assert len({encode([name]) for name in NAMES}) == len(NAMES)


@pytest.mark.parametrize("name", ["", "ENTRE", "hello", "C-", "F13", "X-a", "C-ä"])
def test_an_unknown_key_says_what_to_do(name: str) -> None:
    with pytest.raises(InvalidArguments) as raised:
        encode([name])
    assert repr(name) in str(raised.value)


def test_a_slip_of_the_keyboard_is_seen() -> None:
    with pytest.raises(InvalidArguments, match="did you mean 'ENTER'"):
        encode(["ENTRE"])
