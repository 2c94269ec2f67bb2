"""A folder for a browser's profile and temporary files, removed with the browser, also after it was killed."""

from __future__ import annotations

import asyncio
import os
import shutil
from typing import Any

from ...environments import private_dirs

_PREFIX = "handrail-browser"


class ProfileDir:
    """One browser's folder."""

    def __init__(self) -> None:
        prune(dry_run=False)
        self.folder = private_dirs.make(_PREFIX)

    def remove(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)  # a process that is being killed may still write there


class Loop(asyncio.SelectorEventLoop):
    """An event loop that sets TMPDIR for the processes it starts: Playwright has no option for its driver."""

    def __init__(self, folder: str) -> None:
        super().__init__()
        self._folder = folder

    async def subprocess_exec(self, *program: Any, env: dict[str, str] | None = None, **how: Any) -> Any:
        given = os.environ if env is None else env
        return await super().subprocess_exec(*program, env={**given, "TMPDIR": self._folder}, **how)


def prune(*, dry_run: bool) -> list[str]:
    """The folders that killed processes left behind; removed unless `dry_run`."""
    return private_dirs.prune(_PREFIX, "browser", dry_run=dry_run)
