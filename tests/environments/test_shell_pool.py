"""Shells that have started before a task needs one."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from handrail.environments.shell_host import proc
from handrail.environments.shell_pool import ShellPool
from handrail.environments.tasks import TaskEnvironments
from handrail.environments.transport.link import DirectLink
from handrail.settings.schema import Config
from handrail.settings.sections import TerminalConfig

from ..support import wait_until


@pytest.fixture
def tasks(home: Path) -> Iterator[TaskEnvironments]:
    with TaskEnvironments(Config(terminal=TerminalConfig(pool=2))) as made:
        yield made


def run(tasks: TaskEnvironments, task: str, command: str) -> str:
    done = tasks.of(task).execute(command, timeout=60)
    assert done.exit_code == 0, done.output.head
    return done.output.head.decode().strip()


def ready(tasks: TaskEnvironments) -> list[Any]:
    pool: Any = tasks._companions.get(ShellPool)
    return pool._ready if pool is not None else []


def filled(tasks: TaskEnvironments, folder: Path) -> list[int]:
    """The pids of the shells that are ready, after two tasks."""
    for task in ("a", "b"):
        tasks.override(task, {"cwd": str(folder)})
        run(tasks, task, "true")
    wait_until(lambda: len(ready(tasks)) == 2)
    return [link.shell.connection.bash for link in ready(tasks)]


def shells() -> int:
    return sum(proc.command_line(pid).startswith("bash") for pid in proc.tree(os.getpid()))


def test_one_task_alone_starts_no_shell_ahead(tasks: TaskEnvironments, work: Path) -> None:
    before = shells()
    run(tasks, "a", "true")
    run(tasks, "a", "true")
    assert (shells() - before, ready(tasks)) == (1, [])


def test_a_task_takes_over_a_shell_that_is_ready_and_is_in_its_own_directory(
    tasks: TaskEnvironments, work: Path, tmp_path: Path
) -> None:
    pids = filled(tasks, work)
    (there := tmp_path / "it's here").mkdir()
    (tmp_path / "link").symlink_to(there)
    tasks.override("c", {"cwd": str(tmp_path / "link")})
    assert tasks.of("c").cwd == str(tmp_path / "link")
    assert run(tasks, "c", "echo $PWD ${OLDPWD-none} $(pwd -P)") == f"{tmp_path}/link none {there}"
    assert tasks.of("c")._link.shell.connection.bash in pids  # type: ignore[attr-defined]
    run(tasks, "c", "export MINE=1; cd /")
    tasks.override("d", {"cwd": str(work)})
    assert run(tasks, "d", "echo $PWD ${MINE-none}") == f"{work} none"


def test_a_task_with_other_variables_gets_a_shell_of_its_own(tasks: TaskEnvironments, work: Path) -> None:
    pids = filled(tasks, work)
    tasks.override("c", {"cwd": str(work), "env": {"NAME": "c"}})
    assert run(tasks, "c", "echo $NAME") == "c"
    assert tasks.of("c")._link.shell.connection.bash not in pids  # type: ignore[attr-defined]


@pytest.mark.parametrize("ends", ["kill -9 $$", "exec false"])
def test_a_shell_that_dies_at_once_starts_again_where_its_task_is(
    tasks: TaskEnvironments, work: Path, tmp_path: Path, ends: str
) -> None:
    filled(tasks, tmp_path)
    tasks.override("c", {"cwd": str(work)})
    tasks.of("c").execute(ends, timeout=60)
    assert run(tasks, "c", "pwd") == str(work)


def test_a_shell_that_was_killed_while_it_was_ready_is_not_given_to_a_task(tasks: TaskEnvironments, work: Path) -> None:
    for link in (filled(tasks, work), ready(tasks))[1]:
        os.kill(link.shell.connection.supervisor, 9)
    tasks.override("c", {"cwd": str(work)})
    assert run(tasks, "c", "pwd") == str(work)


def test_shells_that_nobody_wants_end(tasks: TaskEnvironments, work: Path) -> None:
    tasks.companion(ShellPool, lambda: ShellPool(2, idle_seconds=0.1))
    before = shells()
    for task in ("a", "b"):
        run(tasks, task, "true")
    wait_until(lambda: shells() == before + 2 and not ready(tasks))


def test_closing_ends_what_is_ready_and_what_is_being_started(tasks: TaskEnvironments, work: Path) -> None:
    before = shells()
    for task in ("a", "b", "c"):
        run(tasks, task, "true")
    tasks.close_all()
    assert shells() == before


def test_a_child_leaves_the_shells_of_its_parent_alone(tasks: TaskEnvironments, work: Path) -> None:
    filled(tasks, work)
    if (child := os.fork()) == 0:
        code = 1
        try:
            tasks.override("c", {"cwd": str(work)})
            code = 0 if run(tasks, "c", "pwd") == str(work) else 2
            tasks.close("c")
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    tasks.override("d", {"cwd": str(work)})
    assert run(tasks, "d", "pwd") == str(work)


def test_a_shell_that_is_idle_ends_after_its_task_and_closing_waits_for_that(
    tasks: TaskEnvironments, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled(tasks, work)
    before, may_end, end = shells(), threading.Event(), DirectLink.close

    def ends_late(link: DirectLink) -> None:
        assert may_end.wait(60)
        end(link)

    monkeypatch.setattr(DirectLink, "close", ends_late)
    tasks.close("b")
    assert shells() == before
    may_end.set()
    wait_until(lambda: shells() == before - 1)
    tasks.close_all()
    assert shells() == before - 4


def test_what_a_command_left_running_has_ended_when_its_task_is_closed(tasks: TaskEnvironments, work: Path) -> None:
    filled(tasks, work)
    run(tasks, "b", "sleep 678 >/dev/null & (setsid sleep 678 >/dev/null &)")

    def left() -> int:
        return sum(proc.command_line(pid) == "sleep 678" for pid in proc.tree(os.getpid()))

    wait_until(lambda: left() == 2)
    tasks.close("b")
    assert left() == 0
