"""The table: names, status, limits, and what is remembered for how long."""

from __future__ import annotations

import os
import signal
import stat
import time
from pathlib import Path

import pytest

from handrail.environments.errors import NoSuchProcess
from handrail.environments.shell_host import proc
from handrail.environments.tasks import TaskEnvironments
from handrail.errors import InvalidArguments
from handrail.processes.table import ProcessTable, TooManyProcesses, Wanted
from handrail.processes.tracked import State, TrackedProcess
from handrail.settings.sections import ProcessesConfig
from handrail.store.processes import ProcessRecords

from ..environments.conftest import host_pid, is_running
from ..support import wait_until
from .conftest import Start, forget_all, left_of, output


def test_it_has_a_name_by_which_it_is_found(table: ProcessTable, start: Start) -> None:
    one = start("echo hi; sleep 1000")
    assert one.id.startswith("proc_")
    assert table.get(one.id) is one
    assert [found.id for found in table.list("t1")] == [one.id]
    assert table.list("t2") == []
    assert one.record.command == "echo hi; sleep 1000"
    assert one.status().state is State.RUNNING


def test_an_unknown_name_is_an_error_that_says_which_are_known(table: ProcessTable, start: Start) -> None:
    one = start("sleep 1000")
    with pytest.raises(NoSuchProcess, match=one.id):
        table.get(one.id[:-1] + "z")
    with pytest.raises(NoSuchProcess, match="known"):
        table.get("../../etc/passwd")


def test_its_end_is_written_down(start: Start, records: ProcessRecords) -> None:
    one = start("echo out; exit 3")
    one.use(lambda process: process.wait(60))
    status = one.status()
    assert (status.state, status.exit_code) == (State.EXITED, 3)
    kept = records.get(one.id)
    assert kept is not None
    assert (kept.state, kept.exit_code) == ("exited", 3)
    assert output(one) == "out\n"


def test_a_task_without_a_name_is_the_default_one(table: ProcessTable, start: Start) -> None:
    one = start("sleep 1000", task_id=None)
    assert [found.id for found in table.list("default")] == [one.id]


def test_its_record_is_for_its_owner_alone(start: Start, home: Path) -> None:
    one = start("sleep 1000")
    path = home / "state" / "process-table" / f"{one.id}.json"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_a_broken_record_is_passed_over(table: ProcessTable, start: Start, home: Path) -> None:
    one = start("sleep 1000")
    broken = home / "state" / "process-table" / "proc_00000000.json"
    broken.write_text("{")
    assert [found.id for found in table.list()] == [one.id]
    broken.unlink()


def lose(start: Start) -> TrackedProcess:
    """One whose job supervisor was killed, and that still runs."""
    one = start("echo up; sleep 1000")
    wait_until(lambda: output(one) == "up\n")
    found = proc.stat_of(host_pid(one.record.pid))
    assert found is not None
    os.kill(found.parent, signal.SIGKILL)
    wait_until(lambda: one.status().state is State.LOST)
    assert is_running(one.record.pid)
    return one


def test_one_whose_supervisor_was_killed_is_lost_and_can_still_be_ended(start: Start) -> None:
    one = lose(start)
    assert "supervisor was killed" in one.status().reason
    one.kill()
    wait_until(lambda: not is_running(one.record.pid))


def test_a_lost_one_that_is_forgotten_does_not_run_on(table: ProcessTable, start: Start) -> None:
    one = lose(start)
    table.forget(one.id)
    wait_until(lambda: not is_running(one.record.pid))


def test_one_of_another_version_is_listed_as_unreachable(table: ProcessTable, start: Start) -> None:
    one = start("sleep 1000")
    settings = one.record.settings
    one._process = None
    one.change(settings={"backend": "local", "what": 1})
    assert one.status().state is State.UNREACHABLE
    assert "another version" in one.status().reason
    one.change(settings=settings)


def test_one_that_was_forgotten_does_not_come_back(table: ProcessTable, start: Start, records: ProcessRecords) -> None:
    one = start("sleep 1000", notify_on_complete=True)
    table.forget(one.id)
    one.change(exit_code=1)  # as a thread would that had begun to look at it
    assert records.all() == []


def test_one_that_somebody_removed_is_lost_and_not_thought_to_run(start: Start) -> None:
    one = start("sleep 1000")
    one.use(lambda process: process.forget())
    assert one.status().state is State.LOST
    assert not is_running(one.record.pid)


