"""`handrail ps`: processes of other programs' tasks, listed, read and ended."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from handrail.environments.shell_host import proc
from tests import fork_server
from tests.cli.conftest import Cli
from tests.support import wait_until

# A program that starts a process in the background, and ends.
START = """
import sys
from handrail.model_tools import default, reset
from handrail.processes.table import Wanted
one = default().processes.start(sys.argv[1], task_id=sys.argv[2], session_id=None, wanted=Wanted())
if sys.argv[3] == "wait":
    one.use(lambda process: process.wait(60))
print(one.id, one.record.pid)
reset()
"""


class Starter:
    def __init__(self, cli: Cli) -> None:
        self._cli = cli
        self.pids: list[int] = []

    def __call__(self, command: str, task: str = "t1", *, wait: bool = False) -> tuple[str, int]:
        words = ("-c", START, command, task, "wait" if wait else "")
        done = fork_server.run(*words, cwd=self._cli.cwd, env=self._cli.env)
        assert done.returncode == 0, done.stderr
        identity, pid = done.stdout.split()
        # Its number on this machine: in its own namespace it is small, and others have the same.
        for row in self._cli("ps", "--json").json:
            if row["session_id"] == identity:
                pid = row["pid"]
                self.pids.append(pid)
        return identity, int(pid)


def is_running(pid: int) -> bool:
    stat = proc.stat_of(pid)
    return stat is not None and stat.state not in b"ZX"


@pytest.fixture
def start(cli: Cli) -> Iterator[Starter]:
    starter = Starter(cli)
    yield starter
    cli("ps", "kill", "--all")
    assert not any(map(is_running, starter.pids))


def test_it_lists_what_other_programs_have_started(cli: Cli, start: Starter) -> None:
    identity, pid = start("sleep 1000")
    other, _ = start("sleep 1001", "t2")
    start("true", wait=True)
    ran = cli("ps")
    header, *rows = ran.out.splitlines()
    assert header.split() == ["ID", "TASK", "ENVIRONMENT", "STATUS", "PID", "AGE", "COMMAND"]
    assert [row.split()[0] for row in rows] == [identity, other]
    *words, shown = rows[0].split()[1:5]
    assert words == ["t1", "local", "running"]
    assert int(shown) == pid
    assert rows[0].endswith("sleep 1000")
    assert [row["session_id"] for row in cli("ps", "--task", "t2", "--json").json] == [other]


def test_ended_ones_are_listed_when_asked_for(cli: Cli, start: Starter) -> None:
    identity, _ = start("exit 3", wait=True)
    assert cli("ps", "--json").json == []
    (row,) = cli("ps", "--all", "--json").json
    assert (row["session_id"], row["status"], row["exit_code"]) == (identity, "exited (3)", 3)


def test_they_can_be_ended(cli: Cli, start: Starter) -> None:
    identity, pid = start("sleep 1000 & sleep 1001")
    ran = cli("ps", "kill", identity)
    assert (ran.code, ran.out) == (0, f"{identity} ended with exit code 143\n")
    assert not is_running(pid)
    assert cli("ps", "--json").json == []


def test_all_can_be_ended_at_once(cli: Cli, start: Starter) -> None:
    pids = [start("sleep 1000")[1], start("sleep 1000", "t2")[1]]
    assert cli("ps", "kill", "--all").code == 0
    assert not any(map(is_running, pids))


def test_one_that_is_not_known_is_an_error(cli: Cli, start: Starter) -> None:
    ran = cli("ps", "kill", "proc_00000000")
    assert ran.code == 1
    assert "there is no background process 'proc_00000000'" in ran.err
    assert cli("ps", "kill").code == 2


def test_a_log_is_printed_byte_for_byte(cli: Cli, start: Starter) -> None:
    identity, _ = start("printf 'a\\xff\\e[31mb\\n'; seq 100000", wait=True)
    with cli.start("ps", "log", identity) as process:
        out, _ = process.communicate(timeout=60)
    assert out == b"a\xff\x1b[31mb\n" + "".join(f"{number}\n" for number in range(1, 100_001)).encode()


def test_a_persons_terminal_obeys_nothing_in_a_log(cli: Cli, start: Starter) -> None:
    identity, _ = start("printf 'a\\e]0;title\\a\\e[31mb\\n'", wait=True)
    with cli.terminal("ps", "log", identity) as terminal:
        assert terminal.end() == 0
    assert terminal.shown == "ab\n"


def test_a_log_can_be_followed_to_its_end(cli: Cli, start: Starter) -> None:
    identity, _ = start("echo begun; until [ -e go ]; do sleep .01; done; echo end")
    with cli.start("ps", "log", "--follow", identity) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"begun\n"
        (cli.cwd / "go").touch()
        assert process.stdout.readline() == b"end\n"
        process.communicate(timeout=60)
    assert process.returncode == 0


def test_what_is_done_with_the_tool_is_seen_here(cli: Cli, start: Starter) -> None:
    identity, pid = start("sleep 1000")
    ran = cli("call", "process", "action=kill", f"session_id={identity}")
    assert ran.json["status"] == "exited"
    wait_until(lambda: not is_running(pid))
    assert cli("ps", "--json").json == []
