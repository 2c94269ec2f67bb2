"""Commands in sandboxes of Modal and Daytona: the real SDKs, and doubles of the clouds which run each command in a container."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from handrail.environments.backends.daytona import DaytonaEnvironment
from handrail.environments.backends.modal import ModalEnvironment
from handrail.environments.base import ProcessState, RestartReason
from handrail.environments.cloud import CHECK_SECONDS, OWNER, TASK
from handrail.environments.errors import EnvironmentLost, EnvironmentStartError, LoginRefused
from handrail.environments.shell_host import proc
from handrail.environments.transport.session import Session, keep_alive
from handrail.errors import ConfigError

from ..support import takes_less_than, wait_until
from .cloud_support import Place, run
from .conftest import PATIENCE_SECONDS, text

KINDS = {"modal": ModalEnvironment, "daytona": DaytonaEnvironment}
# Most of it is what both clouds share. What both SDKs do in their own way is tried with both.
pytestmark = pytest.mark.by_turns("place")
with_both = pytest.mark.by_turns()


@pytest.fixture(autouse=True)
def _nothing_is_left() -> Iterator[None]:
    """Of processes; an SDK keeps descriptors for as long as the process lives."""
    processes = set(proc.tree(os.getpid()))
    yield
    wait_until(lambda: set(proc.tree(os.getpid())) <= processes)


@pytest.fixture(params=KINDS)
def place(request: pytest.FixtureRequest) -> Iterator[Place]:
    sdk = request.getfixturevalue(f"{request.param}_sdk")
    place = Place(KINDS[request.param], request.getfixturevalue(f"{request.param}_service"), sdk)
    yield place
    for environment in place.made:
        environment.close()
    left = place.sandboxes()
    if left:
        place.remove(*left)
    assert not left
    assert not place.running()


def test_a_command_runs_in_a_sandbox_which_ends_with_the_environment(place: Place) -> None:
    environment = place.make(env={"GIVEN": "yes"}, cwd="/usr")
    assert run(environment, "cd /; X=1; echo $GIVEN $MARK") == f"yes {place.mark}\n"
    assert run(environment, "pwd; echo $X") == "/\n1\n"
    assert (environment.isolated, environment.reaches_host, environment.persistent) == (True, False, False)
    assert list(place.sandboxes()) == [place.sandbox(environment)]
    assert place.sandbox(environment) in place.service.sandboxes()
    environment.close()
    assert not place.sandboxes()


@with_both
def test_a_sandbox_says_whose_it_is(place: Place) -> None:
    environment = place.make(task_id="a task/with ünusual letters")
    environment.start()
    [labels] = place.sandboxes().values()
    assert f".{OWNER}=" in labels
    assert f"-{os.getpid()}-" in labels
    assert f".{TASK}={place.mark[:8]}-a-task-with-" in labels


def test_bytes_of_all_kinds_go_both_ways(place: Place, tmp_path: Path) -> None:
    environment = place.make()
    content = bytes(range(256)) * 4096
    environment.files.write("/tmp/file", content)
    assert environment.files.read("/tmp/file", max_bytes=len(content)) == content
    assert environment.execute("cat", stdin=content, timeout=PATIENCE_SECONDS).output.head.startswith(content[:4096])


def test_files_of_any_size_are_copied_both_ways(place: Place, tmp_path: Path) -> None:
    content = os.urandom((6 << 20) + 7)
    (tmp_path / "file").write_bytes(content)
    environment = place.make()
    environment.upload(str(tmp_path / "file"), "/tmp/copy")
    environment.download("/tmp/copy", str(tmp_path / "back"))
    assert (tmp_path / "back").read_bytes() == content


def test_a_time_limit_ends_all_that_a_command_started(place: Place) -> None:
    environment = place.make()
    environment.start()
    result = environment.execute("echo begun; (setsid sleep 1000) | sleep 1001", timeout=1)
    assert (result.exit_code, result.timed_out) == (124, True)
    assert result.seconds < 30
    assert run(environment, "pgrep -x sleep -a | grep -v infinity") == ""


def test_terminals_and_background_processes_work(place: Place) -> None:
    environment = place.make()
    process = environment.background("echo up; cat")
    process.write(b"x\n")
    wait_until(lambda: process.read().data == b"up\nx\n")
    terminal = environment.open_pty("read line; echo got $line")
    wait_until(terminal.waits_for_input)
    terminal.write(b"this\r")
    wait_until(lambda: b"got this" in terminal.read().data)
    with pytest.raises(EnvironmentStartError, match="cannot outlive"):
        environment.background("sleep 1000", survives=True)


# Losses


@with_both
def test_a_sandbox_that_is_removed_in_mid_command_is_replaced(place: Place) -> None:
    environment = place.make()
    run(environment, "KEPT=1; touch /tmp/file")
    first = place.sandbox(environment)
    with takes_less_than(30), pytest.raises(EnvironmentLost, match="was lost while the command ran") as lost:
        environment.execute("echo begun; sleep 1000", on_output=lambda _: place.remove(first), timeout=90)
    assert lost.value.details["output"] == "begun\n"
    result = environment.execute("ls /tmp", timeout=PATIENCE_SECONDS)
    assert result.restarted is not None
    assert result.restarted.reason is RestartReason.LOST
    assert "file" not in text(result)
    assert place.sandbox(environment) != first


def test_a_lost_connection_is_made_again_to_the_same_sandbox(place: Place) -> None:
    environment = place.make()
    run(environment, "touch /tmp/file")
    sandbox = place.sandbox(environment)
    with pytest.raises(EnvironmentLost):
        environment.execute("kill -9 $(pgrep handrail-relay)", timeout=PATIENCE_SECONDS)
    assert run(environment, "ls /tmp/file") == "/tmp/file\n"
    assert place.sandbox(environment) == sandbox


def test_a_client_that_falls_silent_is_missed(place: Place) -> None:
    environment = place.make(keepalive=1)
    environment.execute("setsid -f sleep 1000 >/dev/null 2>&1", timeout=PATIENCE_SECONDS)
    wait_until(place.running)
    assert isinstance(environment._link, Session)
    keep_alive.remove(environment._link._confirm)
    wait_until(lambda: not place.running())
    with pytest.raises(EnvironmentLost):
        run(environment, "true")
    assert run(environment, "echo again") == "again\n"


@pytest.mark.usefixtures("orphans")
@with_both
def test_a_killed_runtime_leaves_nothing_that_runs_and_its_sandbox_is_pruned(place: Place) -> None:
    runtime = place.start_runtime(keepalive=1)
    wait_until(lambda: len(place.running()) >= 4)
    [sandbox] = place.sandboxes()
    assert not [found for found in place.kind.prune(dry_run=True) if sandbox in found], "its owner lives"
    os.kill(runtime.pid, signal.SIGKILL)
    runtime.wait()
    wait_until(lambda: not place.running())
    [found] = [found for found in place.kind.prune(dry_run=True) if sandbox in found]
    assert found.endswith("-killed")
    assert place.sandboxes()
    assert found in place.kind.prune(dry_run=False)
    assert not place.sandboxes()


@pytest.mark.usefixtures("orphans")
def test_what_is_in_use_is_not_pruned(place: Place) -> None:
    environment = place.make()
    environment.start()
    place.kind.prune(dry_run=False)
    assert run(environment, "echo hi") == "hi\n"


# Sandboxes that are kept


@pytest.mark.usefixtures("orphans")
@with_both
def test_a_kept_sandbox_is_found_again_by_its_task(place: Place) -> None:
    first = place.make(persistent=True)
    assert first.persistent
    run(first, "touch /root/file")
    sandbox = place.sandbox(first)
    first.close()
    try:
        assert sandbox in place.sandboxes()
        place.kind.prune(dry_run=False)
        second, other = place.make(persistent=True), place.make(persistent=True, task_id="other")
        assert run(second, "ls /root/file") == "/root/file\n"
        assert place.sandbox(second) == sandbox
        other.start()
        assert place.sandbox(other) != sandbox
        second.close()
        other_sandbox = place.sandbox(other)
        other.close()
        place.remove(other_sandbox)
    finally:
        place.remove(sandbox)


def test_a_process_in_a_kept_sandbox_lives_on(place: Place) -> None:
    first = place.make(persistent=True)
    started = first.background("echo up; sleep 1000", survives=True)
    sandbox = place.sandbox(first)
    try:
        first.close()
        second = place.make(persistent=True)
        [again] = [process for process in second.processes() if process.id == started.id]
        assert again.poll().state is ProcessState.RUNNING
        again.kill()
        second.close()
    finally:
        place.remove(sandbox)


# Settings


@with_both
def test_a_check_says_nothing_when_all_is_well(place: Place) -> None:
    assert place.kind.check({}) is None


@pytest.mark.parametrize("name", KINDS)
def test_without_credentials_it_says_how_to_get_some(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    _close_client(request.getfixturevalue(f"{name}_sdk"))
    kind = KINDS[name]
    with monkeypatch.context() as patched:
        for variable in os.environ:
            if variable.startswith(f"{name.upper()}_") and "URL" not in variable:
                patched.delenv(variable)
        patched.setenv("MODAL_CONFIG_PATH", str(tmp_path / "none"))
        patched.chdir(tmp_path)
        answer = kind.check({})
        assert answer is not None
        assert "does not let us in" in answer.reason
        assert answer.fix == kind.credentials
        with pytest.raises(LoginRefused, match="does not let us in"):
            kind.from_settings({}, task_id="t").start()
        assert kind.prune(dry_run=True) == []


def _close_client(sdk: Any) -> None:
    if sdk.__name__ == "modal":  # which keeps one that was let in
        sdk.Client.from_env().__exit__(None, None, None)


@pytest.mark.parametrize("name", KINDS)
def test_without_credentials_nobody_waits_for_the_sdk_to_load(name: str, tmp_path: Path) -> None:
    script = (
        "import sys\n"
        "from handrail.environments.backend_table import backends\n"
        f"kind = backends.get({name!r})\n"
        "assert kind.check({}).fix == kind.credentials\n"
        "assert kind.prune(dry_run=True) == []\n"
        f"assert {name!r} not in sys.modules\n"
    )
    variables = {name: value for name, value in os.environ.items() if not name.startswith(("MODAL_", "DAYTONA_"))}
    subprocess.run([sys.executable, "-c", script], check=True, cwd=tmp_path, env={**variables, "HOME": str(tmp_path)})


@pytest.mark.parametrize("name", KINDS)
def test_without_the_sdk_it_says_what_to_install(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, name, None)
    kind = KINDS[name]
    assert f"pip install 'handrail[{name}]'" in str(kind.check({}))
    with pytest.raises(EnvironmentStartError, match="is not installed"):
        kind.from_settings({}, task_id="t").start()
    assert kind.prune(dry_run=True) == []


@with_both
def test_a_cloud_that_does_not_answer_is_said_in_time(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    _close_client(place.sdk)
    with monkeypatch.context() as patched, takes_less_than(CHECK_SECONDS + 30):
        patched.setenv("MODAL_SERVER_URL", "http://127.0.0.1:1")
        patched.setenv("DAYTONA_API_URL", "http://127.0.0.1:1/api")
        assert place.kind.check({}) is not None


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"imgae": "x"}, "imgae: unknown key; did you mean 'image'"),
        ({"memory_mb": "1g"}, "memory_mb: must be a whole number"),
        ({"lifetime": 0}, "lifetime: must be at least"),
        ({"persistent": 1}, "persistent: must be true or false"),
        ({"keepalive": 0.5}, "keepalive: must be a whole number"),
        ({"env": ["A=1"]}, "env: must be a mapping"),
    ],
)
def test_a_wrong_setting_is_named(name: str, settings: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError) as wrong:
        KINDS[name].from_settings(settings, task_id="t")
    assert f"{name}.{said}" in str(wrong.value)


@pytest.mark.parametrize("place", ["modal"], indirect=True)
def test_a_sandbox_of_modal_ends_when_its_lifetime_is_over_and_the_next_command_has_another(place: Place) -> None:
    environment = place.make(lifetime=5)
    environment.start()
    first = place.sandbox(environment)
    with takes_less_than(30), pytest.raises(EnvironmentLost, match="the sandbox has ended, and its files are gone"):
        environment.execute("sleep 1000", timeout=60)
    assert run(environment, "echo again") == "again\n"
    assert place.sandbox(environment) != first


@pytest.mark.parametrize("place", ["modal"], indirect=True)
def test_a_sandbox_of_modal_ends_by_itself_some_time_after_its_runtime_was_killed(place: Place) -> None:
    runtime = place.start_runtime(keepalive=1, idle_timeout=2)
    [sandbox] = place.sandboxes()
    os.kill(runtime.pid, signal.SIGKILL)
    runtime.wait()
    wait_until(lambda: sandbox not in place.sandboxes())


@pytest.mark.parametrize("place", ["modal"], indirect=True)
def test_a_sandbox_of_modal_that_is_used_is_not_idle(place: Place) -> None:
    environment = place.make(keepalive=1, idle_timeout=2)
    assert run(environment, "sleep 5; echo still") == "still\n"


@pytest.mark.parametrize("place", ["daytona"], indirect=True)
def test_a_sandbox_of_daytona_is_made_to_end_by_itself(place: Place) -> None:
    short, kept = place.make(idle_timeout=61, lifetime=600), place.make(persistent=True, task_id="kept")
    short.start()
    kept.start()
    made, other = (place.sandboxes()[place.sandbox(one)] for one in (short, kept))
    assert '"autoStopInterval": 2' in made
    assert '"autoDeleteInterval": 0' in made
    assert "autoDestroyAt" in made
    assert '"autoStopInterval": 10' in other
    assert '"autoDeleteInterval": null' in other
    assert "autoDestroyAt" not in other
    kept_sandbox = place.sandbox(kept)
    kept.close()
    state = place.service.docker.run("inspect", "--format", "{{.State.Running}}", kept_sandbox)
    place.remove(kept_sandbox)
    assert state == "false", "nothing runs in it, so it is stopped"


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"image": "x", "snapshot": "y"}, "daytona.snapshot: a sandbox is made from an image or from a snapshot"),
        ({"cpu": 2}, "daytona.cpu: a snapshot has resources of its own; set daytona.image too"),
    ],
)
def test_settings_of_daytona_that_do_not_go_together_are_named(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError) as wrong:
        DaytonaEnvironment.from_settings(settings, task_id="t")
    assert said in str(wrong.value)


@with_both
def test_an_image_and_limits_are_passed_on(place: Place) -> None:
    environment = place.make(image="python:3.12-slim", memory_mb=512)
    environment.start()
    memory = place.service.docker.run("inspect", "--format", "{{.HostConfig.Memory}}", place.sandbox(environment))
    assert int(memory) == (512 << 20 if place.kind is ModalEnvironment else 1 << 30), "Daytona counts in GiB"


def test_python_that_is_missing_is_said(place: Place) -> None:
    with takes_less_than(30), pytest.raises(EnvironmentStartError, match="was not found in the sandbox"):
        place.make(python="python9").start()


def test_a_folder_to_begin_in_that_is_missing_is_an_error(place: Place) -> None:
    with pytest.raises(EnvironmentStartError, match="the working directory /proc/nowhere does not exist"):
        place.make(cwd="/proc/nowhere").start()


def test_importing_a_backend_does_not_import_its_sdk() -> None:
    for name in KINDS:
        code = f"import sys, handrail.environments.backends.{name}; assert {name!r} not in sys.modules"
        subprocess.run([sys.executable, "-c", code], check=True)
