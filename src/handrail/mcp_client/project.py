"""Where a project says which MCP servers it wants. Looking reads nothing of it."""

from __future__ import annotations

from pathlib import Path

from ..config.project import folders_above

PROJECT_FILE = ".mcp.json"


def project_file(start: Path | None = None) -> Path | None:
    """The `.mcp.json` of the project that we are in: of this directory, or of the nearest one above."""
    return next((folder / PROJECT_FILE for folder in folders_above(start) if (folder / PROJECT_FILE).is_file()), None)
