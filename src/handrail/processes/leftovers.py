"""Remove what is left of background processes that are no longer needed."""

import contextlib
import os
import time
from collections.abc import Iterator
from pathlib import Path

from ..environments.backend_table import DEFAULT_TASK, EnvironmentSettings
from ..environments.local_environment import LocalEnvironment
from ..environments.shell_host import jobs, proc
from ..environments.shell_host.wire import Packet
from ..errors import ToolError
from .table import ProcessTable

_SURELY_STARTED_SECONDS = 60.0


def prune_expired(table: ProcessTable, *, dry_run: bool) -> list[str]:
    """Forget ended processes that have expired. Returns what was, or would be, done: one line each."""
    lines = []
    for tracked in table.expired():
        lines.append(f"{tracked.id} ({tracked.record.command[:60]}), which ended long ago, and its log")
        if not dry_run:
            try:
                table.forget(tracked.id)
            except (ToolError, OSError):  # its environment is gone, and its log with it
                table.drop(tracked.id)
    return lines


def prune_unknown(table: ProcessTable, folder: Path, *, dry_run: bool) -> list[str]:
    """Remove from this machine what no table knows. One that runs was started to survive: it is added to the table."""
    registered = {tracked.record.process_id for tracked in table.list()}
    lines = []
    for path, status in _unknown(folder, registered):
        if status is None or status["state"] != "running":
            lines.append(f"what is left of a background process in {path}")
            if not dry_run:
                jobs.forget(path)
            continue
        named = f"background process {status['pid']} ({status['command'][:60]})"
        lines.append(f"{named} is in no table; it is added to this one")
        settings = EnvironmentSettings(DEFAULT_TASK, LocalEnvironment.name)
        for process in () if dry_run else LocalEnvironment("/", processes_dir=str(folder)).processes():
            if process.id == status["id"]:
                table.add(process, task_id=DEFAULT_TASK, session_id=None, settings=settings)
    return lines


def _unknown(folder: Path, registered: set[str]) -> Iterator[tuple[str, Packet | None]]:
    """Folders of processes that are not registered, and that no running runtime is about to register."""
    with contextlib.suppress(FileNotFoundError), os.scandir(folder) as entries:
        for entry in entries:
            if entry.name in registered or time.time() - entry.stat().st_mtime < _SURELY_STARTED_SECONDS:
                continue
            try:
                status = jobs.poll(entry.path)
            except (OSError, KeyError):
                yield entry.path, None
                continue
            has_owner = status["boot"] == proc.boot_id() and proc.is_alive(status["keeper"], status["keeper_start"])
            if not has_owner:
                yield entry.path, status
