"""Programs on a terminal."""

from __future__ import annotations

from ...environments.base import PtyProcess
from .check import check, expect, expect_that
from .place import Place

_LOOKS = 10


def _wait_for(place: Place, process: PtyProcess, words: bytes) -> None:
    place.wait_until(lambda: words in process.read().data, f"{words!r} does not appear on the terminal")


@check()
def it_is_a_terminal(place: Place) -> None:
    """A program finds a terminal of the size that was asked for on stdin, stdout and stderr."""
    place.needs_pty()
    process = place.env.open_pty("test -t 0 -a -t 1 -a -t 2 && echo terminal; stty size", rows=33, columns=99)
    expect(process.wait(place.patience).exit_code, 0, "exit code")
    expect(process.read().data.split(), [b"terminal", b"33", b"99"], "what it says of its terminal")
    expect(process.has_pty, True, "has_pty")
    process.forget()


@check()
def it_takes_keys(place: Place) -> None:
    """What is typed is echoed and read; Ctrl-C interrupts; Ctrl-D ends the input."""
    place.needs_pty()
    process = place.env.open_pty(
        "trap 'echo interrupted; exit 5' INT; read kit_line; echo read $kit_line; cat; echo end; while :; do sleep .02; done"
    )
    process.write(b"word\r")
    _wait_for(place, process, b"read word")
    process.close_stdin()
    _wait_for(place, process, b"end")
    process.write(b"\x03")
    expect(process.wait(place.patience).exit_code, 5, "exit code after Ctrl-C")
    expect_that(b"interrupted" in process.read().data, "Ctrl-C did not reach the program")
    process.forget()


@check()
def it_can_be_resized(place: Place) -> None:
    """A program is told when its terminal changes size."""
    place.needs_pty()
    process = place.env.open_pty("trap 'stty size' WINCH; echo up; while :; do sleep .02; done")
    _wait_for(place, process, b"up")
    process.resize(40, 123)
    _wait_for(place, process, b"40 123")
    process.forget()


@check()
def waiting_for_input_is_seen(place: Place) -> None:
    """A program that waits for someone to type is told from one that only takes its time."""
    place.needs_pty()
    asks = place.env.open_pty('read -p "name? " kit_name; echo "hello $kit_name"')
    place.wait_until(asks.waits_for_input, "a program that reads its terminal is not seen to wait")
    expect_that(b"name? " in asks.read().data, "the question is not there when the program waits for the answer")
    asks.write(b"bob\r")
    expect(asks.wait(place.patience).exit_code, 0, "exit code")
    expect_that(b"hello bob" in asks.read().data, "the answer did not arrive")
    asks.forget()
    sleeps = place.env.open_pty(f"echo up; sleep {place.nap()}")
    _wait_for(place, sleeps, b"up")
    expect_that(
        not any(sleeps.waits_for_input() for _ in range(_LOOKS)), "a program that sleeps is taken for one that waits"
    )
    sleeps.forget()
