"""What commands change is in the journal, under the call in whose name they run, and can be taken back."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from handrail.environments.base import CommandResult, ProcessState
from handrail.environments.errors import EnvironmentLost
from handrail.environments.live_environment import LiveEnvironment
from handrail.environments.local_environment import LocalEnvironment
from handrail.environments.protection import Protection
from handrail.environments.shell_host import journal_log as log
from handrail.environments.shell_host import proc
from handrail.environments.shell_host.connection import Connection
from handrail.environments.shell_host.journal_log import Journal
from handrail.environments.shell_host.journal_undo import recover
from handrail.environments.transport.link import DirectLink, Link
from handrail.environments.transport.session import Session

from ..shell_hosts import FramedTransport, below
from ..support import wait_until
from .conftest import PATIENCE_SECONDS, is_running, text
from .shell_host.random_changes import make_tree
from .shell_host.watched_commands import snapshot

Call = Callable[..., CommandResult]


class FramedEnvironment(LiveEnvironment):
    """A shell of this machine, with its journal, reached as one on another machine is."""

    name = "framed"
    persistent = True

    def __init__(self, cwd: str, processes_dir: str) -> None:
        super().__init__()
        self._first_cwd, self._processes_dir = cwd, processes_dir

    def connect(self, state: bytes | None) -> Link:
        transport = FramedTransport(argv=list, where="a process", python=sys.executable)
        effects = self.effects_elsewhere()
        folder = self._processes_dir
        return Session(transport, env={}, cwd=self._first_cwd, jobs_root=folder, state=state, effects=effects)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HANDRAIL_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "far"))
    return tmp_path / "home"


@pytest.fixture(params=["protected", "unprotected", "framed"])
def shell(request: pytest.FixtureRequest, tmp_path: Path, home: Path) -> Iterator[LiveEnvironment]:
    work = tmp_path / "work"
    make_tree(work)
    made: LiveEnvironment
    if request.param == "framed":
        made = FramedEnvironment(str(work), str(tmp_path / "processes"))
    else:
        protection = Protection() if request.param == "protected" else None
        made = LocalEnvironment(str(work), protection=protection, processes_dir=str(tmp_path / "processes"))
    with made:
        yield made


@pytest.fixture
def work(tmp_path: Path) -> Path:
    return tmp_path / "work"


@pytest.fixture
def call(shell: LiveEnvironment) -> Call:
    """Run a command as the call of this number."""

    def run(number: int, command: str, **options: object) -> CommandResult:
        return shell.execute(command, call=number, **{"timeout": PATIENCE_SECONDS, **options})

    return run


def undo(shell: LiveEnvironment, number: int, by: int) -> None:
    answer = shell.call_effects("undo", call=number, number=by)
    assert (answer["status"], answer["failed"]) == ("undone", []), answer


@pytest.mark.parametrize(
    "command",
    [
        "echo more > a",
        "rm -rf dir",
        "rm -rf -- *",
        "mv dir other; echo x > other/x",
        "cp -a dir copy; chmod 700 dir; truncate -s 1 b",
        "cd dir; echo x > ../new; exec 3>>x; echo y >&3",
        "git init -q . && git add -A && git -c user.name=a -c user.email=b commit -qm x && git rm -qr dir",
        "env -i bash -c 'echo x > a; (rm b) & wait'",
        "echo x > /proc/self/cwd/a; echo y > /dev/fd/../fd/../../proc/self/cwd/b",
        "exec 4<>a; printf changed >&4",
        "rm a; exit 3",
        "rm a; kill -9 $$",
        "rm a; exec sleep 0",
    ],
)
def test_what_a_command_changes_is_undone(shell: LiveEnvironment, call: Call, work: Path, command: str) -> None:
    before = snapshot(work)
    assert shell.coverage == ("full", "")
    result = call(1, command)
    assert result.changed
    assert snapshot(work) != before
    undo(shell, 1, 2)
    assert snapshot(work) == before


def test_a_git_checkout_is_undone(shell: LiveEnvironment, call: Call, work: Path) -> None:
    git = "git -c user.name=a -c user.email=b -c gc.auto=0"
    call(0, f"git init -q .; {git} add -A; {git} commit -qm 1; git rm -qr dir; echo 2 > a; {git} commit -qam 2")
    before = snapshot(work)
    assert call(1, "git checkout -q HEAD~1").exit_code == 0
    assert (work / "dir" / "x").exists()
    undo(shell, 1, 2)
    assert snapshot(work) == before


def test_a_command_that_changes_nothing_leaves_no_trace(call: Call, home: Path, tmp_path: Path) -> None:
    assert not call(1, "cat a; ls dir; true > /dev/null; echo x >&2; cat <<< here").changed
    assert list(home.rglob("*.log")) + list((tmp_path / "far").rglob("*.log")) == []


def test_what_runs_for_no_call_is_not_written_down(call: Call, work: Path, home: Path) -> None:
    assert not call(0, "echo x > a").changed
    assert (work / "a").read_text() == "x\n"
    assert list(home.rglob("*.log")) == []


def test_what_a_process_does_after_its_call_belongs_to_that_call(
    shell: LiveEnvironment, call: Call, work: Path
) -> None:
    before = snapshot(work)
    call(1, "(while [ ! -e go ]; do sleep 0.01; done; echo late > late; rm b) >/dev/null 2>&1 &")
    call(2, "echo mine > mine; touch go; while [ -e b ]; do sleep 0.01; done")
    described = shell.call_effects("describe", call=1)
    assert [one["path"] for one in described["created"]] == [str(work / "late")]
    assert [one["path"] for one in described["lost"]] == [str(work / "b")]
    undo(shell, 2, 3)
    undo(shell, 1, 4)
    now = snapshot(work)
    # Both changed the folder at the same time: its own time is that of the one or the other.
    assert {path: now[path] for path in now if path != str(work)} == {p: before[p] for p in before if p != str(work)}


_THREAD = """import os, threading, time
def run():
    while not os.path.exists('go'): time.sleep(0.01)
    os.mkdir('late')
