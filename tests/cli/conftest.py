"""Run the real `handrail`, with a home, a folder for temporary files and a working directory of its own."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from typer.testing import CliRunner

from handrail.cli.app import build
from handrail.errors import ConfigError
from tests.support import configure

from .. import fork_server
from ..fork_server import Process
from .terminal import Terminal

INJECTED = Path(__file__).parent / "injected"
PLAIN_SERVER = Path(__file__).parents[1] / "mcp_servers" / "plain.py"
PATIENCE_SECONDS = 300  # for a whole command, which may start several programs


class Ran(NamedTuple):
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


class Cli:
    """`cli("tools", "--json")` runs a command to its end; `start` and `terminal` let one watch it.

    The processes are forked from a Python that has imported everything. With `is_fresh` each one starts from nothing: for what
    goes wrong, or must not happen, while modules are imported.
    """

    is_fresh = False

    def __init__(self, folder: Path, home: Path) -> None:
        self.home = home
        self.cwd = folder / "work"
        self.temp = folder / "temp"
        self.witness = folder / "witness"
        self.env = {
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            "HANDRAIL_HOME": str(home),
            "TMPDIR": str(self.temp),
            "WITNESS": str(self.witness),
            "LANG": "C.UTF-8",
            "TERM": "xterm-256color",
        }
        self.cwd.mkdir()
        self.temp.mkdir()

    def __call__(self, *args: str, stdin: str = "", **env: str) -> Ran:
        with self.start(*args, **env) as process:
            out, err = process.communicate(stdin.encode(), timeout=PATIENCE_SECONDS)
        return Ran(process.returncode, out.decode(), err.decode())

    def start(self, *args: str, stdout: int = subprocess.PIPE, **env: str) -> Process | subprocess.Popen[bytes]:
        start = fork_server.start_fresh if self.is_fresh else fork_server.start
        return start(
            *("-m", "handrail", *args),
            cwd=self.cwd,
            env={**self.env, **env},
            stdin=subprocess.PIPE,
            stdout=stdout,
            stderr=subprocess.PIPE,
        )

    def terminal(self, *args: str, columns: int = 80, **env: str) -> Terminal:
        return Terminal(["-m", "handrail", *args], cwd=self.cwd, env={**self.env, **env}, columns=columns)

    def file(self, name: str, text: str) -> Path:
        path = self.cwd / name
        path.write_text(text)
        return path

    def configure(self, text: str) -> Path:
        """As a person does: it holds. What is not valid is only written."""
        path = self.home / "config.yaml"
        path.write_text(text)
        with contextlib.suppress(ConfigError):
            configure(self.home, text)
        return path


def run_here(*args: str, stdin: str = "") -> Ran:
    """The same in this process, for what needs no process of its own: a fifth of the time."""
    ran = CliRunner().invoke(build(), list(args), prog_name="handrail", catch_exceptions=False, input=stdin)
    return Ran(ran.exit_code, ran.stdout, ran.stderr)


@pytest.fixture
def plain_server(tmp_path: Path) -> str:
    """The program of an MCP server."""
    return str(fork_server.program(tmp_path / "plain", str(PLAIN_SERVER)))


@pytest.fixture
def cli(tmp_path: Path, home: Path) -> Cli:
    return Cli(tmp_path, home)


@pytest.fixture
def with_tools(cli: Cli) -> Cli:
    """The same, with the tools of `injected/` beside the built-in ones."""
    cli.env["PYTHONPATH"] = str(INJECTED)
    return cli
