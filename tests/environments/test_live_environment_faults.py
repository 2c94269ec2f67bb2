"""What goes wrong around a shell: disks that are full, processes that cannot be started, signals from elsewhere."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from handrail.environments.base import ProcessState, RestartReason
from handrail.environments.errors import EnvironmentStartError
from handrail.environments.live_environment import LiveEnvironment
from handrail.environments.local_environment import LocalEnvironment
from handrail.environments.shell_host import proc

from ..services.small_disk import small_disk
from ..support import wait_until
from .conftest import PATIENCE_SECONDS, FramedEnvironment, Run, host_pid, is_running, naps, text

DISK_BYTES = 1 << 20


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A folder of one megabyte."""
    with small_disk(tmp_path, str(DISK_BYTES)) as made:
        yield made


@pytest.fixture(params=["local", "framed"])
def on_small_disk(request: pytest.FixtureRequest, disk: Path, work: Path) -> Iterator[LiveEnvironment]:
    made: LiveEnvironment
    if request.param == "local":
        made = LocalEnvironment(str(work), processes_dir=str(disk))
    else:
        made = FramedEnvironment(str(work), str(disk))
    with made:
        yield made


def test_a_full_disk_holds_up_no_background_process(on_small_disk: LiveEnvironment, work: Path) -> None:
    os.mkfifo(work / "gate")
    process = on_small_disk.background(f"head -c {4 * DISK_BYTES} /dev/zero; read x <gate; echo last; exit 7")
    wait_until(lambda: process.read().end >= DISK_BYTES // 2)
    (work / "gate").write_bytes(b"\n")
    status = process.wait(PATIENCE_SECONDS)
    assert (status.state, status.exit_code) == (ProcessState.ENDED, 7)
    assert text(on_small_disk.execute("echo works", timeout=PATIENCE_SECONDS)) == "works\n"


def test_a_log_goes_on_when_there_is_room_again(on_small_disk: LiveEnvironment, disk: Path, work: Path) -> None:
    os.mkfifo(work / "first")
    os.mkfifo(work / "second")
    process = on_small_disk.background("read x <first; echo lost; read x <second; echo found; sleep 1000")
    filler = disk / "filler"
    _fill(filler)
    (work / "first").write_bytes(b"\n")
    assert process.read(timeout=0.2).data == b""
    filler.unlink()
    (work / "second").write_bytes(b"\n")
    assert process.read(timeout=PATIENCE_SECONDS).data.endswith(b"found\n")
    process.kill(grace=0.1)


def test_on_a_full_disk_no_background_process_is_half_started(
    on_small_disk: LiveEnvironment, disk: Path, work: Path
) -> None:
    _fill(disk / "filler")
    with pytest.raises(EnvironmentStartError, match="No space left on device"):
        on_small_disk.background("touch ran; sleep 1000")
    assert [path.name for path in disk.iterdir()] == ["filler"]
    assert list(work.iterdir()) == []
    (disk / "filler").unlink()
    assert on_small_disk.background("true").wait(PATIENCE_SECONDS).exit_code == 0


def test_a_background_process_that_cannot_be_forked_costs_nobody_else(anyones: Path) -> None:
    """As root no limit of processes holds, so this shell is somebody else's."""
    from .test_live_environment_limits import _OtherUser

    with _OtherUser(str(anyones), str(anyones / "processes")) as shell:
        before = shell.execute("KEPT=1; ulimit -u; prlimit --pid $PPID --nproc=1:", timeout=PATIENCE_SECONDS)
        assert before.exit_code == 0
        with pytest.raises(EnvironmentStartError, match="could not be started"):
            shell.background("true")
        assert (
            shell.execute(f"prlimit --pid $PPID --nproc={text(before).strip()}:", timeout=PATIENCE_SECONDS).exit_code
            == 0
        )
        result = shell.execute("echo $KEPT", timeout=PATIENCE_SECONDS)
        assert text(result) == "1\n"
        assert result.restarted is None
        assert shell.background("exit 3").wait(PATIENCE_SECONDS).exit_code == 3


def test_a_keeper_killed_between_two_commands_takes_all_with_it_and_is_replaced(
    run: Run, shell: LiveEnvironment, tmp_path: Path
) -> None:
    left = run("sleep 1000 & echo $PPID")
    process = shell.background("sleep 1001")
    lasting = shell.background("sleep 1002", survives=True)
    os.kill(host_pid(int(text(left))), signal.SIGKILL)
    wait_until(lambda: naps() == ["sleep 1002"])
    result = run("echo works")
    assert text(result) == "works\n"
    assert result.restarted is not None
    assert result.restarted.reason is RestartReason.SUPERVISOR
    assert not is_running(process.pid)
    assert [one.id for one in shell.processes()] == [lasting.id]
    lasting.forget()
    assert naps() == []


def test_a_shell_that_is_killed_again_and_again_comes_back_each_time(run: Run) -> None:
    run("KEPT=1; true; exit")
    for _ in range(10):
        pid = int(text(run("echo $$")))
        os.kill(host_pid(pid), signal.SIGKILL)
        wait_until(partial(_has_ended, pid))
        assert text(run("echo $KEPT")) == "1\n"


def test_signals_for_the_runtimes_own_processes_do_no_harm(run: Run) -> None:
    """What `pkill` and a closed terminal send."""
    pid = int(text(run("echo $$")))
    bash = proc.stat_of(host_pid(pid))
    assert bash is not None
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGPIPE):
        os.kill(bash.parent, number)
    assert text(run("echo $$")) == f"{pid}\n"


def _has_ended(pid: int) -> bool:
    return not is_running(pid)


def _fill(path: Path) -> None:
    filled = subprocess.run(["dd", "if=/dev/zero", f"of={path}", "bs=4096"], capture_output=True, check=False)
    assert b"No space left" in filled.stderr
