"""Handrail starts itself from its own code, whatever lies in the folder it is started in."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

from handrail.base.own_process import import_folders, self_command
from handrail.config.paths import GROUP, entry_points

SOURCE = Path(__file__).parents[2] / "src" / "handrail"
_PLANTED = "open({marker!r}, 'a').write(__name__ + ' ')\n"


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A project of somebody who hopes that we import its modules instead of ours."""
    folder = tmp_path / "clone"
    code = _PLANTED.format(marker=str(tmp_path / "marker"))
    for name in ("typer.py", "rich/__init__.py", "handrail/__init__.py", "handrail/cli/__init__.py", "uvicorn.py"):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(code)
    for name in ("json.py", "sqlite3.py", "sitecustomize.py", "usercustomize.py", "planted.py"):
        (folder / name).write_text(code)
    info = folder / "planted-1.0.egg-info"
    info.mkdir()
    (info / "entry_points.txt").write_text(f"[{GROUP}]\nplanted = planted\n")
    return folder


def _run(command: list[str], folder: Path, home: Path, **env: str) -> subprocess.CompletedProcess[str]:
    whole = {"HANDRAIL_HOME": str(home), "PATH": os.environ["PATH"], "HOME": str(home), **env}
    return subprocess.run(command, cwd=folder, env=whole, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("path", ["", ".", ":", "./", "nowhere:."])
def test_what_lies_in_the_current_folder_is_not_imported(clone: Path, home: Path, path: str) -> None:
    ran = _run(self_command("plugins", "list"), clone, home, PYTHONPATH=path)
    assert (ran.returncode, ran.stdout.startswith("No plugins")) == (0, True), ran.stderr
    assert not (clone.parent / "marker").exists()


def test_a_module_start_forgets_the_current_folder(clone: Path, home: Path) -> None:
    for name in ("handrail/__init__.py", "handrail/cli/__init__.py", "json.py", "sitecustomize.py"):
        (clone / name).unlink()  # what Python itself takes before any line of ours
    (clone / "handrail" / "cli").rmdir()
    (clone / "handrail").rmdir()
    ran = _run([sys.executable, "-m", "handrail", "plugins", "list"], clone, home)
    assert (ran.returncode, ran.stdout.startswith("No plugins")) == (0, True), ran.stderr
    assert not (clone.parent / "marker").exists()


def test_a_script_start_forgets_the_folder_of_the_script(tmp_path: Path, home: Path) -> None:
    (tmp_path / "typer.py").write_text(_PLANTED.format(marker=str(tmp_path / "marker")))
    script = tmp_path / "handrail"
    script.write_text(f"#!{sys.executable}\nfrom handrail.cli import main\nmain()\n")
    script.chmod(0o755)
    assert _run([str(script), "plugins", "list"], home, home).returncode == 0
    assert not (tmp_path / "marker").exists()


@pytest.mark.parametrize("spelling", ["", ".", "absolute"])
def test_an_entry_point_in_the_current_folder_is_no_plugin(
    clone: Path, monkeypatch: pytest.MonkeyPatch, spelling: str
) -> None:
    monkeypatch.chdir(clone)
    monkeypatch.syspath_prepend(str(clone) if spelling == "absolute" else spelling)
    assert "planted" not in dict(entry_points(GROUP))
    monkeypatch.chdir(clone.parent)
    monkeypatch.syspath_prepend(str(clone))  # said by somebody, and not because we are there
    assert "planted" in dict(entry_points(GROUP))


def test_the_folders_are_absolute_and_hold_this_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", ["", ".", "lib", *sys.path])
    assert all(map(os.path.isabs, import_folders()))
    assert str(SOURCE.parent) in import_folders()


def test_nothing_else_starts_handrail_or_a_module() -> None:
    """A list of words for a process with `sys.executable` says `-I`; only one place names our own program."""
    texts = {path: path.read_text() for path in SOURCE.rglob("*.py")}
    for path in (path for path in texts if "sys.executable" in texts[path]):
        for node in ast.walk(ast.parse(texts[path])):
            if not isinstance(node, ast.List | ast.Tuple | ast.Call):
                continue
            words = [ast.unparse(each) for each in (node.args if isinstance(node, ast.Call) else node.elts)]
            where = f"{path}:{node.lineno}"
            assert "'-m'" not in words or "sys.executable" not in words, f"{where} puts the current folder first"
            after = words[words.index("sys.executable") + 1 :] if "sys.executable" in words else []
            if after and (isinstance(node, ast.List) or after[0].startswith(("'-", "*"))):
                isolated = ("'-I'", "'-IS'", "*bundle.PYTHON_ARGUMENTS")
                assert after[0] in isolated, f"{where} starts Python without -I"
            assert path.name == "own_process.py" or not (after and "_BOOT" in words), where
