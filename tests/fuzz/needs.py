"""A program that a test needs: missing, it is a failure in CI, elsewhere a skipped test that says how to get it."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest


def needs(program: str, cure: str) -> None:
    beside_python = Path(sys.executable).parent / program
    if shutil.which(program) is None and not beside_python.exists():
        if os.environ.get("CI"):
            pytest.fail(f"needs {program}: {cure} (in CI nothing may be missing)", pytrace=False)
        pytest.skip(f"needs {program}: {cure}")
