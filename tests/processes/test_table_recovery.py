"""Processes that outlive their runtime: found again after kill -9, told of once, and never taken from a runtime that lives."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from handrail.environments.tasks import TaskEnvironments
from handrail.processes.table import ProcessTable
from handrail.processes.tracked import State
from handrail.store.processes import ProcessRecords

from ..environments.conftest import is_running, known_as
from ..shell_hosts import below
from ..support import wait_until
from .conftest import output

# A runtime of its own. It reads expressions, one a line, and prints what they give as JSON.
RUNTIME = """
import json, sys
from handrail.model_tools import default
from handrail.processes.table import Wanted
here = default()
table = here.processes
def start(command, task_id="t1", **wanted):
    one = table.start(command, task_id=task_id, session_id="s1", wanted=Wanted(**wanted))
    return [one.id, one.record.pid]
def drain():
    return [[notice.kind.value, notice.id, notice.text] for notice in table.drain_notices("t1")]
for line in sys.stdin:
    print(json.dumps(eval(line)), flush=True)
here.close()
"""


class OtherRuntime:
    def __init__(self, cwd: Path) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", RUNTIME], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=cwd
        )
        self.pid = self._process.pid

    def __call__(self, expression: str) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(expression + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())

    def kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)
        self.end()

    def end(self) -> None:
        with contextlib.suppress(BrokenPipeError):
            self._process.communicate(timeout=90)


@pytest.fixture
def other(work: Path) -> Iterator[OtherRuntime]:
    runtime = OtherRuntime(work)
    yield runtime
    runtime.end()


def test_it_is_found_again_after_the_runtime_was_killed(other: OtherRuntime, table: ProcessTable) -> None:
    identity, pid = other("start('echo begun; read x; echo got $x; sleep 1000')")
    other.kill()
    (found,) = table.list("t1")
    assert (found.id, found.record.pid, found.record.session_id) == (identity, pid, "s1")
    assert found.status().state is State.RUNNING
    assert is_running(pid)
    wait_until(lambda: output(found) == "begun\n")
    found.use(lambda process: process.write(b"word\n"))
    wait_until(lambda: output(found) == "begun\ngot word\n")
    found.use(lambda process: process.kill())
    assert found.status().exit_code == 143
    assert not is_running(pid)


def test_how_it_ended_meanwhile_is_known(other: OtherRuntime, table: ProcessTable, work: Path) -> None:
    os.mkfifo(work / "gate")
    identity, _ = other("start('read x <gate; echo done; exit 9')")
    other.kill()
    (work / "gate").write_text("\n")
    found = table.get(identity)
    wait_until(lambda: found.status().state is not State.RUNNING)
    assert found.status().exit_code == 9
    assert output(found) == "done\n"


def test_a_terminal_is_found_again_with_its_screen(other: OtherRuntime, table: ProcessTable) -> None:
    identity, _ = other("start('printf \"\\\\e[2J\\\\e[3;5Hhere\"; read x', size=(10, 40))")
    other.kill()
    found = table.get(identity)
    wait_until(found.waits_for_input)
    assert found.screen().text == "\n\n    here"
    assert found.screen().size == (10, 40)


def test_one_that_was_to_end_with_its_runtime_has(other: OtherRuntime, table: ProcessTable, work: Path) -> None:
    other("here.environments.override('boxed', {'backend': 'local', 'sandbox': True})")
    identity, _ = other("start('sleep 1000', task_id='boxed', notify_on_complete=True)")
    assert table.get(identity).status().state is State.UNREACHABLE  # it is in the sandbox of another
    other.kill()
    (notice,) = table.drain_notices("boxed")
    assert "ended with the runtime" in str(notice)
    status = table.get(identity).status()
    assert (status.state, status.exit_code) == (State.EXITED, None)


def test_of_two_runtimes_one_is_told(other: OtherRuntime, table: ProcessTable, work: Path) -> None:
    identity, _ = other("start('echo last words', notify_on_complete=True)")
    other.kill()
    wait_until(lambda: table.get(identity).status().state is State.EXITED)
    runtimes = [OtherRuntime(work) for _ in range(3)]
    try:
        told = [notice for _ in range(3) for runtime in runtimes for notice in runtime("drain()")]
    finally:
        for runtime in runtimes:
            runtime.end()
    assert told == [["ended", identity, "last words"]]


def test_the_news_of_a_runtime_that_lives_stays_with_it(other: OtherRuntime, table: ProcessTable) -> None:
    other("start('echo hit', notify_on_complete=True, watch_patterns=['hit'])")
    assert table.drain_notices("t1") == []
    told: list[list[str]] = []

    def has_all() -> bool:
        told.extend(other("drain()"))
        return len(told) == 2

    wait_until(has_all)
    assert [kind for kind, *_ in told] == ["matched", "ended"]
    assert table.drain_notices("t1") == []


def test_a_watch_goes_on_where_it_was_and_tells_nothing_twice(
    other: OtherRuntime, table: ProcessTable, records: ProcessRecords
) -> None:
    identity, _ = other("start('echo hit 1; read x; echo hit 2; sleep 1000', watch_patterns=['hit'])")
    wait_until(lambda: other("drain()") == [["matched", identity, "hit 1"]])
    other.kill()
    found = table.get(identity)
    assert table.drain_notices("t1") == []
    found.use(lambda process: process.write(b"\n"))
    told = []

    def has_one() -> bool:
        told.extend(table.drain_notices("t1"))
        return bool(told)

    wait_until(has_one)
    assert [notice.text for notice in told] == ["hit 2"]


def test_it_can_be_ended_while_its_runtime_lives(
    other: OtherRuntime, table: ProcessTable, environments: TaskEnvironments
) -> None:
    identity, pid = other("start('sleep 1000', notify_on_complete=True)")
    (number,) = known_as(pid)  # a shell of this process may get the same one
    table.get(identity).use(lambda process: process.kill())
    assert not Path(f"/proc/{number}").exists()
    told: list[list[str]] = []

    def is_told() -> bool:
        told.extend(other("drain()"))
        return bool(told)

    wait_until(is_told)
    assert told == [["ended", identity, ""]]


def test_what_is_asked_of_a_survivor_starts_no_shell(other: OtherRuntime, table: ProcessTable) -> None:

    identity, _ = other("start('echo hi; sleep 1000')")
    other.kill()
    before = below()
    found = table.get(identity)
    wait_until(lambda: output(found) == "hi\n")
    assert found.status().state is State.RUNNING
    assert below() == before
