"""Apptainer with folders of the tests' own: it runs from a sandbox folder, and nothing is left of an instance."""

from __future__ import annotations

import os
import subprocess
import uuid
from pathlib import Path

from . import leftovers
from .apptainer import Apptainer
from .components import require
from .proofs import EVERY_BYTE, is_mounted, kill_run
from .tenants import Services


def test_a_command_runs_in_a_container(apptainer_service: Apptainer) -> None:
    command = ("exec", "--containall", apptainer_service.image, "python3", "-c", "print(6 * 7)")
    assert apptainer_service.run(*command) == "42"


def test_bytes_go_through_unchanged(apptainer_service: Apptainer) -> None:
    command = ["apptainer", "exec", "--containall", apptainer_service.image, "cat"]
    env = {**os.environ, **apptainer_service.env}
    assert subprocess.run(command, input=EVERY_BYTE, env=env, capture_output=True, check=True).stdout == EVERY_BYTE


def test_the_image_itself_is_not_changed(apptainer_service: Apptainer) -> None:
    command = ("exec", "--containall", "--writable-tmpfs", apptainer_service.image)
    assert apptainer_service.run(*command, "bash", "-c", "echo new >/new && cat /new") == "new"
    assert not Path(apptainer_service.image, "new").exists()


def test_commands_share_an_instance(apptainer_service: Apptainer) -> None:
    name = f"shared{uuid.uuid4().hex[:8]}"
    apptainer_service.run("instance", "start", "--containall", "--writable-tmpfs", apptainer_service.image, name)
    try:
        apptainer_service.run("exec", f"instance://{name}", "touch", "/tmp/left")
        assert apptainer_service.run("exec", f"instance://{name}", "ls", "/tmp") == "left"
    finally:
        apptainer_service.run("instance", "stop", name)


def test_nothing_is_left_of_it_while_an_instance_ran(services: Services) -> None:
    require("apptainer", packages="run scripts/services/install.sh")
    apptainer = Apptainer.join(services, own=True)
    apptainer.run("instance", "start", apptainer.image, "left")
    assert leftovers.marked(apptainer.tenant.folder)
    apptainer.tenant.leave()
    assert not leftovers.marked(apptainer.tenant.folder)
    assert not apptainer.tenant.folder.exists()


def test_what_a_killed_run_leaves_is_ended_and_removed_by_the_next(services: Services) -> None:
    require("apptainer", packages="run scripts/services/install.sh")
    apptainer = Apptainer.join(services, own=True)
    apptainer.run("instance", "start", apptainer.image, "left")
    kill_run(apptainer.tenant)
    assert not leftovers.marked(apptainer.tenant.folder)
    assert not is_mounted(apptainer.tenant.folder)