threading.Thread(target=run).start()"""


def test_what_a_thread_does_after_its_call_belongs_to_that_call(shell: LiveEnvironment, call: Call) -> None:
    call(1, f'{sys.executable} -c "{_THREAD}" &')
    call(2, "touch go; until test -e late; do sleep 0.01; done")
    assert _created(shell, 1) == ["late"]
    assert _created(shell, 2) == ["go"]


def test_what_a_call_has_left_is_known_to_the_watcher_before_the_next_call_begins(tmp_path: Path, home: Path) -> None:
    with LocalEnvironment(str(tmp_path)) as shell:
        assert isinstance(shell._link, DirectLink)
        watcher = shell._link._fork_server._process.pid
        shell.execute("sleep 1000 &", call=1, timeout=PATIENCE_SECONDS)
        os.kill(watcher, signal.SIGSTOP)
        timer = threading.Timer(0.5, os.kill, (watcher, signal.SIGCONT))
        timer.start()
        shell._link.shell.connection.ask_left(1, 1)
        found = proc.stat_of(watcher)
        timer.join()
        assert found is not None
        assert found.state != b"T", "it was not waited for"


def _created(shell: LiveEnvironment, number: int) -> list[str]:
    return [os.path.basename(one["path"]) for one in shell.call_effects("describe", call=number)["created"]]


@pytest.mark.parametrize("pty", [False, True])
def test_what_a_background_process_changes_is_undone(shell: LiveEnvironment, work: Path, pty: bool) -> None:
    before = snapshot(work)
    start = shell.open_pty if pty else shell.background
    process = start("rm -rf dir; echo x > a", call=7)
    assert process.wait(PATIENCE_SECONDS).state is ProcessState.ENDED
    wait_until(lambda: shell.call_effects("describe", call=7)["ended"] is not None)
    undo(shell, 7, 8)
    assert snapshot(work) == before


def test_a_command_cannot_reach_the_journal(shell: LiveEnvironment, call: Call, home: Path, tmp_path: Path) -> None:
    call(1, "rm b")
    (log,) = [*home.rglob("*.log"), *(tmp_path / "far").rglob("*.log")]
    content = log.read_bytes()
    call(2, f"echo x > {log}; rm -rf {log.parent}; chmod 0 {log.parent}; ln {log} taken; mv {log.parent} away")
    assert log.read_bytes().startswith(content)
    undo(shell, 1, 3)


def test_a_command_that_times_out_can_be_undone(shell: LiveEnvironment, call: Call, work: Path) -> None:
    before = snapshot(work)
    assert call(1, "rm -rf dir; sleep 1000", timeout=0.5).timed_out
    assert not (work / "dir").exists()
    undo(shell, 1, 2)
    assert snapshot(work) == before


@pytest.mark.parametrize("shell", ["framed"], indirect=True)
def test_what_file_tools_change_elsewhere_is_undone(shell: LiveEnvironment, work: Path) -> None:
    before = snapshot(work)
    files = shell.files
    files.write("a", b"other", call=1)
    files.write("new/folder/file", b"new", call=2)
    files.remove("b", call=3)
    for number in (3, 2, 1):
        undo(shell, number, number + 10)
    assert snapshot(work) == before


def test_effects_can_be_switched_off(tmp_path: Path, home: Path) -> None:
    made = LocalEnvironment(str(tmp_path))
    made.effects = None
    with made:
        assert made.coverage == ("none", "effects are switched off")
        assert not made.execute("echo x > f", call=1).changed


def test_a_shell_whose_watcher_was_killed_is_lost_and_what_it_did_is_rolled_back(
    shell: LiveEnvironment, work: Path
) -> None:
    before = snapshot(work)

    def kill_watcher(_: bytes) -> None:
        watchers = [pid for pid in below() if _is_watcher(pid)]
        proc.signal_each(watchers, signal.SIGKILL)

    told = "unknown" if shell.name == "framed" else "interrupted after 4 of its changes, which were rolled back"
    with pytest.raises(EnvironmentLost, match=told):
        shell.execute("rm -rf dir; echo gone; sleep 1; echo x > a; echo done", call=1, on_output=kill_watcher)
    assert shell.execute("echo works", call=2).exit_code == 0
    shell.call_effects("recover")
    assert snapshot(work) == before


def _is_watcher(pid: int) -> bool:
    """It is above a fork server, and has its name."""
    name, *children = (proc.command_line(process) for process in (pid, *proc.children(pid)))
    return name == "handrail-fork" and name in children


_CLIENT = """
import sys
from handrail.environments.local_environment import LocalEnvironment
shell = LocalEnvironment(sys.argv[1])
shell.start()
print("begun", flush=True)
command = "rm -rf dir; echo x > a; echo here; sleep 1000"
shell.execute(command, call=1, on_output=lambda _: print("done", flush=True))
"""


@pytest.mark.parametrize("on_crash", ["undo", "keep"])
def test_a_call_that_a_killed_runtime_did_not_end_is_rolled_back_or_kept(work: Path, home: Path, on_crash: str) -> None:
    make_tree(work)
    before = snapshot(work)
    with subprocess.Popen([sys.executable, "-c", _CLIENT, str(work)], stdout=subprocess.PIPE) as client:
        assert client.stdout is not None
        assert [client.stdout.readline() for _ in range(2)] == [b"begun\n", b"done\n"]
        below = list(proc.tree(client.pid))
        client.kill()
    wait_until(lambda: not any(is_running(pid) for pid in below))
    changed = snapshot(work)
    assert changed != before
    journal = str(home / "state" / "journal")
    (found,) = recover(journal, on_crash)
    assert (found["call"], found["failed"]) == (1, [])
    assert found["outcome"] == ("rolled back" if on_crash == "undo" else "kept")
    assert snapshot(work) == (before if on_crash == "undo" else changed)
    assert recover(journal, on_crash) == []
    read = Journal(journal)
    read.refresh()
    assert read.end(1) is not None


def test_the_journal_that_cannot_be_written_stops_changes(tmp_path: Path, home: Path) -> None:
    shutil.rmtree(home, ignore_errors=True)
    with LocalEnvironment(str(tmp_path), protection=None) as shell:
        assert shell.execute("echo x > f", call=1).changed
        (home / "state" / "journal").rename(home / "state" / "gone")
        (home / "state" / "journal").write_text("in the way")
    with LocalEnvironment(str(tmp_path), protection=None) as shell:
        result = shell.execute("echo y > f", call=2)
        assert result.exit_code == 1, text(result)
    assert (tmp_path / "f").read_text() == "x\n"


def test_a_journal_that_somebody_has_rewritten_is_reported_and_not_undone(
    shell: LiveEnvironment, call: Call, work: Path, home: Path, tmp_path: Path
) -> None:
    call(1, "echo x > a")
    digest = shell.call_effects("describe", call=1)["digest"]
    (path,) = [*home.rglob("1-*.log"), *(tmp_path / "far").rglob("1-*.log")]
    journal = Journal(str(path.parent))
    journal.refresh()
    forged = [log.encode(each.call, each.kind, str(work / "b"), "", each.meta, b"", b"") for each in journal.entries(1)]
    end = log.encode(1, log.END, "", meta=log.Meta(mtime=journal.end(1) or 0))
    path.write_bytes(b"".join([*forged, end]))
    before = snapshot(work)
    answer = shell.call_effects("undo", call=1, number=2, digest=digest)
    assert answer["status"] == "refused"
    assert "damaged" in answer["reason"]
    assert snapshot(work) == before


def test_a_journal_elsewhere_is_pruned_when_a_connection_opens(tmp_path: Path, home: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    (work / "a").write_text("one")
    for number, status in ((1, "possible"), (2, "refused")):
        shell = FramedEnvironment(str(work), str(tmp_path / "jobs"))
        shell.effects = {"keep_days": 7.0 if number == 1 else 0.0, "keep_bytes": 1 << 30}
        try:
            if number == 1:
                shell.execute("echo two > a", call=1)
            else:
                shell.execute("true")
            answer = shell.call_effects("undo", call=1, number=5, dry_run=True)
            assert answer["status"] == status, answer
        finally:
            shell.close()
        for clock in (tmp_path / "far").rglob("clock.json"):
            clock.unlink()  # as if an hour had passed


@pytest.mark.parametrize(
    "before", ["", "set -eu -o posix; set -C", "set -o noglob; kill() { false; }; alias kill=false"]
)
def test_a_call_that_has_left_nothing_is_complete_when_its_command_is(
    before: str, tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with LocalEnvironment(str(tmp_path)) as shell:
        shell.execute(before or "true", timeout=PATIENCE_SECONDS)
        with monkeypatch.context() as patch:
            patch.setattr(Connection, "end_call", lambda *_: pytest.fail("the watcher was asked"))
            done = shell.execute("echo x > new; mv new newer; mkdir d", call=1, timeout=PATIENCE_SECONDS)
        assert done.changed
        told = shell.call_effects("describe", call=1)
        assert told["ended"] is not None
        assert [one["path"] for one in told["created"]] == [str(tmp_path / "d"), str(tmp_path / "newer")]
        # A further command of the same call: the end of the first does not count for it.
        assert shell.execute("rm newer", call=1, timeout=PATIENCE_SECONDS).changed
        assert [one["path"] for one in shell.call_effects("describe", call=1)["created"]] == [str(tmp_path / "d")]


def test_a_command_cannot_say_that_another_call_runs(tmp_path: Path, home: Path) -> None:
    script = "for page in $(find /proc/$PPID/fd -lname '*handrail-call*'); do head -c 32 /dev/zero 1<>$page; done; echo x > new"
    with LocalEnvironment(str(tmp_path)) as shell:
        done = shell.execute(script, call=7, timeout=PATIENCE_SECONDS)
        assert "Permission denied" in text(done)
        assert [one["path"] for one in shell.call_effects("describe", call=7)["created"]] == [str(tmp_path / "new")]


def test_a_journal_names_the_process_that_ends_all_who_change_something(tmp_path: Path, home: Path) -> None:
    with LocalEnvironment(str(tmp_path)) as shell:
        for number, command in enumerate(
            ("echo x > new", "exit", "rm new"), 1
        ):  # the second has another bash run the third
            shell.execute(command, call=number, timeout=PATIENCE_SECONDS)
        (mark,) = (home / "state" / "journal").glob("*.open")
        _, maker = mark.read_text().split()
        assert proc.command_line(int(maker.partition(".")[0])) == "handrail-shell"
        assert log.is_any_alive(mark.read_bytes())


# io_uring, a handle in place of a name, the table of x32, and a system call that is newer than the filter
_UNSEEN = """import ctypes, errno
libc = ctypes.CDLL(None, use_errno=True)
for call in ((425, 1, 0), (426, 0, 0, 0, 0, 0), ({handle}, -100, 0, 0), (0x40000000 | 83, b"new", 0o755), (469, -100, b"a", 0)):
    print(libc.syscall(*call), errno.errorcode[ctypes.get_errno()])
