"""What is in the wheel, and what its extras bring."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Iterator
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
# Stands for npm, which would need the network: what it builds is one page.
_NPM = """#!/bin/sh
case "$*" in *build*) mkdir -p ../src/handrail/serve/console && echo page >../src/handrail/serve/console/index.html ;; esac
"""


_FACE = ("__init__.py", "__init__.pyi")


@pytest.mark.parametrize("has_npm", [True, False])
def test_the_wheel_of_a_fresh_clone_has_the_console_where_npm_can_build_it(tmp_path: Path, has_npm: bool) -> None:
    clone, programs = tmp_path / "clone", tmp_path / "bin"
    for name in ("src/handrail/cli/demo", "scripts"):
        shutil.copytree(ROOT / name, clone / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "hatch_build.py", "README.md", "LICENSE", *map("src/handrail/{}".format, _FACE)):
        shutil.copy(ROOT / name, clone / name)
    (clone / "web").mkdir()
    (clone / "web/index.html").touch()
    programs.mkdir()
    for name in ("bash", "dirname", "find", "sort", "xargs", "cksum", "cat", "mkdir", "sh"):
        (programs / name).symlink_to(str(shutil.which(name)))
    if has_npm:
        (programs / "npm").write_text(_NPM)
        (programs / "npm").chmod(0o755)
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    built = subprocess.run(build, cwd=clone, env={**os.environ, "PATH": str(programs)}, capture_output=True, text=True)
    assert built.returncode == 0, built.stderr
    (wheel,) = tmp_path.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert ("handrail/serve/console/index.html" in names) == has_npm
    assert "handrail/__init__.pyi" in names, "it says which names the package has"
    assert ("npm was not found" in built.stdout + built.stderr) != has_npm


def test_an_extra_that_is_named_for_a_missing_module_brings_that_module() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    brought = {name: {re.split(r"[^\w.-]", each)[0].lower() for each in needs} for name, needs in extras.items()}
    homes = packages_distributions()
    asked = list(_extras_in_code())
    assert ("agent", "httpx") in asked
    wrong = [
        (extra, module)
        for extra, module in asked
        if not brought.get(extra, set()) & {home.lower() for home in homes.get(module.partition(".")[0], [module])}
    ]
    assert not wrong


def _extras_in_code() -> Iterator[tuple[str, str]]:
    """Each extra and module in calls of `missing(extra, *modules)` and `extra_module(module, extra, ...)`."""
    for path in ROOT.glob("src/handrail/**/*.py"):
        text = path.read_text("utf-8")
        for node in ast.walk(ast.parse(text)) if re.search(r"\b(missing|extra_module)\(", text) else ():
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
                continue
            words = [each.value for each in node.args if isinstance(each, ast.Constant) and isinstance(each.value, str)]
            if node.func.id == "missing":
                yield from ((words[0], module) for module in words[1:])
            elif node.func.id == "extra_module":
                yield words[1], words[0]
