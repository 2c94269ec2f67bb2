"""Nothing is left behind: not after a close, not after a kill."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from handrail.environments.errors import EnvironmentClosed, EnvironmentLost
from handrail.environments.live_environment import LiveEnvironment
from handrail.environments.local_environment import LocalEnvironment
from handrail.environments.shell_host import proc

from ..support import wait_until
from .conftest import PATIENCE_SECONDS, FramedEnvironment, Run, is_running, naps, text

# Prints the pids of all that runs below it, in the middle of a command with children of every kind.
_CLIENT = """
import os, sys, threading
from handrail.environments.local_environment import LocalEnvironment
from handrail.environments.shell_host import proc
from tests.environments.conftest import FramedEnvironment
kind, work = sys.argv[1:]
processes = work + "/processes"
shell = FramedEnvironment(work, processes) if kind == "framed" else LocalEnvironment(work, processes_dir=processes)
shell.start()
if kind == "forked" and os.fork() == 0:
    threading.Event().wait()  # a child that holds all of its parent's descriptors
shell.execute("sleep 2000 & setsid -f sleep 2001; (trap '' TERM HUP; setsid sleep 2002) >/dev/null 2>&1 &")
shell.background("sleep 2003")
shell.open_pty("trap '' HUP; sleep 2004")
def tell(_):
    print(*[pid for pid in proc.tree(os.getpid())], flush=True)
shell.execute("echo begun; sleep 2005", on_output=tell)
"""


@pytest.mark.parametrize("kind", ["local", "framed", "forked"])
def test_a_killed_runtime_leaves_nothing_running(work: Path, kind: str) -> None:
    client, pids = _start_client(work, kind)
    forked = [pid for pid in pids if "handrail" not in _name(pid) and _is_python(pid) and kind == "forked"]
    assert len(pids) > 8
    os.kill(client.pid, signal.SIGKILL)
    client.wait()
    wait_until(lambda: not any(is_running(pid) for pid in set(pids) - set(forked)))
    wait_until(lambda: list((work / "processes").iterdir()) == [])
    proc.signal_each(forked, signal.SIGKILL)


def test_a_runtime_that_ends_without_closing_leaves_nothing(work: Path) -> None:
    client, pids = _start_client(work, "local")
    client.send_signal(signal.SIGINT)
    client.wait(PATIENCE_SECONDS)
    wait_until(lambda: not any(map(is_running, pids)))


def test_a_killed_guard_is_replaced_and_nothing_outlives_the_environment(work: Path) -> None:
    code = """
import os, signal, sys
from handrail.environments.errors import EnvironmentLost
from handrail.environments.local_environment import LocalEnvironment
from handrail.environments.shell_host import proc
with LocalEnvironment(sys.argv[1]) as first:
    first.execute("KEPT=1")
    first.execute("sleep 1000 & echo $! >pid")
    # All that runs in a process namespace ends with its first process.
    os.kill(proc.children(proc.children(os.getpid())[0])[0], signal.SIGKILL)
    try:
        first.execute("echo lost", timeout=60)
    except EnvironmentLost as error:
        assert "next command starts it again" in str(error)
    assert first.execute("echo works", timeout=60).output.head == b"works\\n"
