"""`handrail shell`: a person's terminal, put through."""

from __future__ import annotations

import fcntl
import os
import signal
import struct
import termios

import pytest

from tests.cli.conftest import Cli
from tests.cli.terminal import Terminal


def shell(cli: Cli, *words: str) -> Terminal:
    """One whose prompt can be waited for."""
    (cli.cwd.parent / ".bashrc").write_text("PS1='ready> '\nbind 'set enable-bracketed-paste off' 2>/dev/null\n")
    return cli.terminal("shell", *words)


def test_what_is_typed_runs_there_and_the_exit_code_is_the_shells(cli: Cli) -> None:
    with shell(cli) as terminal:
        terminal.wait_for("ready> ")
        terminal.type("echo $((6 * 7)) in $PWD\r")
        terminal.wait_for(f"42 in {cli.cwd}")
        terminal.type("exit 5\r")
        assert terminal.end() == 5
    assert not list((cli.home / "state" / "processes").iterdir())


def test_it_is_told_of_the_windows_size_and_its_changes(cli: Cli) -> None:
    with shell(cli) as terminal:
        terminal.wait_for("ready> ")
        terminal.type("stty size\r")
        terminal.wait_for("50 80")
        fcntl.ioctl(terminal._master, termios.TIOCSWINSZ, struct.pack("HHHH", 33, 99, 0, 0))
        os.kill(terminal._process.pid, signal.SIGWINCH)
        terminal.type("until [ \"$(stty size)\" = '33 99' ]; do sleep .01; done; echo it knows\r")
        terminal.wait_for("\nit knows")
        terminal.type("\x04")
        assert terminal.end() == 0


def test_control_c_is_for_the_program_there(cli: Cli) -> None:
    with shell(cli) as terminal:
        terminal.wait_for("ready> ")
        terminal.type("bash -c 'echo up; sleep 1000'\r")
        terminal.wait_for("\nup")
        terminal.type("\x03")
        terminal.wait_for("^C\nready> ")
        terminal.type("exit $?\r")
        assert terminal.end() == 130


@pytest.mark.parametrize("how", ["exit", "terminated"])
def test_the_persons_terminal_is_afterwards_as_it_was(cli: Cli, how: str) -> None:
    with shell(cli) as terminal:
        before = termios.tcgetattr(terminal._master)
        terminal.wait_for("ready> ")
        assert termios.tcgetattr(terminal._master) != before
        if how == "exit":
            terminal.type("exit\r")
        else:
            os.kill(terminal._process.pid, signal.SIGTERM)
        code = terminal.end()
        assert code == (0 if how == "exit" else 128 + signal.SIGTERM)
        assert termios.tcgetattr(terminal._master) == before
    assert not list((cli.home / "state" / "processes").iterdir())


def test_the_environment_can_be_chosen(cli: Cli) -> None:
    cli.configure("terminal:\n  backends:\n    local:\n      sandbox: true\n")
    with shell(cli, "--env", "local", "--task", "t1") as terminal:
        terminal.wait_for("Ctrl-D ends it")  # its home is hidden in there, and with it the prompt
        terminal.type("touch /usr/x\r")
        terminal.wait_for("Read-only file system")
        terminal.type("exit\r")
        terminal.end()


def test_it_needs_a_terminal(cli: Cli) -> None:
    ran = cli("shell")
    assert ran.code == 2
    assert "needs a terminal" in ran.err


def test_an_unknown_environment_is_named(cli: Cli) -> None:
    with cli.terminal("shell", "--env", "dokcer") as terminal:
        assert terminal.end() != 0
    assert "unknown environment 'dokcer'" in terminal.shown
