"""Exit codes are the command's own."""

from __future__ import annotations

from .check import check, expect
from .place import Place


@check()
def codes_are_exact(place: Place) -> None:
    """Any code from 0 to 255 is reported as it is; 126 and 127 are what cannot be run and what is not there."""
    for code in (0, 1, 2, 42, 124, 130, 255):
        place.says(f"(exit {code})", "", code=code)
    place.says("/etc 2>/dev/null", "", code=126)
    place.says("no-such-program 2>/dev/null", "", code=127)


@check()
def pipelines_have_the_code_of_their_last_part(place: Place) -> None:
    """The code of a pipeline is that of its last part, of any with pipefail, and PIPESTATUS has them all."""
    place.says("(exit 3) | (exit 0)", "")
    place.says("(exit 0) | (exit 4)", "", code=4)
    place.says("set -o pipefail; (exit 5) | cat; kit_code=$?; set +o pipefail; (exit $kit_code)", "", code=5)
    place.says('(exit 1) | (exit 2) | (exit 3); echo "${PIPESTATUS[*]}"', "1 2 3\n")


@check()
def signals_are_told_by_the_code(place: Place) -> None:
    """A program that a signal ended has 128 and the signal's number."""
    for name, number in (("TERM", 15), ("KILL", 9), ("SEGV", 11)):
        command = f"bash -c 'kill -{name} $$'"
        expect(place.run(command).exit_code, 128 + number, f"exit code of `{command}`")
