"""Programs on a terminal of their own."""

from __future__ import annotations

import pytest

from handrail.environments.base import ProcessState
from handrail.environments.live_environment import LiveEnvironment

from ..support import wait_until
from .conftest import PATIENCE_SECONDS, Run


def test_it_is_a_terminal_of_the_given_size(shell: LiveEnvironment) -> None:
    process = shell.open_pty(
        "test -t 0 -a -t 1 -a -t 2 && echo terminal; stty size; echo $TERM; tty >/dev/null && ps -o tty= $$",
        rows=33,
        columns=99,
    )
    assert process.has_pty
    assert process.wait(PATIENCE_SECONDS).exit_code == 0
    lines = process.read().data.decode().split()
    assert lines[:4] == ["terminal", "33", "99", "xterm-256color"]
    assert lines[4].startswith("pts/")


def test_it_can_be_resized(shell: LiveEnvironment) -> None:
    process = shell.open_pty("trap 'stty size' WINCH; echo up; while :; do sleep .01; done")
    wait_until(lambda: b"up" in process.read().data)
    process.resize(40, 123)
    wait_until(lambda: b"40 123" in process.read().data)


def test_waiting_for_a_line_is_seen(run: Run, shell: LiveEnvironment) -> None:
    run("V=kept")
    process = shell.open_pty('read -p "name? " name; echo "hello $name $V"')
    wait_until(process.waits_for_input)
    assert process.read().data == b"name? "
    process.write(b"bob\r")
    assert process.wait(PATIENCE_SECONDS).exit_code == 0
    assert b"hello bob kept" in process.read().data


@pytest.mark.parametrize(
    "program",
    [
        "cat",
        "python3 -q",
        "bash --norc -i",
        "python3 -c 'import select, sys; select.select([sys.stdin], [], []); sys.stdin.readline()'",
        "python3 -c 'import select, sys; p = select.poll(); p.register(0, 1); p.poll(); sys.stdin.readline()'",
        "python3 -c 'import select, sys; p = select.epoll(); p.register(0, 1); p.poll(); sys.stdin.readline()'",
        "python3 -c 'import getpass; getpass.getpass()'",
    ],
)
def test_programs_that_wait_for_a_person_are_recognised(shell: LiveEnvironment, program: str) -> None:
    process = shell.open_pty(program)
    wait_until(process.waits_for_input)
    process.write(b"\r\x04\x04")
    assert process.kill(grace=0.2).state is ProcessState.ENDED


@pytest.mark.parametrize(
    "program",
    [
        "sleep 1000",
        "sleep 1000 | cat",
        "while :; do :; done",
        "cat /dev/zero >/dev/null",
        "python3 -c 'import socket; s = socket.socket(); s.bind((\"127.0.0.1\", 0)); s.listen(); s.accept()'",
    ],
)
def test_programs_that_only_take_their_time_are_not(shell: LiveEnvironment, program: str) -> None:
    process = shell.open_pty(f"echo up; {program}")
    wait_until(lambda: b"up" in process.read().data)
    assert not any(process.waits_for_input() for _ in range(20))


def test_control_c_interrupts_the_program(shell: LiveEnvironment) -> None:
    process = shell.open_pty("trap 'echo interrupted; exit 5' INT; echo up; while :; do sleep .01; done")
    wait_until(lambda: b"up" in process.read().data)
    process.write(b"\x03")
    assert process.wait(PATIENCE_SECONDS).exit_code == 5
    assert b"interrupted" in process.read().data


def test_the_end_of_input_can_be_typed(shell: LiveEnvironment) -> None:
    process = shell.open_pty("cat; echo end")
    wait_until(process.waits_for_input)
    process.close_stdin()
    assert process.wait(PATIENCE_SECONDS).exit_code == 0
    assert b"end" in process.read().data


def test_it_ends_with_the_environment(shell: LiveEnvironment) -> None:
    process = shell.open_pty("trap '' HUP TERM; cat")
    wait_until(process.waits_for_input)
    shell.close()