"""
_OTHER = """import ctypes, errno, os
libc, pid, room = ctypes.CDLL(None, use_errno=True), int(open("pid").read()), ctypes.create_string_buffer(64)
def memory(): return os.open(f"/proc/{pid}/mem", os.O_RDWR)
def attach(): return libc.ptrace(16, pid, 0, 0)
def seize(): return libc.ptrace(0x4206, pid, 0, 0)
def write(): return libc.process_vm_writev(pid, room, 1, room, 1, 0)
def descriptor(): return libc.syscall(438, os.pidfd_open(pid), 0, 0)
for way in (memory, attach, seize, write, descriptor):
    try: print(way() >= 0 or errno.errorcode[ctypes.get_errno()])
    except OSError as error: print(errno.errorcode[error.errno])
"""


def test_system_calls_that_change_files_unseen_do_not_exist(work: Path, call: Call) -> None:
    handle = {"x86_64": 304, "aarch64": 265}[os.uname().machine]
    (work / "unseen.py").write_text(_UNSEEN.format(handle=handle))
    assert text(call(1, f"{sys.executable} -S unseen.py")).split() == ["-1", "ENOSYS"] * 5
    assert not (work / "new").exists()


def test_a_command_cannot_act_through_a_process_of_an_earlier_call(work: Path, call: Call) -> None:
    (work / "other.py").write_text(_OTHER)
    call(1, "sleep 100 & echo $! > pid")
    assert text(call(2, f"{sys.executable} -S other.py; kill $(cat pid)")).split() == ["EPERM"] * 5
