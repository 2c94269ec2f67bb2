from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import handrail
from handrail.config.config_file import ConfigFile

if TYPE_CHECKING:
    from collections.abc import Callable

SOURCES = str(Path(handrail.__file__).parents[1])


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "config.yaml"


@pytest.fixture
def file(path: Path) -> ConfigFile:
    return ConfigFile(path)


@pytest.fixture
def start_python() -> Callable[..., subprocess.Popen[str]]:
    """Start a Python process that can import the package, installed or not."""

    def start(code: str, *arguments: object) -> subprocess.Popen[str]:
        environ = {**os.environ, "PYTHONPATH": SOURCES}
        command = [sys.executable, "-c", code, *map(str, arguments)]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environ)

    return start
