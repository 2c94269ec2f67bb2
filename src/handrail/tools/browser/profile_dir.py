"""Where a browser and its driver keep what only they need: a folder that goes with them, also when they were killed."""

from __future__ import annotations

import asyncio
import os
import shutil
from typing import Any

from ...environments import private_dirs

_PREFIX = "handrail-browser"


class OwnFiles:
    """One browser's folder."""

    def __init__(self) -> None:
        prune(dry_run=False)
        self.folder = private_dirs.make(_PREFIX)

    def remove(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)  # a process that is being killed may still write there


class Loop(asyncio.SelectorEventLoop):
    """A loop that gives what it starts a folder for temporary files: Playwright does not let us say one to its driver."""

    def __init__(self, folder: str) -> None:
        super().__init__()
        self._folder = folder

    async def subprocess_exec(self, *program: Any, env: dict[str, str] | None = None, **how: Any) -> Any:
        given = os.environ if env is None else env
        return await super().subprocess_exec(*program, env={**given, "TMPDIR": self._folder}, **how)


def prune(*, dry_run: bool) -> list[str]:
    """What processes that were killed have left, and is removed unless `dry_run`."""
    return private_dirs.prune(_PREFIX, "browser", dry_run=dry_run)
