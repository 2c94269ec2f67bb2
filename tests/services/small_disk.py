"""A disk that a test can fill."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .components import absent


@contextmanager
def small_disk(folder: Path, size: str) -> Iterator[Path]:
    """A new folder below this one, which has no more room than `size`, such as `256k`."""
    disk = folder / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size},mode=700", "tmpfs", str(disk)]
    if subprocess.run(mount, check=False).returncode != 0:
        absent("a small disk", "run the tests as root")
    try:
        yield disk
    finally:
        subprocess.run(["umount", "-l", disk], check=True)
