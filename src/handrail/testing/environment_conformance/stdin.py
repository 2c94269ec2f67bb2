"""What a command reads."""

from __future__ import annotations

from .check import check, expect
from .place import Place, takes_at_most


@check()
def stdin_is_what_was_given(place: Place) -> None:
    """A command reads the bytes that it was given, then an end; the next command reads nothing of them."""
    given = bytes(range(256)) * 1000
    result = place.run("cat", stdin=given)
    expect(result.output.total_bytes, len(given), "number of bytes that came back")
    expect(result.output.head[:256], given[:256], "what came back")
    place.says("read -r kit_a; read -r kit_b; echo $kit_b $kit_a", "two one\n", stdin=b"one\ntwo\nthree\n")
    place.says("cat", "")


@check()
def without_stdin_there_is_an_end_at_once(place: Place) -> None:
    """A command without input reads end of file immediately: it never waits for a user."""
    with takes_at_most(place.patience / 2, "reading nothing"):
        place.says("cat; read kit_line; echo $?; bash -c 'read x; echo $?'", "1\n1\n")
