"""What the program says to type is what works where it was called."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from handrail.cli import output
from handrail.cli.output import as_typed, typed

from ..support import PYTHON


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A `handrail` of its own, in a folder that the shell does not look into."""
    found = tmp_path / "ein Ordner für Żółw" / "handrail"
    found.parent.mkdir()
    found.write_text('#!/bin/sh\necho "$@"\n')
    found.chmod(0o755)
    monkeypatch.setattr(sys, "argv", [str(found), "chat"])
    return found


def test_a_program_that_the_shell_does_not_find_is_called_by_its_path(program: Path) -> None:
    ran = subprocess.run(typed("call x"), shell=True, capture_output=True, text=True, check=True)
    assert ran.stdout == "call x\n"


def test_one_that_the_shell_finds_is_called_by_its_name(program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(program.parent), prepend=":")
    assert typed("tools") == "handrail tools"


def test_another_of_the_same_name_is_not_meant(program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = tmp_path / "other" / "handrail"
    other.parent.mkdir()
    other.write_text("#!/bin/sh\n")
    other.chmod(0o755)
    monkeypatch.setenv("PATH", str(other.parent), prepend=":")
    assert typed("tools") == f"'{program}' tools"


def test_a_module_is_called_as_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["/some/where/handrail/__main__.py"])
    assert (
        as_typed("`handrail serve` or `handrail chat`")
        == f"`{PYTHON} -m handrail serve` or `{PYTHON} -m handrail chat`"
    )


class TestExtras:
    """`pip install 'handrail[serve]'` would reach another pip, or a package that is not there."""

    @pytest.fixture
    def pip(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        pip = tmp_path / ".venv" / "bin" / "pip"
        pip.parent.mkdir(parents=True)
        pip.write_text("#!/bin/sh\n")
        pip.chmod(0o755)
        monkeypatch.setattr(sys, "executable", str(pip.with_name("python")))
        monkeypatch.setattr(output, "__file__", str(tmp_path / "src/handrail/cli/output.py"))
        monkeypatch.chdir(tmp_path)
        return pip

    def test_a_clone_is_extended_by_its_own_pip(self, pip: Path) -> None:
        pip.parents[2].joinpath("pyproject.toml").touch()
        told = as_typed("it is not installed; pip install 'handrail[serve]', before it can be used")
        assert told == "it is not installed; .venv/bin/pip install -e '.[serve]', before it can be used"

    def test_an_installed_package_is_extended_by_name(self, pip: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        assert as_typed("pip install 'handrail[a,b]'") == ".venv/bin/pip install 'handrail[a,b]'"
        monkeypatch.setenv("PATH", str(pip.parent))
        assert as_typed("pip install 'handrail[a,b]'") == "pip install 'handrail[a,b]'"

    def test_without_a_pip_of_its_own_nothing_is_made_up(self, pip: Path) -> None:
        pip.unlink()
        assert as_typed("pip install 'handrail[serve]'") == "pip install 'handrail[serve]'"
