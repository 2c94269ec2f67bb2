"""What holds for every kind of container: walls, limits, mounts, and that nothing is left of it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from handrail.environments.base import RestartReason, ShellState
from handrail.environments.errors import EnvironmentLost, EnvironmentStartError
from handrail.environments.live_environment import LiveEnvironment
from handrail.types import CancelToken

from ..support import takes_less_than, wait_until
from .conftest import PATIENCE_SECONDS, text
from .container_kinds import CLASSES, Kind, name_of, without

QUICK = {"leave_after": 5}
# What differs between Docker and Podman is the engine: our code is the same.
pytestmark = pytest.mark.by_turns("service", ("docker", "podman"))


@pytest.fixture(scope="module", params=["docker", "podman", "apptainer"])
def service(request: pytest.FixtureRequest) -> Kind:
    service = request.getfixturevalue(f"{request.param}_service")
    return Kind(request.param, service.image, service.env, service)


@pytest.fixture
def kind(service: Kind, monkeypatch: pytest.MonkeyPatch) -> Iterator[Kind]:
    for name, value in service.env.items():
        monkeypatch.setenv(name, value)
    yield service
    wait_until(lambda: service.left() == [], otherwise=lambda: f"left behind: {service.left()}")


def run(shell: LiveEnvironment, command: str, timeout: float = PATIENCE_SECONDS) -> str:
    return text(shell.execute(command, timeout=timeout))


def test_a_shell_keeps_its_state_and_its_files_and_nothing_is_left(kind: Kind) -> None:
    with kind.make() as shell:
        run(shell, "cd /usr; X=1; f() { echo f$X; }; echo kept >/root/file")
        assert run(shell, "f; pwd; cat /root/file") == "f1\n/usr\nkept\n"
        name = name_of(shell)
        assert kind.is_running(name)
    assert not kind.is_there(name)


def test_nothing_of_this_machine_is_seen_inside(kind: Kind, work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP_TOKEN", "hidden")
    monkeypatch.setenv("HANDRAIL_SEEN", "hidden")
    with kind.make(env={"GIVEN": "a b"}) as shell:
        assert run(shell, f"ls {work} 2>&1 | grep -c 'No such file'") == "1\n"
        assert run(shell, "ls -A /tmp") == ""
        assert run(shell, "cat /proc/*/environ | grep -c hidden") == "0\n"
        assert run(shell, 'echo "$GIVEN"') == "a b\n"


def test_only_waiting_and_the_shell_run_inside(kind: Kind) -> None:
    with kind.make() as shell:
        ours = ["handrail-fork", "handrail-shell", "handrail-relay", "handrail-wait"]
        found = {words.split()[0] for words in kind.programs(name_of(shell))}
        assert found - {"appinit"} == {*ours, "bash"}


def test_the_shell_begins_where_it_is_told_to_and_the_folder_is_made(kind: Kind) -> None:
    with kind.make(cwd="/made/for a'task") as shell:
        assert shell.cwd == "/made/for a'task"
        assert run(shell, "pwd; touch x; ls") == "/made/for a'task\nx\n"


def test_a_folder_that_cannot_be_made_is_said(kind: Kind) -> None:
    with pytest.raises(EnvironmentStartError, match=r"mkdir: cannot create.*/proc/nowhere"):
        kind.make(cwd="/proc/nowhere").start()


def test_memory_is_limited(kind: Kind, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with kind.make(memory="128m") as shell:
        assert shell.execute("python3 -c 'bytearray(512 << 20)'", timeout=PATIENCE_SECONDS).exit_code == 137
        assert run(shell, "echo lives") == "lives\n"
    assert list(tmp_path.iterdir()) == []


_FORK = """
import os, time
count = 0
try:
    while count < 500:
        if os.fork() == 0:
            time.sleep(90)
            os._exit(0)
        count += 1
except OSError:
    pass
