"""Whatever a command has damaged is shown by name, and intact after an undo."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from handrail import Handrail
from handrail.settings.schema import Config
from handrail.testing import OpenGate
from tests.services.docker import Docker

from .hidden_damage import DAMAGES, SNAPSHOT, Damage


class Project:
    """A folder of a task, on this machine or in a container."""

    def __init__(self, app: Handrail, folder: str, task: str) -> None:
        self.app, self.folder, self._task = app, folder, task

    def run(self, command: str) -> str:
        """Beside the journal, as a person would."""
        done = self.app.environments.of(self._task).execute(command, cwd=self.folder)
        assert done.exit_code == 0, done.output.head
        return done.output.head.decode()

    def call(self, command: str) -> dict[str, Any]:
        arguments = {"command": f"cd {self.folder} && {{ {command}; }}"}
        told = json.loads(str(self.app.handle_function_call("terminal", arguments, self._task)))
        assert told["exit_code"] == 0, told
        return told


@pytest.fixture
def project(home: Path, tmp_path: Path) -> Iterator[Project]:
    folder = tmp_path / "project"
    folder.mkdir()
    with Handrail(Config(), home=home) as app:
        app.runtime.gate = OpenGate()
        yield Project(app, str(folder), "local")


def check(project: Project, damage: Damage) -> None:
    project.run(damage.prepare)
    before = project.run(SNAPSHOT)
    number = project.call(damage.command)["call"]
    assert project.run(SNAPSHOT) != before, "it does damage"
    told = project.app.effects.describe(number)
    assert told["record"]["coverage"] == "full"
    shown = {one["path"] for kind in ("lost", "changed", "moved") for one in told[kind]}
    assert {f"{project.folder}/{name}" for name in damage.files} <= shown
    assert told["unsaved"] == []
    assert project.app.undo(number)["status"] == "undone"
    assert project.run(SNAPSHOT) == before


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.name.replace(" ", "-"))
def test_damage_is_shown_by_name_and_undone(project: Project, damage: Damage) -> None:
    check(project, damage)


def test_damage_in_a_container_is_shown_by_name_and_undone(
    home: Path, docker_service: Docker, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in docker_service.env.items():
        monkeypatch.setenv(name, value)
    with Handrail(Config(), home=home) as app:
        app.runtime.gate = OpenGate()
        app.register_task_env_overrides("inside", backend="docker", image=docker_service.image, cwd="/tmp")
        for number, damage in enumerate(DAMAGES):
            project = Project(app, f"/tmp/project{number}", "inside")
            app.environments.of("inside").execute(f"mkdir {project.folder}")
            check(project, damage)


def test_what_file_tools_write_in_a_container_is_undone(
    home: Path, docker_service: Docker, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in docker_service.env.items():
        monkeypatch.setenv(name, value)
    with Handrail(Config(), home=home) as app:
        app.runtime.gate = OpenGate()
        app.register_task_env_overrides("inside", backend="docker", image=docker_service.image, cwd="/tmp")
        project = Project(app, "/tmp/p", "inside")
        app.environments.of("inside").execute("mkdir p; echo one > p/a")
        before = project.run(SNAPSHOT)
        for path, content in (("/tmp/p/a", "two"), ("/tmp/p/new/deep/b", "three")):
            arguments = {"path": path, "content": content}
            told = json.loads(str(app.handle_function_call("write_file", arguments, "inside")))
            assert "error" not in told, told
        numbers = [call.number for call in app.calls()]
        assert [call.counts["changed"] + call.counts["created"] for call in app.calls()] == [1, 1]
        for number in numbers:
            assert app.undo(number)["status"] == "undone"
        assert project.run(SNAPSHOT) == before