"""
    subprocess.run([sys.executable, "-c", code, str(work)], check=True, timeout=300)
    assert "sleep 1000" not in naps()


def test_closing_ends_all_and_twice_is_the_same_as_once(shell: LiveEnvironment, run: Run) -> None:
    pids = [int(pid) for pid in text(run("sleep 1000 & setsid -f sleep 1001 >/dev/null 2>&1; echo $$ $PPID")).split()]
    wait_until(lambda: naps() == ["sleep 1000", "sleep 1001"])
    shell.close()
    shell.close()
    assert naps() == []
    wait_until(lambda: not any(map(is_running, pids)))
    with pytest.raises(EnvironmentClosed, match="open a new one"):
        shell.execute("true")


def test_closing_in_the_middle_of_a_command_ends_it(shell: LiveEnvironment) -> None:
    began = threading.Event()
    outcome: list[object] = []

    def work() -> None:
        try:
            outcome.append(shell.execute("echo begun; sleep 1000", on_output=lambda _: began.set()))
        except (EnvironmentLost, EnvironmentClosed) as error:
            outcome.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    assert began.wait(PATIENCE_SECONDS)
    shell.close()
    thread.join(PATIENCE_SECONDS)
    assert len(outcome) == 1
    assert naps() == []


def test_a_forked_child_gets_a_shell_of_its_own_and_leaves_the_parents_alone(
    local: LocalEnvironment, work: Path
) -> None:
    own = text(local.execute("KEPT=1; readlink /proc/self/ns/pid; echo $$", timeout=PATIENCE_SECONDS))
    child = os.fork()
    if child == 0:
        code = 1
        try:
            result = local.execute(
                "(readlink /proc/self/ns/pid; echo $$) >childs; echo ${KEPT-none}", timeout=PATIENCE_SECONDS
            )
            local.close()
            code = 0 if result.output.head == b"none\n" else 2
        finally:
            os._exit(code)
    assert os.waitpid(child, 0)[1] == 0
    assert (
        text(local.execute("readlink /proc/self/ns/pid; echo $$; echo $KEPT", timeout=PATIENCE_SECONDS)) == f"{own}1\n"
    )
    assert (work / "childs").read_text() != own


def test_a_stopped_keeper_is_killed_in_the_end(run: Run) -> None:
    result = run("kill -STOP $PPID; sleep 1000", timeout=0.3)
    assert result.timed_out
    assert naps() == []
    assert text(run("echo works")) == "works\n"


def test_an_environment_never_started_has_nothing_to_close(work: Path) -> None:
    LocalEnvironment(str(work)).close()


def test_opening_and_closing_many_costs_no_descriptor(work: Path) -> None:
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(10):
        with LocalEnvironment(str(work)) as local:
            assert text(local.execute("echo hi; exit", timeout=PATIENCE_SECONDS)) == "hi\n"
            local.execute("echo hi &", timeout=PATIENCE_SECONDS)
    assert len(os.listdir("/proc/self/fd")) <= before


def test_an_idle_environment_holds_few_descriptors_and_no_thread(work: Path) -> None:
    threads, before = threading.active_count(), len(os.listdir("/proc/self/fd"))
    environments = [LocalEnvironment(str(work)) for _ in range(10)]
    before, threads = before + 1, threads + 1  # to the fork server, which may ask something
    for environment in environments:
        environment.execute("true", timeout=PATIENCE_SECONDS)
    assert len(os.listdir("/proc/self/fd")) - before <= 4 * len(environments)
    assert threading.active_count() <= threads
    for environment in environments:
        environment.close()


def test_a_lost_connection_is_an_error_and_the_next_command_has_the_state(tmp_path: Path, work: Path) -> None:
    with FramedEnvironment(str(work), str(tmp_path / "processes")) as shell:
        shell.execute("KEPT=1; cd /usr", timeout=PATIENCE_SECONDS)
        _wait_for_state(shell)
        relay = _relay()

        def cut(_: bytes) -> None:
            os.kill(relay, signal.SIGKILL)

        with pytest.raises(EnvironmentLost, match="how far it got is unknown") as caught:
            shell.execute("echo begun; sleep 1000", timeout=PATIENCE_SECONDS, on_output=cut)
        assert caught.value.details["output"] == "begun\n"
        result = shell.execute("echo $KEPT; pwd", timeout=PATIENCE_SECONDS)
        assert text(result) == "1\n/usr\n"
        assert result.restarted is not None
        assert "was lost" in str(result.restarted)


def _start_client(work: Path, kind: str) -> tuple[subprocess.Popen[bytes], list[int]]:
    client = subprocess.Popen([sys.executable, "-c", _CLIENT, kind, str(work)], stdout=subprocess.PIPE)
    assert client.stdout is not None
    pids = [int(pid) for pid in client.stdout.readline().split()]
    client.stdout.close()
    return client, pids


def _wait_for_state(shell: FramedEnvironment) -> None:
    """It is sent when the shell is idle, and read with the next answer."""

    def has_come() -> bool:
        shell.left_running()
        return shell._link is not None and shell._link.state is not None

    wait_until(has_come)


def _relay() -> int:
    (relay,) = [pid for pid in proc.tree(os.getpid()) if _name(pid) == "handrail-relay"]
    return relay


def _name(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""


def _is_python(pid: int) -> bool:
    return "python" in _name(pid)
