"""Shells that have started before a task needs one."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from handrail.environments.local_environment import LocalEnvironment
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


def renewed(tasks: TaskEnvironments, folder: Path, *commands: str) -> tuple[Any, Any]:
    """The link of a task that has run the commands and is over, and that of the task `e`, which has its supervisor now."""
    filled(tasks, folder)
    first = tasks.of("b")
    for command in commands:
        first.execute(command, timeout=60)
    link = first._link  # type: ignore[attr-defined]
    supervisor, bash = link.shell.connection.supervisor, link.shell.connection.bash
    tasks.override("c", {"cwd": str(folder)})
    run(tasks, "c", "true")  # room for one more that is ready
    tasks.close("b")
    wait_until(lambda: len(ready(tasks)) == 2)
    tasks.override("d", {"cwd": str(folder)})
    run(tasks, "d", "true")
    tasks.override("e", {"cwd": str(folder)})
    run(tasks, "e", "true")
    taken = tasks.of("e")._link  # type: ignore[attr-defined]
    assert (taken, taken.shell.connection.supervisor) == (link, supervisor)
    assert taken.shell.connection.bash != bash
    return link, taken


def test_nothing_of_a_task_is_in_the_shell_that_the_next_one_gets(tasks: TaskEnvironments, work: Path) -> None:
    (other := work / "other").mkdir()
    renewed(
        tasks,
        work,
        f"cd {other}; export SECRET=exported; mine=plain; declare -a list=(1 2); set -- first second; OLDPWD=/usr",
        "greet() { echo hello; }; alias ll='ls -l'; trap 'echo trapped' USR1; trap 'echo left' EXIT",
        "shopt -s extglob nullglob; set -o pipefail; set -u; umask 077; ulimit -n 100; hash -p /bin/true ls; false",
    )
    found = run(
        tasks,
        "e",
        "echo $? $PWD ${OLDPWD-none} ${SECRET-none} ${mine-none} ${list-none} $# $(umask) $BASHOPTS:$SHELLOPTS; "
        "declare -F; alias; trap -p USR1; trap -p EXIT | grep left; hash -t ls 2>&1; ulimit -n",
    )
    fresh = LocalEnvironment(str(work))
    try:
        expected = fresh.execute(
            f"echo 0 {work} none none none none 0 $(umask) $BASHOPTS:$SHELLOPTS; hash -t ls 2>&1; ulimit -n", timeout=60
        )
    finally:
        fresh.close()
    assert found == expected.output.head.decode().strip()


def test_the_memory_of_a_renewed_shell_has_nothing_of_the_earlier_commands(tasks: TaskEnvironments, work: Path) -> None:
    marks = ("export KEPT=mark-of-b; trap 'echo mark-of-b' EXIT", "echo mark-of-b >&2; : mark-of-b")
    renewed(tasks, work, *marks, "for fd in /proc/$PPID/fd/*; do [[ -f $fd ]] && chmod 700 $fd; done")
    link: Any = tasks.of("e")._link  # type: ignore[attr-defined]
    held = run(tasks, "e", "for fd in /proc/$PPID/fd/*; do [[ -f $fd ]] && tr '\\0' '\\n' <$fd; done; true")
    assert "mark-of" not in held
    modes = run(tasks, "e", "for fd in /proc/$PPID/fd/*; do [[ -f $fd ]] && stat -Lc %a $fd; done; true")
    assert set(modes.split()) == {"777"}
    assert "mark" not in Path(f"/proc/{link.shell.connection.supervisor}/environ").read_text()


def test_a_renewed_shell_dies_into_its_own_state_and_not_into_the_earlier_one(
    tasks: TaskEnvironments, work: Path
) -> None:
    renewed(tasks, work, "export KEPT=mark-of-b; cd /", "sleep 0.3")
    tasks.of("e").execute("kill -9 $$", timeout=60)
    assert run(tasks, "e", "echo $PWD ${KEPT-none}") == f"{work} none"


def test_commands_of_a_renewed_shell_count_from_one_and_time_out(tasks: TaskEnvironments, work: Path) -> None:
    link, _ = renewed(tasks, work, "true", "true", "exit 3", "true")
    assert link.shell.last_number == 1
    assert tasks.of("e").execute("sleep 60", timeout=0.2).timed_out
    assert run(tasks, "e", "echo again") == "again"


def test_a_question_about_an_earlier_task_is_not_asked_of_the_next(tasks: TaskEnvironments, work: Path) -> None:
    filled(tasks, work)
    link: Any = tasks.of("b")._link  # type: ignore[attr-defined]
    asker = link._fork_server.askers[link._name]
    tasks.override("c", {"cwd": str(work)})
    run(tasks, "c", "true")
    tasks.close("b")
    wait_until(lambda: link in ready(tasks))
    assert link._name not in link._fork_server.askers
    for task in ("d", "e"):
        tasks.override(task, {"cwd": str(work)})
        run(tasks, task, "true")
    assert link._fork_server.askers[link._name] is not asker


@pytest.mark.parametrize(
    "use",
    [
        "sleep 0.1 &",  # its pipe is read on
        "prlimit --pid $PPID --nofile=200:4096",
        "renice -n 5 -p $PPID",
        "taskset -p 1 $PPID",
        "ionice -c 3 -p $PPID",
        "echo 500 >/proc/$PPID/oom_score_adj",
    ],
)
def test_a_supervisor_that_a_command_could_have_changed_is_not_used_again(
    tasks: TaskEnvironments, work: Path, use: str
) -> None:
    filled(tasks, work)
    link: Any = tasks.of("b")._link  # type: ignore[attr-defined]
    supervisor = link.shell.connection.supervisor
    tasks.of("b").execute(use, timeout=60)
    wait_until(lambda: link.is_idle)
    tasks.override("c", {"cwd": str(work)})
    run(tasks, "c", "true")
    tasks.close("b")
    wait_until(lambda: proc.stat_of(supervisor) is None)
    assert link not in ready(tasks)


def test_a_supervisor_whose_mounts_would_be_others_now_is_not_used_again(
    tasks: TaskEnvironments, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled(tasks, work)
    link: Any = tasks.of("b")._link  # type: ignore[attr-defined]
    place = work / "settings"
    _, confinement, places = link.made_for
    confinement.shell["read_only"].append(str(place))
    places.insert(len(confinement.shell["read_only"]) - 1, None)
    place.write_text("a program reads this")
    tasks.override("c", {"cwd": str(work)})
    run(tasks, "c", "true")
    tasks.close("b")
    wait_until(lambda: link.shell.connection.go < 0)
    assert link not in ready(tasks)


def test_a_shell_with_a_background_process_is_not_used_again(tasks: TaskEnvironments, work: Path) -> None:
    filled(tasks, work)
    link: Any = tasks.of("b")._link  # type: ignore[attr-defined]
    tasks.of("b").background("true").wait(60)
    tasks.override("c", {"cwd": str(work)})
    run(tasks, "c", "true")
    wait_until(lambda: link.is_idle)
    tasks.close("b")
    wait_until(lambda: link.shell.connection.go < 0)
    assert link not in ready(tasks)


def test_what_a_renewed_shell_changes_belongs_to_its_own_calls(tasks: TaskEnvironments, work: Path) -> None:
    filled(tasks, work)
    tasks.of("b").execute("echo 1 >first", call=7)
    link: Any = tasks.of("b")._link  # type: ignore[attr-defined]
    tasks.override("c", {"cwd": str(work)})
    run(tasks, "c", "true")
    tasks.close("b")
    wait_until(lambda: len(ready(tasks)) == 2)
    for task in ("d", "e"):
        tasks.override(task, {"cwd": str(work)})
        run(tasks, task, "true")
    shell: Any = tasks.of("e")
    assert shell._link is link
    assert not shell.execute("echo 2 >uncounted", timeout=60).changed
    assert shell.execute("echo 3 >third", call=9, timeout=60).changed

    def created(call: int) -> list[str]:
        return [Path(one["path"]).name for one in shell.call_effects("describe", call=call)["created"]]

    assert (created(7), created(9)) == (["first"], ["third"])
    assert shell.call_effects("undo", call=7, number=20)["status"] == "undone"
    assert sorted(path.name for path in work.iterdir()) == ["third", "uncounted"]
