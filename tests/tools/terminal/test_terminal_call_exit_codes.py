"""What a model is told about an exit code."""

from __future__ import annotations

import signal
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.tools.terminal.terminal_call import BY_CODE, BY_PROGRAM, meaning

from ...support import costs_less_than


@pytest.mark.parametrize(
    "command",
    [
        "grep x /dev/null",
        "cat f | grep x",
        "ls; grep x f",
        "cd /tmp && grep x f",
        "LC_ALL=C grep x f",
        "sudo -n grep x f",
        "! /bin/grep x f",
        "echo 'a; b' | grep x",
        'echo "a && b" |& grep -v "|"',
        "grep x f # nothing; to | see",
        "sleep 1 & grep x f",
        "make 2>&1 | grep x",
        "( cd /tmp; grep x f )",
        "grep x f;",
    ],
)
def test_a_grep_that_finds_nothing_has_not_failed(command: str) -> None:
    told = meaning(command, 1)
    assert told is not None
    assert told.text == "grep: no line matched"
    assert not told.is_failure


@pytest.mark.parametrize(
    "command", ["grep x f | wc -l", "grep x f; ls", "ls # grep x", "echo 'grep'", "$(grep x f)", "", "|", "&&"]
)
def test_a_code_of_another_program_is_not_explained_by_grep(command: str) -> None:
    assert meaning(command, 1) is None


def test_what_may_be_the_failure_of_an_earlier_command_is_not_called_none() -> None:
    told = meaning("cd /nowhere && grep x f", 1, printed=True)
    assert told is not None
    assert told.is_failure


@pytest.mark.parametrize(
    ("program", "code"), [(program, code) for program, codes in BY_PROGRAM.items() for code in codes]
)
def test_every_entry_is_found_by_its_program(program: str, code: int) -> None:
    told = meaning(f"{program} something", code)
    assert told is not None
    assert told.text.startswith(f"{program}: ")
    assert meaning(f"{program} something", 0) is None


@pytest.mark.parametrize("code", BY_CODE)
def test_the_shells_own_codes_are_explained(code: int) -> None:
    assert meaning("./thing", code) == BY_CODE[code]


@pytest.mark.parametrize("number", [number for number in signal.valid_signals() if number < 64])
def test_every_signal_is_named(number: int) -> None:
    told = meaning("./thing", 128 + number)
    assert told is not None
    assert told.is_failure
    assert "SIG" in told.text or str(int(number)) in told.text


@pytest.mark.parametrize(
    ("command", "code"),
    [
        ("grep x /dev/null", 1),
        ("diff /dev/null /etc/passwd", 1),
        ("test 1 = 2", 1),
        ("no-such-command-here", 127),
        ("/etc/passwd", 126),
    ],
)
def test_real_programs_give_the_codes_that_the_table_says(command: str, code: int) -> None:
    assert subprocess.run(["bash", "-c", command], capture_output=True).returncode == code
    assert meaning(command, code) is not None


@given(st.text(), st.integers(-300, 300))
def test_no_command_is_too_odd(command: str, code: int) -> None:
    meaning(command, code)


@pytest.mark.parametrize("piece", ["'", '"', "$(", "`", "\\", "env ", "a=b ", "&& ", "( ", "# ", "- "])
def test_a_long_command_costs_little(piece: str) -> None:
    with costs_less_than(2):
        meaning(piece * 20_000 + "grep x", 1)
