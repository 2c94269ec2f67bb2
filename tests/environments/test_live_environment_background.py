"""Background processes: state, log, input, end, and a life beyond the runtime."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from handrail.environments.base import ProcessState
from handrail.environments.errors import EnvironmentStartError, InputRefused, NoSuchDirectory, NoSuchProcess
from handrail.environments.live_environment import LiveEnvironment
from handrail.environments.local_environment import LocalEnvironment
from handrail.environments.shell_host import jobs, proc
from handrail.environments.shell_host.jobs import LogWriter, read_log

from ..support import takes_less_than, wait_until
from .conftest import PATIENCE_SECONDS, Run, host_pid, is_running, text

_CLIENT = """
import sys
from handrail.environments.local_environment import LocalEnvironment
local = LocalEnvironment(sys.argv[1], processes_dir=sys.argv[2])
process = local.background("echo begun; while :; do sleep .05; echo tick; done", survives=sys.argv[3] == "survives")
process.read(timeout=60)
print(process.id, process.pid, flush=True)
sys.stdin.read()
"""


def test_it_begins_with_a_copy_of_the_shells_state(run: Run, shell: LiveEnvironment) -> None:
    run("cd /usr; f() { echo F $1; }; alias ll='echo LL'; plain=1; export EXPORTED=2; set -f")
    process = shell.background("pwd; f 3; ll; echo $plain $EXPORTED; echo *; plain=9")
    assert process.wait(PATIENCE_SECONDS).exit_code == 0
    assert process.read().data == b"/usr\nF 3\nLL\n1 2\n*\n"
    assert text(run("echo $plain")) == "1\n"


def test_its_directory_and_variables_can_be_given(shell: LiveEnvironment) -> None:
    process = shell.background('pwd; echo "$A"', cwd="/usr", env={"A": "x'y\nz"})
    process.wait(PATIENCE_SECONDS)
    assert process.read().data == b"/usr\nx'y\nz\n"


def test_its_directory_may_be_relative_or_in_the_home(run: Run, shell: LiveEnvironment, work: Path) -> None:
    (work / "below").mkdir()
    run("cd below")
    process = shell.background("pwd", cwd="..")
    process.wait(PATIENCE_SECONDS)
    assert os.path.realpath(process.read().data.decode().strip()) == str(work)
    process = shell.background("pwd", cwd="~")
    assert process.wait(PATIENCE_SECONDS).exit_code == 0


def test_a_directory_that_is_not_there_is_an_error_and_nothing_starts(shell: LiveEnvironment, tmp_path: Path) -> None:
    with pytest.raises(NoSuchDirectory, match="nothing was started"):
        shell.background("true", cwd="/proc/nowhere")
    assert shell.processes() == []
    assert list((tmp_path / "processes").iterdir()) == []


def test_its_exit_code_is_known(shell: LiveEnvironment) -> None:
    process = shell.background("echo out; echo err >&2; exit 7")
    status = process.wait(PATIENCE_SECONDS)
    assert (status.state, status.exit_code) == (ProcessState.ENDED, 7)
    assert process.read().data == b"out\nerr\n"
    assert shell.background("kill -9 $$").wait(PATIENCE_SECONDS).exit_code == 137


def test_commands_go_on_beside_it(run: Run, shell: LiveEnvironment) -> None:
    process = shell.background("sleep 1000")
    assert text(run("echo beside")) == "beside\n"
    assert run("sleep 1001", timeout=0.2).timed_out
    assert process.poll().state is ProcessState.RUNNING
    assert run("true").left_running == ()


def test_it_starts_while_a_command_runs(shell: LiveEnvironment, work: Path) -> None:
    import threading

    os.mkfifo(work / "gate")
    os.mkfifo(work / "begun")
    command = threading.Thread(target=shell.execute, args=("echo >begun; read x <gate",))
    command.start()
    (work / "begun").read_bytes()
    process = shell.background("echo beside")
    assert process.wait(PATIENCE_SECONDS).exit_code == 0
    assert process.read().data == b"beside\n"
    (work / "gate").write_bytes(b"")
    command.join(PATIENCE_SECONDS)


def test_it_reads_what_it_is_given(shell: LiveEnvironment) -> None:
    process = shell.background("read a; echo got $a; cat; echo end")
    process.write(b"one\n")
    assert process.read(timeout=PATIENCE_SECONDS).data == b"got one\n"
    process.write(b"two\n")
    process.close_stdin()
    assert process.wait(PATIENCE_SECONDS).exit_code == 0
    assert process.read().data == b"got one\ntwo\nend\n"
    with pytest.raises(InputRefused):
        process.write(b"too late")


def test_input_that_nobody_reads_is_refused_at_last(shell: LiveEnvironment) -> None:
    process = shell.background("sleep 1000")

    def write_on() -> None:
        for _ in range(64):
            process.write(b"x" * 50_000)

    with pytest.raises(InputRefused):
        write_on()


def test_killing_it_ends_all_that_it_started(shell: LiveEnvironment) -> None:
    process = shell.background("(setsid bash -c 'trap \"\" TERM; echo $$; sleep 1000' &) ; sleep 1001")
    wait_until(lambda: process.read().data.strip())
    inner = int(process.read().data)
    assert process.kill(grace=0.1).state is ProcessState.ENDED
    wait_until(lambda: not is_running(inner))
    assert not is_running(process.pid)


def test_it_may_clean_up_when_it_is_killed(shell: LiveEnvironment, work: Path) -> None:
    process = shell.background("trap 'echo clean >cleaned; exit 3' TERM; echo up; while :; do sleep .01; done")
    process.read(timeout=PATIENCE_SECONDS)
    assert process.kill(grace=PATIENCE_SECONDS).exit_code == 3
    assert (work / "cleaned").exists()


def test_waiting_ends_when_the_time_is_over(shell: LiveEnvironment) -> None:
    process = shell.background("sleep 1000")
    with takes_less_than(30):
        assert process.wait(0.05).state is ProcessState.RUNNING
        assert process.read(timeout=0.05).data == b""


def test_it_is_listed_and_forgotten(shell: LiveEnvironment) -> None:
    process = shell.background("echo x; sleep 1000")
    assert [one.id for one in shell.processes()] == [process.id]
    assert shell.processes()[0].command == "echo x; sleep 1000"
    process.forget()
    assert shell.processes() == []
    assert not is_running(process.pid)
    with pytest.raises(NoSuchProcess):
        process.poll()


def test_it_ends_with_the_environment_and_leaves_no_file(shell: LiveEnvironment, tmp_path: Path) -> None:
    process = shell.background("sleep 1000")
    shell.close()
    assert not is_running(process.pid)
    assert list((tmp_path / "processes").iterdir()) == []


def test_one_that_survives_is_found_by_the_next_environment(tmp_path: Path, work: Path) -> None:
    processes = str(tmp_path / "processes")
    with LocalEnvironment(str(work), processes_dir=processes) as first:
        pid = first.background("echo begun; read x; echo got $x; sleep 1000", survives=True).pid
    assert is_running(pid)
    with LocalEnvironment(str(work), processes_dir=processes) as second:
        (found,) = second.processes()
        assert found.pid == pid
        assert found.survives
        assert found.read(timeout=PATIENCE_SECONDS).data == b"begun\n"
        found.write(b"word\n")
        assert found.read(6, timeout=PATIENCE_SECONDS).data == b"got word\n"
        assert found.kill(grace=PATIENCE_SECONDS).exit_code == 143
        found.forget()
    assert not is_running(pid)


@pytest.mark.parametrize("lives_on", ["survives", "ends"])
def test_a_killed_runtime_leaves_only_what_was_to_survive(tmp_path: Path, work: Path, lives_on: str) -> None:
    processes = tmp_path / "processes"
    client = subprocess.Popen(
        [sys.executable, "-c", _CLIENT, str(work), str(processes), lives_on],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert client.stdout is not None
    assert client.stdin is not None
    identity, pid = client.stdout.readline().split()
    os.kill(client.pid, signal.SIGKILL)
    client.wait()
    client.stdin.close()
    client.stdout.close()
    if lives_on == "ends":
        wait_until(lambda: not is_running(int(pid)))
        wait_until(lambda: not list(processes.iterdir()))
        return
    with LocalEnvironment(str(work), processes_dir=str(processes)) as local:
        (found,) = local.processes()
        assert found.id == identity.decode()
        end = found.read().end
        assert b"tick" in found.read(end, timeout=PATIENCE_SECONDS).data
        found.forget()
    assert not is_running(int(pid))


def test_one_whose_minder_was_killed_is_lost_and_does_not_go_on(shell: LiveEnvironment) -> None:
    process = shell.background("sleep 1000")
    stat = proc.stat_of(host_pid(process.pid))
    assert stat is not None
    os.kill(stat.parent, signal.SIGKILL)
    wait_until(lambda: process.poll().state is ProcessState.LOST)
    shell.close()
    assert not is_running(process.pid)


def test_children_of_one_whose_minder_and_shell_were_killed_are_found_and_ended(shell: LiveEnvironment) -> None:
    process = shell.background("sleep 1000 & sleep 1001 & wait")
    pid = host_pid(process.pid)
    wait_until(lambda: len(proc.children(pid)) == 2)
    left, stat = proc.children(pid), proc.stat_of(pid)
    assert stat is not None
    os.kill(stat.parent, signal.SIGKILL)
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: process.poll().state is ProcessState.LOST)
    process.kill()
    wait_until(lambda: not any((found := proc.stat_of(each)) and found.state not in b"ZX" for each in left))


def test_what_is_left_of_a_runtime_and_its_guard_is_removed_by_the_next(tmp_path: Path, work: Path) -> None:
    processes = tmp_path / "processes"
    folder = processes / "abandoned"
    folder.mkdir(parents=True)
    processes.chmod(0o700)
    (folder / "log.0").write_text("old")
    (folder / "status").write_text(
        '{"survives": false, "code": 0, "boot": "another", "keeper": 1, "keeper_start": 1, "minder": 1, "minder_start": 1}'
    )
    with LocalEnvironment(str(work), processes_dir=str(processes)) as local:
        assert local.processes() == []
    assert not folder.exists()


def test_a_folder_that_others_can_write_to_is_not_used(tmp_path: Path, work: Path) -> None:
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    local = LocalEnvironment(str(work), processes_dir=str(tmp_path / "open"))
    with local, pytest.raises(EnvironmentStartError, match="writable by others"):
        local.background("true")


def test_a_log_keeps_its_latest_part_in_bounded_space(tmp_path: Path) -> None:
    files = jobs.open_log(str(tmp_path))
    log = LogWriter(files, segment_bytes=1000)
    for number in range(1000):
        log.write(b"%09d\n" % number)
    for fd in files:
        os.close(fd)
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) <= 2100
    first = read_log(str(tmp_path), 0, 100)
    assert first.end == 10_000
    assert first.offset >= 8000
    assert first.data == b"".join(b"%09d\n" % (first.offset // 10 + index) for index in range(10))
    assert read_log(str(tmp_path), 9990, 100).data == b"000000999\n"
    assert read_log(str(tmp_path), 10_000, 100).data == b""


def test_a_full_disk_costs_the_log_and_not_the_process(tmp_path: Path) -> None:
    (tmp_path / "log.a").symlink_to("/dev/full")  # which is written first
    files = jobs.open_log(str(tmp_path))
    log = LogWriter(files)
    log.write(b"lost")
    log.write(b"kept")
    for fd in files:
        os.close(fd)
    piece = read_log(str(tmp_path), 0, 100)
    assert (piece.offset, piece.data, piece.end) == (4, b"kept", 8)


def test_a_disk_that_stays_full_does_not_cost_what_was_printed_before(tmp_path: Path) -> None:
    (tmp_path / "log.b").symlink_to("/dev/full")
    files = jobs.open_log(str(tmp_path))
    log = LogWriter(files, segment_bytes=5)
    for word in (b"early", b"later", b"later", b"later"):
        log.write(word)
    for fd in files:
        os.close(fd)
    assert read_log(str(tmp_path), 0, 100).data == b"early"


def test_a_status_that_is_just_being_written_says_what_was_known_before(tmp_path: Path) -> None:
    status = jobs.create_status(str(tmp_path))
    with pytest.raises(FileNotFoundError):
        jobs.read_status(str(tmp_path))
    jobs.write_start(status, {"pid": 7, "code": None})
    before = (tmp_path / "status").read_bytes()
    jobs.write_end(status, 143)
    after = (tmp_path / "status").read_bytes()
    assert len(before) == len(after)
    for cut in range(8192, len(after)):
        (tmp_path / "status").write_bytes(after[:cut] + before[cut:])
        assert jobs.read_status(str(tmp_path))["code"] in (None, 143)
    (tmp_path / "status").write_bytes(after)
    assert jobs.read_status(str(tmp_path))["code"] == 143
    os.close(status)


def test_a_caller_that_says_nothing_holds_up_nobody(shell: LiveEnvironment, tmp_path: Path) -> None:
    process = shell.background("read x; echo got $x; sleep 1000")
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as silent:
        silent.connect(str(tmp_path / "processes" / process.id / "control"))
        process.write(b"word\n")
        with takes_less_than(30):
            assert process.read(timeout=PATIENCE_SECONDS).data == b"got word\n"


def test_output_of_a_log_that_is_larger_than_one_read_comes_in_pieces(shell: LiveEnvironment) -> None:
    process = shell.background("seq 100000")
    process.wait(PATIENCE_SECONDS)
    content, offset = b"", 0
    while piece := process.read(offset, max_bytes=100_000).data:
        content += piece
        offset += len(piece)
    assert content == "".join(f"{number}\n" for number in range(1, 100_001)).encode()
