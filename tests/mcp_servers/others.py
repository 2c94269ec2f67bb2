"""What others wrote for MCP: servers, clients, and the conformance suite. scripts/services/install-mcp.sh installs them."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import yaml

from ..services.components import absent

FOLDER = Path(os.environ.get("HANDRAIL_TEST_MCP", Path.home() / ".cache" / "handrail-tests" / "mcp"))
EXCEPTIONS = Path(__file__).with_name("conformance-exceptions.yaml")
REVISIONS = ("2025-11-25", "2026-07-28")
_NODE = FOLDER / "node_modules" / ".bin"
_SUITE = FOLDER / "node_modules" / "@modelcontextprotocol" / "conformance"
# The suite measures some answers by the clock: what fails beside other tests may once more show what it is worth.
_TRIES = 3


def program(name: str) -> str:
    for folder in (FOLDER / "py" / "bin", FOLDER / "fastmcp" / "bin", _NODE):
        if (folder / name).exists():
            return str(folder / name)
    return _missing(name)


def fastmcp_python() -> str:
    python = FOLDER / "fastmcp" / "bin" / "python"
    return str(python) if python.exists() else _missing("fastmcp")


class Conformance(NamedTuple):
    """What the suite found of one revision: every scenario that it ran, and the output of those that failed."""

    passed: frozenset[str]
    failed: dict[str, str]

    def unexpected(self, side: str, revision: str) -> list[str]:
        """What is not as it should be: a failure that is no exception, an exception that passes, a scenario that did not run."""
        exceptions = _exceptions(side)
        ran = self.passed | self.failed.keys()
        return [
            *(f"{each} fails: {text}" for each, text in self.failed.items() if each not in exceptions),
            *(f"{each} passes; take it out of {EXCEPTIONS.name}" for each in sorted(self.passed & exceptions.keys())),
            *(f"{each} did not run" for each in sorted(required(side, revision) - ran)),
        ]


def _exceptions(side: str) -> dict[str, str]:
    """Why each of these scenarios does not pass."""
    found: dict[str, str] = yaml.safe_load(EXCEPTIONS.read_text())[side] or {}
    return found


def required(side: str, revision: str) -> frozenset[str]:
    """The scenarios that an implementation of the revision must pass."""
    wanted: Any = yaml.safe_load((_SUITE / "requirements" / f"{revision}.yaml").read_text())
    return frozenset(wanted[side])


def conformance(side: str, revision: str, *args: str, cwd: Path) -> Conformance:
    """Run the suite's scenarios for one revision: those that it requires, and those that it runs besides."""
    whole = _run(side, *args, "--requirements", revision, cwd=cwd)
    marks = {name: mark for mark, name in re.findall(r"^([✓✗]) (\S+): ", whole, re.MULTILINE)}
    assert marks, whole[-4000:]
    failed = {}
    for name in [name for name, mark in marks.items() if mark == "✗"]:
        failed[name] = whole
        for _ in range(_TRIES if name not in _exceptions(side) else 0):
            failed[name] = _run(side, *args, "--scenario", name, "--spec-version", revision, "--force", cwd=cwd)
            if re.search(r"^Failed: 0/|, 0 failed", failed[name], re.MULTILINE):
                del failed[name]
                break
    return Conformance(frozenset(marks) - failed.keys(), failed)


def _run(*args: str, cwd: Path) -> str:
    suite = program("conformance")
    node = str(_NODE / "node") if (_NODE / "node").exists() else "node"
    ran = subprocess.run([node, suite, *args], capture_output=True, text=True, cwd=cwd, check=False, timeout=540)
    return ran.stdout + ran.stderr


def _missing(name: str) -> NoReturn:
    absent(name, "run scripts/services/install-mcp.sh")
