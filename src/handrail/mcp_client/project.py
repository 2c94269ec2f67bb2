"""Where a project says which MCP servers it wants. Looking reads nothing of it."""

from __future__ import annotations

import os
from pathlib import Path

PROJECT_FILE = ".mcp.json"


def project_file(start: Path | None = None) -> Path | None:
    """The `.mcp.json` of the project that we are in: of this directory, or of the nearest one above."""
    here = start or Path(os.getcwd())
    for folder in (here, *here.parents):
        if folder in (Path.home(), Path(folder.anchor)):
            return None
        if (folder / PROJECT_FILE).is_file():
            return folder / PROJECT_FILE
    return None
