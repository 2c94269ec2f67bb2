"""Processes that a command leaves behind on purpose: they are found, named, read and ended, and hold up nobody."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from handrail.environments.base import ProcessState
from handrail.environments.errors import InputRefused
from handrail.environments.live_environment import LiveEnvironment

from ..support import takes_less_than, wait_until
from .conftest import Run, host_pid, is_running, text


def test_a_background_job_does_not_hold_up_the_command(run: Run, shell: LiveEnvironment) -> None:
    with takes_less_than(30):
        result = run("sleep 1000 & echo started")
    assert text(result) == "started\n"
    (left,) = result.left_running
    wait_until(lambda: [one.command_line for one in shell.left_running()] == ["sleep 1000"])
    assert left.command_id == result.command_id
    assert abs(left.started_at - time.time()) < 60
    assert is_running(left.pid)


@pytest.mark.parametrize(
    "command",
    [
        "sleep 1000 >/dev/null 2>&1 &",
        "nohup sleep 1000 >/dev/null 2>&1 & disown",
        "setsid -f sleep 1000",
        "(setsid sleep 1000 >&- 2>&- <&- &)",
        "bash -c 'exec >&- 2>&-; exec sleep 1000' &",
        "env -i sleep 1000 &",
    ],
)
def test_however_it_is_left_it_is_found_and_ends_with_the_environment(
    run: Run, shell: LiveEnvironment, command: str
) -> None:
    run(command)
    wait_until(lambda: any(one.command_line == "sleep 1000" for one in shell.left_running()))
    pids = [one.pid for one in shell.left_running()]
    assert text(run("echo goes on")) == "goes on\n"
    shell.close()
    assert not any(map(is_running, pids))


def test_a_command_names_only_what_it_left_itself(run: Run, shell: LiveEnvironment) -> None:
    assert len(run("sleep 1000 &").left_running) == 1
    assert run("true").left_running == ()
    assert len(run("sleep 1001 & sleep 1002 &").left_running) == 2
    wait_until(lambda: [one.command_line for one in shell.left_running()] == ["sleep 1000", "sleep 1001", "sleep 1002"])


def test_a_subshell_is_named_by_its_command(run: Run) -> None:
    (left,) = run("(while :; do sleep 1000; done) &").left_running
    assert left.command_line == "(while :; do sleep 1000; done) &"


def test_what_ends_by_itself_is_not_listed_any_more(run: Run, shell: LiveEnvironment) -> None:
    (left,) = run("sleep 1000 &").left_running
    os.kill(host_pid(left.pid), signal.SIGKILL)
    wait_until(lambda: shell.left_running() == ())


def test_late_output_belongs_to_its_own_command(run: Run, shell: LiveEnvironment, work: Path) -> None:
    os.mkfifo(work / "gate")
    first = run("(read x <gate; echo late; sleep 1000) & echo now")
    assert text(first) == "now\n"
    (work / "gate").write_bytes(b"\n")
    process = shell.adopt(first.left_running[0])
    assert process.read(timeout=60).data == b"late\n"
    assert text(run("echo next")) == "next\n"
    piece = process.read(5)
    assert (piece.data, piece.end) == (b"", 5)


def test_a_talkative_job_neither_blocks_nor_grows(run: Run, shell: LiveEnvironment) -> None:
    result = run("yes 0123456789 & echo started")
    assert "started" in text(result)
    process = shell.adopt(result.left_running[0])
    wait_until(lambda: process.read().end > 1_000_000)
    piece = process.read()
    assert 0 < len(piece.data) <= 1 << 16
    assert piece.offset + len(piece.data) == piece.end
    assert text(run("echo next")) == "next\n"
    assert process.kill().state is ProcessState.ENDED


def test_one_that_was_left_can_be_killed_with_all_below_it(run: Run, shell: LiveEnvironment) -> None:
    result = run("bash -c 'trap \"\" TERM; sleep 1001 & echo $!; wait' & sleep .2")
    child = int(text(result))
    process = shell.adopt(result.left_running[0])
    assert process.poll().state is ProcessState.RUNNING
    assert process.kill().state is ProcessState.ENDED
    assert not is_running(process.pid)
    assert not is_running(child)
    assert text(run("echo works")) == "works\n"


def test_one_that_was_left_has_no_input(run: Run, shell: LiveEnvironment) -> None:
    process = shell.adopt(run("cat & sleep 1000 &").left_running[0])
    with pytest.raises(InputRefused, match="start it in the background"):
        process.write(b"x")


def test_jobs_are_still_found_when_the_shell_was_replaced(run: Run, shell: LiveEnvironment) -> None:
    (left,) = run("sleep 1000 &").left_running
    run("exit 1")
    run("sleep 1001", timeout=0.2)
    assert [one.pid for one in shell.left_running()] == [left.pid]
    assert is_running(left.pid)
