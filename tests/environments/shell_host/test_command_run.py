"""Which commands leave the shell as it is, so that its state need not be saved after them."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from handrail.environments.base import ShellState
from handrail.environments.local_environment import LocalEnvironment
from handrail.environments.shell_host.command_run import Command, CommandRun

from ...support import wait_until
from ..conftest import PATIENCE_SECONDS, text


def _keeps_state(command: str) -> bool:
    return CommandRun(1, Command(command.encode()), lambda _: 0, (0,)).keeps_state


@pytest.mark.parametrize(
    "command",
    [
        *("ls -la", "echo hi", "cat README.md | head -20", "grep -rn 'a b' src > /tmp/x 2>&1", "make test; echo $?"),
        *("ls && pwd || false", "pwd\nls\n", 'git commit -m "x y"', "cat < in >> out", "/bin/ls $HOME/x", "true"),
    ],
)
def test_programs_with_plain_words_leave_the_shell_as_it_is(command: str) -> None:
    assert _keeps_state(command)


@pytest.mark.parametrize(
    "command",
    [
        *("cd /tmp", "A=1", "A=1 ls", "ls; cd x", "ls\n\ncd x", "'cd' x", "\\cd /", 'c"d" /', "$cmd x", "command cd /"),
        *("echo $(cd x)", "echo ${x:=1}", "echo $((x=1))", "echo $[x=1]", "echo `x`", "test -v 'a[x=1]'", "ls {fd}>x"),
        *("ls &", "ls | read x", "echo x |& read y", ". ./f", "f() { :; }", "(cd /)", "time cd /x", "! cd", "umask 0"),
        *(
            "if true; then cd /; fi",
            "ls <<E\nx\nE",
            "ls >(cat)",
            "echo a\\\nb",
            "printf -v x y",
            "echo 'a\nb'; cd x",
            "",
        ),
    ],
)
def test_everything_else_may_change_it(command: str) -> None:
    assert not _keeps_state(command)


def test_a_shell_that_nothing_has_changed_is_not_saved_again_and_loses_nothing(tmp_path: Path) -> None:
    with LocalEnvironment(str(tmp_path)) as local:
        local.execute("X=set", timeout=PATIENCE_SECONDS)
        shell = local._link.shell  # type: ignore[union-attr]
        changed = shell.last_number

        def is_saved() -> bool:
            shell.receive_while_idle()
            return bool(shell.connection.plain_at >= changed)

        wait_until(is_saved)
        for _ in range(3):
            assert text(local.execute("echo $X", timeout=PATIENCE_SECONDS, call=1)) == "set\n"
        before = shell.connection.bash
        os.kill(before, signal.SIGKILL)

        def is_replaced() -> bool:
            shell.receive_while_idle()
            return bool(shell.connection.bash != before)

        wait_until(is_replaced)
        again = local.execute("echo $X", timeout=PATIENCE_SECONDS)
        assert text(again) == "set\n"
        assert again.restarted is not None
        assert again.restarted.state is ShellState.SNAPSHOT
        assert shell.connection.started["saved"] == changed


def test_a_function_or_alias_makes_every_command_one_that_may_change_the_shell(tmp_path: Path) -> None:
    with LocalEnvironment(str(tmp_path)) as local:
        local.execute("ls() { X=$((X + 1)); }", timeout=PATIENCE_SECONDS)
        shell = local._link.shell  # type: ignore[union-attr]
        made = shell.last_number
        wait_until(lambda: _snapshot_of(shell) >= made)
        assert local.execute("ls", timeout=PATIENCE_SECONDS).exit_code == 0
        wait_until(lambda: _snapshot_of(shell) > made)
        assert shell.connection.plain_at < made


def _snapshot_of(shell: object) -> int:
    """The last command that the saved state includes."""
    connection = shell.connection  # type: ignore[attr-defined]
    for name in os.listdir(f"/proc/{connection.supervisor}/fd"):
        path = f"/proc/{connection.supervisor}/fd/{name}"
        if os.path.exists(path) and os.readlink(path).startswith("/memfd:state"):
            content = Path(path).read_bytes()
            return int(content.rpartition(b"\n#end ")[2].split()[0]) if b"\n#end " in content else -1
    return -1


def test_warnings_that_bash_prints_at_its_start_do_not_spoil_the_channel_of_its_state(tmp_path: Path) -> None:
    with LocalEnvironment(str(tmp_path), env={"LC_ALL": "xx_YY.UTF-8"}) as local:
        assert text(local.execute("X=set; echo $LC_ALL", timeout=PATIENCE_SECONDS)) == "xx_YY.UTF-8\n"
        local.execute("exit", timeout=PATIENCE_SECONDS)
        assert text(local.execute("echo $X", timeout=PATIENCE_SECONDS)) == "set\n"
