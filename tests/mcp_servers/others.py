"""What others wrote for MCP: servers, clients, and the conformance suite. scripts/services/install-mcp.sh installs them."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import NoReturn

from ..services.components import absent

FOLDER = Path(os.environ.get("HANDRAIL_TEST_MCP", Path.home() / ".cache" / "handrail-tests" / "mcp"))
EXPECTED_FAILURES = Path(__file__).with_name("expected-failures.yaml")
_NODE = FOLDER / "node_modules" / ".bin"


def program(name: str) -> str:
    for folder in (FOLDER / "py" / "bin", FOLDER / "fastmcp" / "bin", _NODE):
        if (folder / name).exists():
            return str(folder / name)
    return _missing(name)


def fastmcp_python() -> str:
    python = FOLDER / "fastmcp" / "bin" / "python"
    return str(python) if python.exists() else _missing("fastmcp")


def conformance(*args: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run the suite. What it is known to fail, and why, is in expected-failures.yaml."""
    suite = program("conformance")
    node = str(_NODE / "node") if (_NODE / "node").exists() else "node"
    command = [node, suite, *args, "--expected-failures", str(EXPECTED_FAILURES)]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, check=False, timeout=240)


def _missing(name: str) -> NoReturn:
    absent(name, "run scripts/services/install-mcp.sh")
