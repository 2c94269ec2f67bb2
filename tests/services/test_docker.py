"""The Docker engine of the tests: it runs real containers, it can be killed, and nothing is left of it."""

from __future__ import annotations

import json
import os
import subprocess
import uuid
from pathlib import Path

import pytest

from ..support import wait_until
from . import containers, places
from .components import require
from .docker import Docker
from .proofs import EVERY_BYTE, is_mounted, kill_run, running_with
from .tenants import Services

QUIET = ("--network", "none")


def test_a_command_runs_in_a_container_with_the_tools_that_tests_need(docker_service: Docker) -> None:
    command = "ps -e >/dev/null && tput -T xterm bold >/dev/null && python3 -c 'import ctypes, ssl; print(6 * 7)'"
    assert docker_service.run("run", "--rm", *QUIET, docker_service.image, "bash", "-c", command) == "42"


def test_the_ordinary_client_finds_the_engine_by_its_environment(docker_service: Docker) -> None:
    env = {**os.environ, **docker_service.env}
    command = ["docker", "images", "--format", "{{.Repository}}:{{.Tag}}"]
    listed = subprocess.run(command, env=env, capture_output=True, text=True, check=True).stdout
    assert docker_service.image in listed.split()


def test_a_container_that_should_have_been_removed_is_seen(docker_service: Docker) -> None:
    name = f"left-{uuid.uuid4().hex}"
    label = ("--label", "handrail.lifetime=passing")
    docker_service.run("create", "--name", name, *label, *QUIET, docker_service.image, "true")
    assert name in docker_service.run(*containers.THROW_AWAY).split()
    docker_service.run("rm", name)


def test_bytes_go_through_an_execution_unchanged(docker_service: Docker) -> None:
    name = f"bytes-{uuid.uuid4().hex}"
    docker_service.run("run", "--detach", "--init", "--name", name, *QUIET, docker_service.image, "sleep", "infinity")
    try:
        command = ["docker", "exec", "--interactive", name, "cat"]
        env = {**os.environ, **docker_service.env}
        assert subprocess.run(command, input=EVERY_BYTE, env=env, capture_output=True, check=True).stdout == EVERY_BYTE
    finally:
        docker_service.run("rm", "--force", name)


def test_limits_and_hardening_work_here(docker_service: Docker) -> None:
    hardened = "--memory 64m --pids-limit 64 --cpus 0.5 --cap-drop ALL --security-opt no-new-privileges --read-only --tmpfs /tmp"
    command = "id -u && ! touch /x 2>/dev/null && touch /tmp/x && echo held"
    said = docker_service.run("run", "--rm", *QUIET, *hardened.split(), docker_service.image, "bash", "-c", command)
    assert said.split() == ["0", "held"]


def test_a_container_sees_the_folder_that_is_mounted_into_it(docker_service: Docker, tmp_path: Path) -> None:
    (tmp_path / "seen").write_text("yes")
    mount = ("--volume", f"{tmp_path}:/mounted")
    assert docker_service.run("run", "--rm", *QUIET, *mount, docker_service.image, "cat", "/mounted/seen") == "yes"


def test_a_killed_engine_can_be_started_again_and_has_its_containers(own_docker_service: Docker) -> None:
    engine = own_docker_service
    # Without `--init` the container would ignore the end, and the engine would wait for it when it starts again.
    engine.run("run", "--detach", "--init", "--name", "kept", *QUIET, engine.image, "sleep", "infinity")
    engine.kill()
    with pytest.raises(AssertionError, match="Cannot connect"):
        engine.run("ps")
    engine.start_again()
    assert engine.run("ps", "--all", "--format", "{{.Names}}") == "kept"
    engine.run("start", "kept")
    assert engine.run("exec", "kept", "echo", "back") == "back"


def test_nothing_is_left_of_an_engine_with_running_containers_and_networks(services: Services) -> None:
    require("dockerd", "docker", packages="docker.io")
    engine = Docker.join(services, own=True)
    mark = uuid.uuid4().hex
    engine.run("run", "--detach", *QUIET, "--env", f"MARK={mark}", engine.image, "sleep", "infinity")
    identifier = engine.run("network", "create", "--internal", "inner")
    bridge = Path("/sys/class/net", f"br-{identifier[:12]}")
    assert bridge.exists()
    assert running_with(mark)
    engine.tenant.leave()
    assert not running_with(mark)
    assert not bridge.exists()
    assert _left(engine) == []


def test_a_killed_run_leaves_no_process_and_no_mount_and_its_files_are_removed_by_the_next(services: Services) -> None:
    require("dockerd", "docker", packages="docker.io")
    engine = Docker.join(services, own=True)
    mark = uuid.uuid4().hex
    engine.run("run", "--detach", *QUIET, "--env", f"MARK={mark}", engine.image, "sleep", "infinity")
    kill_run(engine.tenant)
    wait_until(lambda: not running_with(mark))
    assert not is_mounted(engine.tenant.folder)
    assert _left(engine) == []


def test_the_engine_says_where_it_keeps_things(docker_service: Docker) -> None:
    info = json.loads(docker_service.run("info", "--format", "{{json .}}"))
    assert info["DockerRootDir"].startswith(str(docker_service.tenant.folder))
    assert info["Driver"] == "overlay2"


def _left(engine: Docker) -> list[str]:
    folder = engine.tenant.folder
    groups = places.control_groups(places.control_group_of(folder))
    return [*map(str, groups), *([str(folder)] if folder.exists() else [])]
