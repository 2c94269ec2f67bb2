"""Where the configuration, the state and the cache are: in the `home` that is given, or where this user has them; and where the
current project has its own."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

from .files import make_private

_APPLICATION = "handrail"
_ON_LINUX: bool = sys.platform == "linux"
_LINUX_FOLDERS = {"config": "~/.config", "state": "~/.local/state", "cache": "~/.cache"}


def config_path(home: str | os.PathLike[str] = "", *, environ: Mapping[str, str] | None = None) -> Path:
    """The configuration file, which need not exist. `HANDRAIL_HOME` puts it, the state and the cache in one folder."""
    return (_home(home, environ) or _platform_folder("config", environ)) / "config.yaml"


def state_dir(home: str | os.PathLike[str] = "", *, environ: Mapping[str, str] | None = None) -> Path:
    """What must survive a restart: sessions, stored results, approvals. Nothing is created."""
    folder = _home(home, environ)
    return folder / "state" if folder else _platform_folder("state", environ)


def cache_dir(home: str | os.PathLike[str] = "", *, environ: Mapping[str, str] | None = None) -> Path:
    """What may be deleted at any time. Nothing is created."""
    folder = _home(home, environ)
    return folder / "cache" if folder else _platform_folder("cache", environ)


def _home(home: str | os.PathLike[str], environ: Mapping[str, str] | None) -> Path | None:
    home = home or (os.environ if environ is None else environ).get("HANDRAIL_HOME", "")
    # Absolute, so that a path which someone keeps still means the same file after a change of directory.
    return Path(os.path.abspath(os.path.expanduser(home))) if home else None


def _platform_folder(kind: Literal["config", "state", "cache"], environ: Mapping[str, str] | None) -> Path:
    for given in (environ or {}, os.environ):
        folder = Path(given.get(f"XDG_{kind.upper()}_HOME", ""))
        if folder.is_absolute():
            return folder / _APPLICATION
    if _ON_LINUX:  # as platformdirs has it, whose import would be a tenth of a start
        return Path(os.path.expanduser(_LINUX_FOLDERS[kind])) / _APPLICATION
    import platformdirs

    find = {
        "config": platformdirs.user_config_path,
        "state": platformdirs.user_state_path,
        "cache": platformdirs.user_cache_path,
    }[kind]
    return find(_APPLICATION, appauthor=False)


def remembered(name: str, *, home: str = "") -> dict[str, Any]:
    try:
        known = json.loads((cache_dir(home) / name).read_bytes())
    except (OSError, ValueError):
        return {}
    return known if isinstance(known, dict) else {}


def remember(name: str, known: dict[str, Any], *, home: str = "") -> None:
    """Only this user can read or write it, whatever the umask: some of it says what is imported at the next start."""
    path = cache_dir(home) / name
    temporary = path.with_name(f"{name}.{os.getpid()}")
    try:
        make_private(path.parent)
        path.parent.chmod(0o700)  # one that an earlier version made is as open as the umask then was
        with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600), "w") as file:
            os.fchmod(file.fileno(), 0o600)
            file.write(json.dumps(known))
        temporary.replace(path)
    except OSError:
        with contextlib.suppress(OSError):
            temporary.unlink()


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
