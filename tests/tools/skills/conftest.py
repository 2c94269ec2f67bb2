"""Skills to write, in a home and a project of the test's own."""

from __future__ import annotations

from pathlib import Path

import pytest

from handrail.tools.skills.library import Library


class Desk:
    """`write` puts a skill where its source is; `library` sees them all."""

    def __init__(self, home: Path, project: Path) -> None:
        self.user = home / "skills"
        self.project = project / ".handrail" / "skills"

    def write(
        self, name: str, body: str = "Do it.", *, description: str = "About it.", project: bool = False, **files: str
    ) -> Path:
        folder = (self.project if project else self.user) / name
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "SKILL.md").write_text(skill(name, body, description=description))
        for path, text in files.items():
            (folder / path.replace("_", ".")).write_text(text)
        return folder

    @property
    def library(self) -> Library:
        return Library()


def skill(name: str, body: str = "Do it.", *, description: str = "About it.") -> str:
    return f"---\nname: {name}\ndescription: {description}\n---\n{body}\n"


@pytest.fixture
def desk(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Desk:
    project = tmp_path / "project"
    project.mkdir()
    monkeypatch.chdir(project)
    monkeypatch.setenv("HOME", str(tmp_path))
    return Desk(home, project)
