"""Whether the user trusts a project folder: only then are its instructions to agents used.

What runs code (the project's plugins, MCP servers and skills) is trusted apart, by its content.
"""

from __future__ import annotations

import os
from pathlib import Path

from ..config.paths import state_dir
from ..config.trust import TRUST_FILE, Trust
from .system_prompt import project_root

_TRUSTED, _DECLINED = "folder", "folder-declined"
# The folder is trusted, whatever its files say later.
_ANY_CONTENT = ""


class FolderTrust:
    """The answer for the project of a folder, in the trust file of `home`."""

    def __init__(self, folder: Path, home: str = "") -> None:
        self.project = Path(os.path.realpath(project_root(folder)))
        self._trust = Trust(state_dir(home) / TRUST_FILE)

    def is_trusted(self) -> bool:
        return self._trust.is_trusted(_TRUSTED, self.project, _ANY_CONTENT)

    def is_answered(self) -> bool:
        return self.is_trusted() or self._trust.is_trusted(_DECLINED, self.project, _ANY_CONTENT)

    def answer(self, *, yes: bool) -> None:
        """Remember it, in place of an earlier answer. Raises Denied in a process that an agent's tool started."""
        self._trust.revoke(_DECLINED if yes else _TRUSTED, self.project)
        self._trust.trust(_TRUSTED if yes else _DECLINED, self.project, _ANY_CONTENT)
