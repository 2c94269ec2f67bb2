"""Inspect's own conformance checks, on sandboxes of ours."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from ..services.docker import Docker
from ..services.sshd import Ssh
from .conftest import PROGRAMS, started, with_entry_points

# Who is not root cannot become another.
AS_USER = "test_exec_as_user"


def checked(home: Path, work: Path, settings: dict[str, Any], *, only: str | None = None, **env: str) -> dict[str, Any]:
    """Why those checks failed that did."""
    given = {"PLAN": json.dumps({"settings": settings, "only": only}), "PYTHONPATH": with_entry_points(work), **env}
    printed, _ = started("inspect", PROGRAMS / "check_inspect.py", work, home, [], env=given, patience=20)
    found: dict[str, Any] = json.loads(printed.splitlines()[-1])
    assert found["count"] >= (44 if only is None else 1)
    return found["failed"]  # type: ignore[no-any-return]


def test_a_shell_of_this_machine_passes_the_checks(home: Path, work: Path) -> None:
    failed = checked(home, work, {"backend": "local", "sandbox": False})
    assert set(failed) <= (set() if os.geteuid() == 0 else {AS_USER}), failed


def test_what_names_no_backend_has_a_sandbox_in_which_the_system_cannot_be_changed(home: Path, work: Path) -> None:
    assert set(checked(home, work, {}, only=AS_USER)) == {AS_USER}
    assert checked(home, work, {}, only="test_exec_stderr") == {}


def test_a_container_passes_the_checks(home: Path, work: Path, docker_service: Docker) -> None:
    failed = checked(home, work, {"backend": "docker", "image": docker_service.image}, **docker_service.env)
    assert failed == {}


def test_another_machine_passes_the_checks(home: Path, work: Path, ssh_service: Ssh) -> None:
    is_root = os.geteuid() == 0
    host = f"root@{ssh_service.alias}" if is_root else ssh_service.alias
    failed = checked(home, work, {"backend": "ssh", "host": host, "config_file": str(ssh_service.config)})
    assert set(failed) <= (set() if is_root else {AS_USER}), failed


def test_an_account_that_is_not_root_says_that_it_cannot_be_another(home: Path, work: Path, ssh_service: Ssh) -> None:
    settings = {"backend": "ssh", "host": ssh_service.alias, "config_file": str(ssh_service.config)}
    assert "cannot run as root" in checked(home, work, settings, only=AS_USER)[AS_USER]
