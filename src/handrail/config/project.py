"""Find the current project."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

PROJECT_FOLDER = ".handrail"
MCP_FILE = ".mcp.json"
POLICY_FILE = "config.yaml"


def project_folder(start: Path | None = None) -> Path | None:
    """The `.handrail` folder of the current project: in this directory, or the nearest one above."""
    return next(
        (folder / PROJECT_FOLDER for folder in folders_above(start) if (folder / PROJECT_FOLDER).is_dir()), None
    )


def project_mcp_file(start: Path | None = None) -> Path | None:
    """The file in which the current project lists its MCP servers. It is not read here."""
    return next((folder / MCP_FILE for folder in folders_above(start) if (folder / MCP_FILE).is_file()), None)


def folders_above(start: Path | None = None) -> Iterator[Path]:
    """This directory and those above it, as far as they can be a project's: not the home, not the root."""
    try:
        here = start or Path(os.getcwd())
    except FileNotFoundError:  # the working directory was removed
        return
    for folder in (here, *here.parents):
        if folder in (Path.home(), Path(folder.anchor)):
            return
        yield folder
