"""What is particular to Docker and Podman: flags, labels, images, and an engine that goes away."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from handrail.base.own_process import runtime_id
from handrail.environments.backends.docker import DockerEnvironment, DockerSettings
from handrail.environments.base import RestartReason, ShellState
from handrail.environments.errors import EnvironmentLost, EnvironmentStartError

from ...services.docker import Docker
from ..conftest import PATIENCE_SECONDS, text
from ..container_kinds import Kind, name_of
from ..held_elsewhere import check_asked_mount, check_pause
from ..image_registry import serve_image
from ..undo_elsewhere import check_undo, check_undo_of_random_calls

# What differs between Docker and Podman is the engine: our code is the same.
pytestmark = pytest.mark.by_turns("service", ("docker", "podman"))


@pytest.fixture(scope="module", params=["docker", "podman"])
def service(request: pytest.FixtureRequest) -> Kind:
    service = request.getfixturevalue(f"{request.param}_service")
    return Kind(request.param, service.image, service.env, service)


@pytest.fixture
def kind(service: Kind, monkeypatch: pytest.MonkeyPatch) -> Iterator[Kind]:
    for name, value in service.env.items():
        monkeypatch.setenv(name, value)
    yield service
    assert service.left() == []


@pytest.fixture
def docker(docker_service: Docker, monkeypatch: pytest.MonkeyPatch) -> Docker:
    for name, value in docker_service.env.items():
        monkeypatch.setenv(name, value)
    return docker_service


def test_a_container_is_labelled_with_its_owner_and_its_task(kind: Kind) -> None:
    with kind.make("a task/ü") as shell:
        (details,) = json.loads(kind.service.run("inspect", name_of(shell)))
        labels = details["Config"]["Labels"]
        assert labels["handrail"] == "1"
        assert labels["handrail.task"] == "a task/ü"
        assert labels["handrail.owner"] == runtime_id()
        assert details["Name"].lstrip("/").startswith("handrail-a-task-")


def test_the_engine_is_told_to_hold_the_limits(kind: Kind) -> None:
    with kind.make(memory="128m", cpus=0.5, pids=100, tmp_size="8m") as shell:
        (details,) = json.loads(kind.service.run("inspect", name_of(shell)))
        host = details["HostConfig"]
        assert host["Memory"] == host["MemorySwap"] == 128 << 20
        assert host["NanoCpus"] == 500_000_000
        assert host["PidsLimit"] == 100
        filled = shell.execute("head -c 9000000 /dev/zero >/tmp/x", timeout=PATIENCE_SECONDS)
        assert "No space left" in text(filled)


def test_values_of_variables_are_not_shown_by_the_engine(kind: Kind) -> None:
    with kind.make(env={"GIVEN": "c0nfidential"}) as shell:
        assert "c0nfidential" not in kind.service.run("inspect", name_of(shell))


def test_commands_run_as_the_user_that_is_asked_for(kind: Kind) -> None:
    with kind.make(user="1000:1000") as shell:
        assert text(shell.execute("id -u; echo $HOME", timeout=PATIENCE_SECONDS)) == "1000\n/home/guest\n"
        assert shell.execute("setsid sleep 100", timeout=0.5).timed_out


def test_a_process_that_becomes_another_user_ends_with_the_command(kind: Kind) -> None:
    with kind.make() as shell:
        result = shell.execute("setpriv --reuid=1000 --clear-groups sleep 3000", timeout=0.5)
        assert result.timed_out
        assert text(shell.execute("pgrep -c sleep", timeout=PATIENCE_SECONDS)) == "0\n"


def test_orphans_inside_are_taken_in_and_do_not_pile_up(kind: Kind) -> None:
    with kind.make() as shell:
        name = name_of(shell)
        for _ in range(3):  # by `exec`, beside our own shell: their parent is the container's first process
            kind.inside(name, "bash", "-c", "(sleep 0.05 &) ; (sleep 0.05 &)")
        count = "while ps -eo comm= | grep -q sleep; do sleep 0.02; done; ps -eo stat= | grep -c Z"
        assert text(shell.execute(count, timeout=PATIENCE_SECONDS)) == "0\n"


def test_an_entrypoint_of_the_image_is_not_run(kind: Kind) -> None:
    made = f"making-{os.urandom(4).hex()}"
    kind.service.run("run", "--network=none", f"--name={made}", kind.image, "true")
    kind.service.run(
        "commit", "--change", 'ENTRYPOINT ["/bin/false"]', "--change", "WORKDIR /workspace", made, "entry:1"
    )
    kind.service.run("rm", made)
    with kind.make(image="entry:1") as shell:
        assert shell.cwd == "/workspace"
    kind.service.run("rmi", "entry:1")


def test_an_image_that_is_nowhere_is_said_with_what_to_do(kind: Kind) -> None:
    shell = kind.make(image="localhost:1/nobody/nothing:1")
    with pytest.raises(EnvironmentStartError, match=r"is not here and could not be pulled: .*; check its name"):
        shell.start()
    shell.close()
    with pytest.raises(EnvironmentStartError, match="could not start a container"):
        kind.make(image="localhost:1/nobody/nothing:1", pull=False).start()


def test_an_image_that_is_not_here_is_loaded_and_the_progress_is_told(docker: Docker) -> None:
    told: list[str] = []
    with serve_image() as place:
        shell = DockerEnvironment(DockerSettings(image=f"{place}/served:1"), on_progress=told.append)
        with shell:
            assert text(shell.execute("echo here", timeout=PATIENCE_SECONDS)) == "here\n"
    assert any("Pulling from served" in line for line in told)
    docker.run("rmi", f"{place}/served:1")


def test_a_named_volume_is_shared_and_does_not_reach_the_machine(kind: Kind) -> None:
    volume = f"shared-{os.urandom(4).hex()}"
    with kind.make(mounts=[f"{volume}:/shared"]) as first, kind.make(mounts=[f"{volume}:/shared:ro"]) as second:
        first.execute("echo x >/shared/file", timeout=PATIENCE_SECONDS)
        assert text(second.execute("cat /shared/file", timeout=PATIENCE_SECONDS)) == "x\n"
        assert first.isolated
        assert not first.reaches_host
    kind.service.run("volume", "rm", volume)


def test_more_arguments_are_given_to_the_engine(kind: Kind) -> None:
    with kind.make(run_arguments=["--hostname=named", "--read-only"]) as shell:
        result = shell.execute(
            "cat /proc/sys/kernel/hostname; touch /x 2>/dev/null || touch /tmp/x", timeout=PATIENCE_SECONDS
        )
        assert text(result) == "named\n"
        assert result.exit_code == 0


def test_an_engine_that_cannot_be_reached_is_said_with_the_cure(
    monkeypatch: pytest.MonkeyPatch, docker: Docker
) -> None:
    monkeypatch.setenv("DOCKER_HOST", "unix:///proc/nowhere/docker.sock")
    verdict = DockerEnvironment.check({})
    assert verdict is not None
    assert "cannot reach the Docker daemon" in verdict.reason
    assert verdict.fix == "start it or set DOCKER_HOST"
    with pytest.raises(EnvironmentStartError, match=r"cannot reach the Docker daemon.*start it or set DOCKER_HOST"):
        DockerEnvironment(DockerSettings(image=docker.image)).start()
    assert DockerEnvironment.prune() == []


def test_an_engine_that_is_killed_costs_the_shell_and_the_container_when_it_is_back(
    own_docker_service: Docker, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = own_docker_service
    for name, value in engine.env.items():
        monkeypatch.setenv(name, value)
    shell = DockerEnvironment(DockerSettings(image=engine.image))
    shell.start()
    lasting = DockerEnvironment(DockerSettings(image=engine.image, persistent=True), task_id="lasting")
    lasting.execute("echo kept >/file", timeout=PATIENCE_SECONDS)
    name_of_lasting = name_of(lasting)
    with pytest.raises(EnvironmentLost):
        shell.execute("echo begun; sleep 60", timeout=PATIENCE_SECONDS, on_output=lambda _: engine.kill())
    with pytest.raises(EnvironmentLost):
        lasting.execute("echo gone", timeout=PATIENCE_SECONDS)
    with pytest.raises(EnvironmentStartError, match="cannot reach the Docker daemon"):
        DockerEnvironment(DockerSettings(image=engine.image)).start()
    engine.start_again()  # which ends the containers that it finds
    result = shell.execute("echo back", timeout=PATIENCE_SECONDS)
    assert text(result) == "back\n"
    assert result.restarted == (RestartReason.LOST, ShellState.EMPTY)
    assert text(lasting.execute("cat /file", timeout=PATIENCE_SECONDS)) == "kept\n"
    shell.close()
    lasting.close()
    engine.run("rm", "--force", name_of_lasting)
    assert engine.run("ps", "--all", "--quiet") == ""


def test_what_a_command_changes_in_a_container_can_be_undone(kind: Kind) -> None:
    with kind.make("undo") as shell:
        check_undo(shell)
        check_undo_of_random_calls(shell)


def test_writes_to_a_mount_of_a_container_that_asks_wait_for_an_answer(kind: Kind, tmp_path: Path) -> None:
    check_asked_mount(lambda mounts: kind.make("asked", mounts=mounts), tmp_path)


def test_a_container_whose_mount_asks_does_not_start_where_nothing_can_wait(kind: Kind, tmp_path: Path) -> None:
    shell = kind.make("asked", mounts=[f"{tmp_path}:/data:ask"])
    shell.effects = None
    with pytest.raises(EnvironmentStartError, match="nothing can wait for an answer"):
        shell.start()
    shell.close()


def test_a_command_that_deletes_much_in_a_container_waits_for_an_answer(kind: Kind) -> None:
    shell = kind.make("pause")
    try:
        check_pause(shell)
    finally:
        shell.close()
