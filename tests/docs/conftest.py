"""What the examples of the documentation need: its services, and an installation as a new user has it."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

from tests.support import made_once
from tests.tools.media.conftest import provider

from .page_blocks import ROOT

__all__ = ["provider"]


@pytest.fixture(scope="session")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs of a fresh environment into which the wheel was installed: nothing in it leads to this clone. The packages
    that Handrail needs are those of the environment that runs the tests."""
    return made_once(tmp_path_factory, "installed", _install) / "venv/bin"


def _install(folder: Path) -> None:
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = folder.glob("*.whl")
    venv.create(folder / "venv", with_pip=False)
    python = folder / "venv/bin/python"
    (site,) = folder.glob("venv/lib/python*/site-packages")
    # A path in such a file is taken as it is: the .pth files there, and so the editable installation, are not.
    (site / "needed.pth").write_text(sysconfig.get_path("purelib") + "\n")
    install = [sys.executable, "-m", "pip", "--python", str(python), "install", "-q", "--no-index", "--no-deps"]
    subprocess.run([*install, "--disable-pip-version-check", str(wheel)], check=True, capture_output=True)
    found = subprocess.run([python, "-c", "import handrail; print(handrail.__file__)"], capture_output=True, text=True)
    assert found.stdout.startswith(str(site)), found
