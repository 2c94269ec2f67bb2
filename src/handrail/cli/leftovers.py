"""What runtimes that are gone have left on this machine and in their environments, and taking it away."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from ..config.paths import state_dir
from ..errors import HandrailError
from ..processes.pruning import prune_expired, prune_unknown
from ..tools.browser import profile_dir
from .demo import FOLDER_PREFIX

if TYPE_CHECKING:
    from ..app import Handrail


def take_away(here: Handrail, *, dry_run: bool) -> tuple[list[str], list[str]]:
    """What there was, and what went wrong: one line each."""
    found: list[str] = []
    problems: list[str] = []
    backends = here.environments.backends
    for name in backends.names():
        try:
            found += backends.get(name).prune(dry_run)
        except (HandrailError, OSError) as error:  # the others may still be in order
            problems.append(f"{name}: {error}")
    found += prune_expired(here.processes, dry_run=dry_run)
    found += prune_unknown(here.processes, state_dir() / "processes", dry_run=dry_run)
    found += profile_dir.prune(dry_run=dry_run)
    for folder in _demo_folders():
        found.append(f"the folder of a demonstration that was cut off, {folder}")
        if not dry_run:
            shutil.rmtree(folder, ignore_errors=True)
    return found, problems


def _demo_folders() -> list[Path]:
    """Those of this user whose process is gone."""
    folders = []
    for path in Path(tempfile.gettempdir()).glob(f"{FOLDER_PREFIX}*"):
        pid = re.match(rf"{FOLDER_PREFIX}(\d+)-", path.name)
        if pid and path.stat().st_uid == os.getuid() and not os.path.exists(f"/proc/{pid[1]}"):
            folders.append(path)
    return folders