def test_it_goes_on_when_the_tasks_environment_is_closed(start: Start, environments: TaskEnvironments) -> None:
    one = start("read x; echo got $x")
    environments.close("t1")
    assert one.status().state is State.RUNNING
    one.use(lambda process: process.write(b"word\n"))
    one.use(lambda process: process.wait(60))
    assert output(one) == "got word\n"


def test_in_a_sandbox_it_ends_with_the_environment(
    table: ProcessTable, start: Start, environments: TaskEnvironments
) -> None:
    environments.override("boxed", {"backend": "local", "sandbox": True})
    one = start("echo up; sleep 1000", task_id="boxed")
    assert not one.record.survives
    one.use(lambda process: process.read(timeout=60))
    environments.close("boxed")
    wait_until(lambda: one.status().state in (State.LOST, State.UNREACHABLE))
    assert one.status().state is State.LOST


def test_what_a_command_left_running_can_be_taken_up(table: ProcessTable, environments: TaskEnvironments) -> None:
    with environments.use("t1") as environment:
        (left,) = environment.execute("sleep 1000 & echo").left_running
        identity = table.add(
            environment.adopt(left), task_id="t1", session_id=None, settings=environments.settings("t1")
        )
    one = table.get(identity)
    assert one.status().state is State.RUNNING
    assert not one.waits_for_input()
    one.use(lambda process: process.kill())
    assert one.status().state is State.EXITED
    assert "not known" in one.status().reason


def test_there_is_room_for_so_many_in_a_task_and_in_all(
    records: ProcessRecords, environments: TaskEnvironments, home: Path
) -> None:
    table = ProcessTable(records, environments, ProcessesConfig(max_running=3, max_running_per_task=2))
    first = table.start("sleep 1000", task_id="a", session_id=None, wanted=Wanted())
    table.start("sleep 1000", task_id="a", session_id=None, wanted=Wanted())
    with pytest.raises(TooManyProcesses, match=f"2 background processes run in this task.*{first.id}"):
        table.start("touch started", task_id="a", session_id=None, wanted=Wanted())
    table.start("sleep 1000", task_id="b", session_id=None, wanted=Wanted())
    with pytest.raises(TooManyProcesses, match="in all tasks together"):
        table.start("touch started", task_id="c", session_id=None, wanted=Wanted())
    assert not list(Path(environments.cwd("a")).iterdir())
    first.use(lambda process: process.kill())  # nobody has asked for its status since
    table.start("sleep 1000", task_id="a", session_id=None, wanted=Wanted())
    forget_all(table)
    table.close()
    assert left_of(home) == []


def test_ended_ones_are_forgotten_with_their_logs_when_there_are_too_many(
    records: ProcessRecords, environments: TaskEnvironments, home: Path
) -> None:
    table = ProcessTable(records, environments, ProcessesConfig(max_finished=2))
    ids = []
    for number in range(4):
        one = table.start(f"echo {number}", task_id="a", session_id=None, wanted=Wanted())
        one.use(lambda process: process.wait(60))
        one.status()
        ids.append(one.id)
    runs = table.start("sleep 1000", task_id="a", session_id=None, wanted=Wanted())
    assert [one.id for one in table.list()] == [*ids[2:], runs.id]
    assert len(list((home / "state" / "processes").iterdir())) == 3
    forget_all(table)
    table.close()


def test_ended_ones_are_forgotten_after_their_time(records: ProcessRecords, environments: TaskEnvironments) -> None:
    table = ProcessTable(records, environments, ProcessesConfig(keep_finished_hours=100 / 3600))
    one = table.start("true", task_id="a", session_id=None, wanted=Wanted())
    one.use(lambda process: process.wait(60))
    one.status()
    one.change(ended_at=time.time() - 101)
    table.start("sleep 1000", task_id="a", session_id=None, wanted=Wanted())
    with pytest.raises(NoSuchProcess):
        table.get(one.id)
    forget_all(table)
    table.close()


def test_what_cannot_be_watched_for_starts_nothing(start: Start, work: Path, table: ProcessTable) -> None:
    for patterns in (["("], [""], ["x"] * 21, ["x" * 1001]):
        with pytest.raises(InvalidArguments, match="watch_patterns"):
            start("touch started", watch_patterns=patterns)
    assert table.list() == []
    assert not list(work.iterdir())
