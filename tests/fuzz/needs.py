"""A program that a test needs: missing, it is a failure in CI, elsewhere a skipped test that says how to get it."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from ..services.components import absent


def needs(program: str, cure: str) -> None:
    beside_python = Path(sys.executable).parent / program
    if shutil.which(program) is None and not beside_python.exists():
        absent(program, cure)
