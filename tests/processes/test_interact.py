"""Programs that people talk to, talked to by a model: prompts, a Python, an editor, a pager."""

from __future__ import annotations

import functools
import os
import shutil
from pathlib import Path

import pytest

from ..support import wait_until
from .conftest import Process, Start

SIZE = (24, 80)


def needs(program: str, package: str) -> None:
    if shutil.which(program) is not None:
        return
    if os.environ.get("CI"):
        pytest.fail(f"needs {program}: apt-get install {package} (in CI nothing may be missing)", pytrace=False)
    pytest.skip(f"needs {program}: apt-get install {package}")


def until_it_waits(process: Process, session_id: str) -> str:
    """Its screen, when the program wants something."""
    waited = process("wait", session_id, timeout=60)
    assert waited.get("waiting_for_input"), waited
    screen: str = waited["screen"]
    return screen


def test_a_yes_or_no(start: Start, process: Process) -> None:
    one = start('while read -p "Sure? [y/N] " a; do [ "$a" = y ] && break; done; echo "chose $a"', size=SIZE)
    assert until_it_waits(process, one.id) == "Sure? [y/N]"
    asked_again = process("submit", one.id, data="n")
    assert asked_again["screen"] == "Sure? [y/N] n\nSure? [y/N]"
    assert asked_again["waiting_for_input"]
    assert asked_again["cursor"] == {"row": 2, "column": 13}
    done = process("submit", one.id, data="y")
    assert (done["status"], done["exit_code"]) == ("exited", 0)
    assert done["screen"].endswith("chose y")


def test_a_password_is_not_shown(start: Start, process: Process) -> None:
    one = start('read -s -p "[sudo] password for me: " secret; echo; echo "${#secret} characters"', size=SIZE)
    assert until_it_waits(process, one.id) == "[sudo] password for me:"
    done = process("submit", one.id, data="hunter2")
    assert done["screen"] == "[sudo] password for me:\n7 characters"
    assert "hunter2" not in process("log", one.id)["output"]


def test_a_python(start: Start, process: Process) -> None:
    one = start("python3 -q", size=SIZE)
    assert until_it_waits(process, one.id) == ">>>"
    assert process("submit", one.id, data="6 * 7")["screen"] == ">>> 6 * 7\n42\n>>>"
    recalled = process("write", one.id, keys=["UP", "ENTER"])
    assert recalled["screen"].endswith(">>> 6 * 7\n42\n>>>")
    edited = process("write", one.id, keys=["UP", "LEFT", "BACKSPACE", "+", "ENTER"])
    assert "+7" in edited["screen"].replace(" ", "")
    stopped = process("submit", one.id, data="import time; time.sleep(1000)", timeout=0.3)
    assert "waiting_for_input" not in stopped
    interrupted = process("write", one.id, keys=["C-c"], timeout=60)
    assert "KeyboardInterrupt" in interrupted["screen"]
    assert interrupted["waiting_for_input"]
    assert process("write", one.id, keys=["C-d"], timeout=60)["status"] == "exited"


def test_completion_with_tab(start: Start, process: Process, work: Path) -> None:
    (work / "some-long-name").write_text("found\n")
    one = start("bash --norc -i", size=SIZE)
    until_it_waits(process, one.id)
    process("write", one.id, data="cat some-l", keys=["TAB"])
    assert "found" in process("write", one.id, keys=["ENTER"])["screen"]
    assert process("submit", one.id, data="exit 5")["exit_code"] == 5


def test_an_editor(start: Start, process: Process, work: Path) -> None:
    needs("vi", "vim-tiny")
    (work / "poem.txt").write_text("one\ntwo\nthree\n")
    one = start("vi -u NONE -i NONE -N poem.txt; echo left", size=SIZE)
    screen = until_it_waits(process, one.id)
    assert screen.splitlines()[:4] == ["one", "two", "three", "~"]
    moved = process("write", one.id, keys=["DOWN", "END"])
    assert (moved["cursor"]["row"], moved["cursor"]["column"]) == (2, 3)
    typed = process("write", one.id, data="A and a half", keys=["ESC"])
    assert typed["screen"].splitlines()[1] == "two and a half"
    left = process("submit", one.id, data=":wq", timeout=60)
    assert left["exit_code"] == 0
    assert left["screen"] == "left"  # what the editor drew is gone, as on a person's terminal
    assert (work / "poem.txt").read_text() == "one\ntwo and a half\nthree\n"


def test_a_pager(start: Start, process: Process, work: Path) -> None:
    needs("less", "less")
    (work / "numbers").write_text("".join(f"line {number}\n" for number in range(1, 201)))
    one = start("less numbers", size=SIZE)
    assert until_it_waits(process, one.id).splitlines()[0] == "line 1"
    assert process("write", one.id, keys=["PAGEDOWN"])["screen"].splitlines()[0] == "line 24"
    assert process("write", one.id, keys=["UP", "UP"])["screen"].splitlines()[0] == "line 22"
    assert process("write", one.id, data="/line 150", keys=["ENTER"])["screen"].splitlines()[0] == "line 150"
    assert process("write", one.id, data="q")["status"] == "exited"


def test_a_terminal_is_resized_and_the_program_knows(start: Start, process: Process, work: Path) -> None:
    needs("less", "less")
    (work / "numbers").write_text("".join(f"{number}\n" for number in range(1, 201)))
    one = start("less numbers", size=SIZE)
    until_it_waits(process, one.id)
    process("resize", one.id, rows=10, columns=40)
    wait_until(lambda: process("poll", one.id)["screen"].splitlines()[-2:-1] == ["9"])
    polled = process("poll", one.id)
    assert polled["size"] == {"rows": 10, "columns": 40}
    assert len(polled["screen"].splitlines()) == 10


def test_control_c_ends_what_runs_in_the_foreground(start: Start, process: Process) -> None:
    one = start("bash --norc -i", size=SIZE)
    until_it_waits(process, one.id)
    assert "waiting_for_input" not in process("submit", one.id, data="sleep 1000", timeout=0.2)
    stopped = process("write", one.id, keys=["C-c"], timeout=60)
    assert stopped["waiting_for_input"]
    assert stopped["status"] == "running"


def test_a_program_that_draws_a_lot_is_shown_as_it_is_at_last(start: Start, process: Process) -> None:
    one = start("for i in {1..30000}; do printf '\\e[5;1Hcount %d' $i; done; read x", size=SIZE)
    waited = functools.partial(until_it_waits, process, one.id)
    assert waited() == "\n\n\n\ncount 30000"


def test_the_end_of_input_can_be_typed(start: Start, process: Process) -> None:
    one = start("cat; echo end", size=SIZE)
    until_it_waits(process, one.id)
    assert process("close", one.id, timeout=60)["screen"] == "end"