print(count, flush=True)
"""


def test_a_fork_bomb_is_held_by_the_limit_of_processes_and_nothing_of_it_is_left(kind: Kind) -> None:
    with kind.make(pids=64) as shell:
        cancel = CancelToken()
        command = f"python3 -c {_quoted(_FORK)}; sleep 1000"
        result = shell.execute(command, timeout=PATIENCE_SECONDS, cancel=cancel, on_output=lambda _: cancel.cancel())
        assert 20 < int(text(result).split()[0]) < 64  # without it the next line would hurt the machine
        result = shell.execute("f() { f | f & }; f; sleep 1000", timeout=2)
        assert result.timed_out
        assert run(shell, "echo lives") == "lives\n"
        wait_until(lambda: run(shell, "ps -eo comm=").split().count("bash") == 1)


def test_a_mount_can_be_written_to_unless_it_is_read_only(kind: Kind, tmp_path: Path) -> None:
    open_one, closed = tmp_path / 'open, "one"', tmp_path / "closed"
    for folder in (open_one, closed):
        folder.mkdir()
        (folder / "here").write_text("yes")
    mounts = [{"source": str(open_one), "target": "/open"}, f"{closed}:/closed:ro"]
    with kind.make(mounts=mounts) as shell:
        assert run(shell, "cat /open/here /closed/here; echo new >/open/new") == "yesyes"
        assert shell.execute("touch /closed/new", timeout=PATIENCE_SECONDS).exit_code == 1
        assert shell.reaches_host
    assert (open_one / "new").read_text() == "new\n"
    assert not (closed / "new").exists()


def test_without_a_network_there_is_only_loopback(kind: Kind) -> None:
    with kind.make(network="none") as shell:
        assert run(shell, "tail -n +3 /proc/net/dev | cut -d: -f1 | tr -d ' '") == "lo\n"


def test_root_inside_has_no_power_over_the_machine(kind: Kind) -> None:
    with kind.make() as shell:
        assert run(shell, "grep NoNewPrivs /proc/self/status | cut -f2") == "1\n"
        held = int(run(shell, "grep CapEff /proc/self/status | cut -f2"), 16)
        assert held == 0b11111011  # to own, read and end what others have, and to become them
        assert shell.execute("echo x >/proc/sys/kernel/hostname", timeout=PATIENCE_SECONDS).exit_code != 0


def test_a_time_limit_ends_all_that_the_command_started_inside(kind: Kind) -> None:
    with kind.make() as shell:
        command = "sleep 3000 & setsid -f sleep 3001; (trap '' TERM; setsid sleep 3002) & echo begun; sleep 3003"
        with takes_less_than(30):
            result = shell.execute(command, timeout=1)
        assert result.timed_out
        assert text(result).startswith("begun\n")
        assert run(shell, "pgrep -c sleep") == "0\n"


def test_a_command_that_kills_all_it_can_costs_the_shell_but_not_the_files(kind: Kind) -> None:
    with kind.make() as shell:
        run(shell, "echo kept >/root/file")
        name = name_of(shell)
        with pytest.raises(EnvironmentLost, match="how far it got is unknown"):
            run(shell, "kill -9 -1; sleep 1000")
        result = shell.execute("cat /root/file", timeout=PATIENCE_SECONDS)
        assert text(result) == "kept\n"
        assert result.restarted is not None
        assert result.restarted.reason is RestartReason.LOST
        assert name_of(shell) == name


def test_one_that_is_removed_in_the_middle_of_a_command_is_replaced_and_the_loss_of_files_is_said(kind: Kind) -> None:
    with kind.make() as shell:
        run(shell, "cd /usr; X=1; echo lost >/root/file")
        first = name_of(shell)

        def remove(_: bytes) -> None:
            kind.remove(first)

        with pytest.raises(EnvironmentLost, match="how far it got is unknown") as caught:
            shell.execute("echo begun; sleep 1000", timeout=PATIENCE_SECONDS, on_output=remove)
        assert caught.value.details["output"] == "begun\n"
        result = shell.execute('ls /root; echo "$X"', timeout=PATIENCE_SECONDS)
        assert text(result) == "\n"
        assert result.restarted is not None
        assert result.restarted == (RestartReason.LOST, ShellState.EMPTY)
        assert "files are gone" in str(result.restarted)
        assert name_of(shell) != first
        assert shell.execute("true", timeout=PATIENCE_SECONDS).restarted is None


def test_a_persistent_one_is_stopped_and_found_again_with_its_files(kind: Kind) -> None:
    with kind.make("lasting", persistent=True) as shell:
        run(shell, "echo kept >/file; echo kept >~/file")
        name = name_of(shell)
    assert not kind.is_running(name)
    try:
        with kind.make("lasting", persistent=True) as shell:
            assert name_of(shell) == name
            result = shell.execute("cat /file ~/file", timeout=PATIENCE_SECONDS)
            assert text(result) == "kept\nkept\n"
            assert result.restarted is None
        with kind.make("another", persistent=True) as shell:
            assert name_of(shell) != name
            assert shell.execute("cat /file", timeout=PATIENCE_SECONDS).exit_code == 1
            another = name_of(shell)
    finally:
        _forget(kind, name)
    _forget(kind, another)


def test_what_was_started_to_live_on_outlasts_the_environment_and_is_found_again(kind: Kind) -> None:
    with kind.make("lasting", persistent=True, **QUICK) as shell:
        process = shell.background("echo begun; read x; echo got $x", survives=True)
        name = name_of(shell)
    assert kind.is_running(name)
    try:
        with kind.make("lasting", persistent=True, **QUICK) as shell:
            (found,) = shell.processes()
            assert found.id == process.id
            found.write(b"news\n")
            assert found.wait(PATIENCE_SECONDS).exit_code == 0
            assert found.read().data == b"begun\ngot news\n"
            found.forget()
        wait_until(lambda: not kind.is_running(name))
    finally:
        _forget(kind, name)


def test_two_at_once_share_a_persistent_one_and_the_last_stops_it(kind: Kind) -> None:
    with kind.make("lasting", persistent=True) as first:
        name = name_of(first)
        with kind.make("lasting", persistent=True) as second:
            assert name_of(second) == name
            run(second, "echo from the second >/file")
        assert run(first, "cat /file") == "from the second\n"
    wait_until(lambda: not kind.is_running(name))
    _forget(kind, name)


def test_one_with_other_settings_is_not_taken_for_the_same(kind: Kind) -> None:
    with kind.make("lasting", persistent=True, network="none") as first:
        other = kind.make("lasting", persistent=True, network="none", memory="256m")
        with pytest.raises(EnvironmentStartError, match="other settings"):
            other.start()
        other.close()
        assert run(first, "echo lives") == "lives\n"
        name = name_of(first)
    _forget(kind, name)


def test_a_forked_child_has_a_container_of_its_own_and_leaves_the_parents_alone(kind: Kind) -> None:
    with kind.make() as shell:
        run(shell, "echo mine >/root/file")
        child = os.fork()
        if child == 0:
            code = 1
            try:
                code = 0 if run(shell, "cat /root/file 2>&1").endswith("No such file or directory\n") else 2
                shell.close()
            finally:
                os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert run(shell, "cat /root/file") == "mine\n"


def test_large_files_are_copied_both_ways(kind: Kind, tmp_path: Path) -> None:
    content = os.urandom((6 << 20) + 7)
    (tmp_path / "there").write_bytes(content)
    (tmp_path / "there").chmod(0o750)
    with kind.make() as shell:
        shell.upload(str(tmp_path / "there"), "copy")
        assert run(shell, "stat -c '%a %s' copy") == f"750 {len(content)}\n"
        shell.download("copy", str(tmp_path / "back"))
    assert (tmp_path / "back").read_bytes() == content


@pytest.mark.parametrize("program", ["python", "bash"])
def test_an_image_without_what_a_shell_needs_says_what_is_missing_and_what_to_do(
    kind: Kind, program: str, tmp_path: Path
) -> None:
    image = without(kind, program, str(tmp_path))
    shell = kind.make(image=image)
    with pytest.raises(EnvironmentStartError, match=f"{program}.*choose an image that has them") as caught:
        shell.start()
    assert "not found" in str(caught.value) or "there is no python3" in str(caught.value)
    shell.close()
    if kind.name != "apptainer":
        kind.service.run("rmi", image)


def test_an_engine_that_is_missing_is_said_with_the_cure(kind: Kind, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setenv("PATH", "/proc/nowhere")
        verdict = CLASSES[kind.name].check({})
        assert verdict is not None
        assert "not installed" in verdict.reason
        assert "install" in verdict.fix
        with pytest.raises(EnvironmentStartError, match="not installed"):
            kind.make().start()
        assert CLASSES[kind.name].prune() == []


def test_an_engine_that_works_passes_the_check(kind: Kind) -> None:
    assert CLASSES[kind.name].check({}) is None


def _quoted(text: str) -> str:
    return "'" + text + "'"


def _forget(kind: Kind, name: str) -> None:
    wait_until(lambda: not kind.is_running(name))
    if kind.name != "apptainer":
        kind.remove(name)
