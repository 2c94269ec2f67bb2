"""A background process whose runtime was killed: its call ends when the process is gone, whatever became of it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from handrail import Handrail
from handrail.environments.shell_host import jobs, proc
from handrail.store.call_records import CallRecord
from handrail.testing import OpenGate
from tests.support import wait_until

_RUN = """
import os, signal, sys
from handrail import Handrail
from handrail.testing import OpenGate
app = Handrail(home=sys.argv[1])
app.runtime.gate = OpenGate()
app.register_task_env_overrides("t", cwd=sys.argv[2])
for command in sys.argv[4:]:
    arguments = {"command": command, "background": True, "pty": sys.argv[3] == "pty"}
    app.handle_function_call("terminal", arguments, "t", None, "s1")
app.effects.records
os.kill(os.getpid(), signal.SIGKILL)
"""
_ONLY_WAITS = "until test -e go; do sleep 0.05; done"
_WAITS = f"echo 1 > one; {_ONLY_WAITS}"


@pytest.fixture
def work(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


def started(home: Path, work: Path, *commands: str, kind: str = "pipe") -> None:
    """Start background processes, and kill their runtime when the records are written."""
    ran = subprocess.run([sys.executable, "-c", _RUN, str(home), str(work), kind, *commands], check=False)
    assert ran.returncode == -signal.SIGKILL


def folders(home: Path) -> list[str]:
    return [str(path) for path in (home / "state" / "processes").iterdir()]


def pid_of(folder: str, which: str) -> int:
    status = jobs.read_status(folder)
    start = status["start" if which == "pid" else f"{which}_start"]
    return proc.pid_here(status[which], start, status["pid_namespace"])


def watcher(home: Path) -> int:
    """The process that writes the journal."""
    (log,) = (home / "state" / "journal").glob("*.job.log")
    return int(log.name.partition("-")[2].partition(".")[0])


def records(app: Handrail) -> list[CallRecord]:
    return sorted(app.effects.latest())


def receipts(app: Handrail, number: int) -> list[str]:
    query = "SELECT body FROM receipts WHERE json_extract(body, '$.number') = ? ORDER BY id"
    return [row["body"] for row in app.effects.records.database.rows(query, (number,))]


def assert_settled(app: Handrail, number: int = 1) -> None:
    wait_until(lambda: records(app)[number - 1].ended is not None)
    assert app.effects.records.get(number).ended is not None, "it is stored"
    assert len(receipts(app, number)) == 2, "one of its start, one of its end"


def assert_running(app: Handrail, command: str) -> None:
    (record,) = records(app)
    assert record.ended is None
    refused = app.effects.undo(1)
    assert refused["status"] == "refused"
    assert command in refused["reason"]


@pytest.mark.parametrize("kind", ["pipe", "pty"])
def test_one_that_runs_stays_running_until_it_ends(home: Path, work: Path, kind: str) -> None:
    started(home, work, _WAITS, kind=kind)
    wait_until((work / "one").exists)
    with Handrail(home=home) as app:
        assert_running(app, _WAITS)
        (work / "go").touch()
        assert_settled(app)
        assert app.effects.undo(1)["status"] == "undone"
    assert not (work / "one").exists()


@pytest.mark.parametrize("kind", ["pipe", "pty"])
def test_one_that_changes_nothing_ends_too(home: Path, work: Path, kind: str) -> None:
    started(home, work, _ONLY_WAITS, kind=kind)
    with Handrail(home=home) as app:
        assert_running(app, _ONLY_WAITS)
        (work / "go").touch()
        assert_settled(app)
        assert records(app)[0].counts["created"] == 0


@pytest.mark.parametrize("command", [_WAITS, "exec sleep 1000"])
def test_one_that_was_killed_has_ended(home: Path, work: Path, command: str) -> None:
    started(home, work, command)
    with Handrail(home=home) as app:
        assert_running(app, command)
        os.kill(pid_of(folders(home)[0], "pid"), signal.SIGKILL)
        assert_settled(app)


@pytest.mark.parametrize("command", [_WAITS, _ONLY_WAITS])
def test_one_whose_supervisor_was_killed_after_its_runtime_has_ended(home: Path, work: Path, command: str) -> None:
    started(home, work, command)
    with Handrail(home=home) as app:
        assert_running(app, command)
        os.kill(pid_of(folders(home)[0], "minder"), signal.SIGKILL)
        (work / "go").touch()
        assert_settled(app)


def test_what_wrote_its_journal_was_killed_after_it_was_seen_running(home: Path, work: Path) -> None:
    started(home, work, _WAITS)
    wait_until((work / "one").exists)
    with Handrail(home=home) as app:
        assert_running(app, _WAITS)  # also deals with what the killed runtime has left
    os.kill(watcher(home), signal.SIGKILL)
    (work / "go").touch()
    with Handrail(home=home) as app:
        assert_settled(app)
        assert app.effects.undo(1)["status"] == "undone"
    assert not (work / "one").exists()


def test_after_a_reboot_it_is_gone(home: Path, work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started(home, work, _ONLY_WAITS)
    with Handrail(home=home) as app:
        (record,) = records(app)
        assert record.ended is None
        monkeypatch.setattr(proc, "boot_id", lambda: "another")
        assert_settled(app)
    (work / "go").touch()


def test_of_several_each_ends_by_itself_and_can_be_pruned(home: Path, work: Path) -> None:
    waits = "echo 1 > {0}; until test -e go{0}; do sleep 0.05; done"
    started(home, work, waits.format("a"), waits.format("b"))
    wait_until(lambda: (work / "a").exists() and (work / "b").exists())
    with Handrail(home=home) as app:
        (work / "gob").touch()
        assert_settled(app, 2)
        assert records(app)[0].ended is None
        assert app.effects.prune(keep_bytes=0)["calls"] == [2]
        (work / "goa").touch()
        assert_settled(app, 1)


def test_two_that_look_at_the_same_time_write_one_receipt(home: Path, work: Path) -> None:
    started(home, work, _WAITS)
    with Handrail(home=home) as app, Handrail(home=home) as other:
        assert_running(app, _WAITS)
        seen = [one.effects.records.get(1) for one in (app, other)]  # both have read that it runs
        (work / "go").touch()
        wait_until(lambda: app.effects._told(seen[0])["ended"] is not None)
        barrier = threading.Barrier(2)

        def look(one: Handrail, record: CallRecord) -> None:
            barrier.wait()
            one.effects._refreshed([record])

        threads = [threading.Thread(target=look, args=pair) for pair in zip((app, other), seen, strict=True)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert_settled(app)


@pytest.mark.parametrize("first", ["true", "echo y > now"])
@pytest.mark.parametrize("later", ["true", "echo x > late"])
def test_what_a_command_has_left_is_part_of_its_call_until_it_ends(
    home: Path, work: Path, first: str, later: str
) -> None:
    with Handrail(home=home) as app:
        app.runtime.gate = OpenGate()
        app.register_task_env_overrides("t", cwd=str(work))
        command = f"({_ONLY_WAITS}; {later}) & {first}"
        app.handle_function_call("terminal", {"command": command}, "t", None, "s1")
        (record,) = records(app)
        assert record.ended is None
        (work / "go").touch()
        assert_settled(app)
        told = app.effects.describe(1)
        made = [text.partition("> ")[2] for text in (later, first) if ">" in text]
        assert ([one["path"] for one in told["created"]], "damaged" in told) == (
            [str(work / name) for name in made],
            False,
        )
        assert told["can_undo"] == bool(made)


def test_many_open_records_are_recovered_once(home: Path, work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started(home, work, *[_ONLY_WAITS] * 4)
    with Handrail(home=home) as app:
        count, recover = 0, app.effects.recover

        def counted() -> None:
            nonlocal count
            count += 1
            recover()

        monkeypatch.setattr(app.effects, "recover", counted)
        assert [one.ended for one in records(app)] == [None] * 4
        assert count == 1
        (work / "go").touch()
        assert_settled(app, 4)
