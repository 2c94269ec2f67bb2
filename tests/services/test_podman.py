"""Podman with a storage of the tests' own: it runs real containers, and nothing is left of them."""

from __future__ import annotations

import os
import subprocess
import uuid
from pathlib import Path

from . import leftovers
from .components import require
from .podman import Podman
from .proofs import EVERY_BYTE, is_mounted, kill_run
from .tenants import Services


def test_a_command_runs_in_a_container(podman_service: Podman) -> None:
    assert podman_service.run("run", "--rm", podman_service.image, "python3", "-c", "print(6 * 7)") == "42"


def test_the_ordinary_name_finds_it_by_its_environment(podman_service: Podman) -> None:
    env = {**os.environ, **podman_service.env}
    command = ["podman", "images", "--format", "{{.Repository}}:{{.Tag}}"]
    listed = subprocess.run(command, env=env, capture_output=True, text=True, check=True).stdout
    assert f"localhost/{podman_service.image}" in listed.split()


def test_bytes_go_through_an_execution_unchanged(podman_service: Podman) -> None:
    name = f"bytes-{uuid.uuid4().hex}"
    podman_service.run("run", "--detach", "--name", name, podman_service.image, "sleep", "infinity")
    try:
        command = [podman_service.program, "exec", "--interactive", name, "cat"]
        assert subprocess.run(command, input=EVERY_BYTE, capture_output=True, check=True).stdout == EVERY_BYTE
    finally:
        podman_service.run("rm", "--force", "--time", "0", name)


def test_paths_are_those_of_the_folder_it_is_called_in(podman_service: Podman, tmp_path: Path) -> None:
    (tmp_path / "seen").write_text("yes")
    command = ["run", "--rm", "--volume", ".:/mounted", podman_service.image, "cat", "/mounted/seen"]
    program = podman_service.program
    assert subprocess.run([program, *command], cwd=tmp_path, capture_output=True, check=True).stdout == b"yes"


def test_nothing_is_left_of_it_while_a_container_ran(services: Services) -> None:
    require("podman", "runc", packages="podman")
    podman = Podman.join(services, own=True)
    podman.run("run", "--detach", podman.image, "sleep", "infinity")
    assert leftovers.marked(podman.tenant.folder)
    podman.tenant.leave()
    assert not leftovers.marked(podman.tenant.folder)
    assert not podman.tenant.folder.exists()


def test_what_a_killed_run_leaves_is_ended_and_removed_by_the_next(services: Services) -> None:
    require("podman", "runc", packages="podman")
    podman = Podman.join(services, own=True)
    identifier = podman.run("run", "--detach", podman.image, "sleep", "infinity")
    kill_run(podman.tenant)
    assert not is_mounted(podman.tenant.folder)
    assert not leftovers.marked(podman.tenant.folder)
    assert not list(Path("/sys/fs/cgroup").glob(f"*/libpod_parent/libpod-{identifier}"))
