"""Files of a work tree that make programs outside of a sandbox run something: git, editors, direnv, and Handrail itself."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator

_OF_TOOLS = (".handrail", ".mcp.json", ".envrc", ".vscode", ".idea")
_OF_GIT = ("config", "config.worktree", "hooks", "gitdir", "commondir", "info/attributes")
_HOOKS_PATH = re.compile(r"^\s*hooksPath\s*=\s*\"?([^\"#;\n]+)", re.MULTILINE | re.IGNORECASE)
_MAX_REPOSITORIES = 500


def runs_elsewhere(tree: str) -> list[str]:
    """Those that exist. A repository without hooks gets an empty folder for them, so that it can be kept as it is."""
    found = [os.path.join(tree, name) for name in _OF_TOOLS]
    pointer = os.path.join(tree, ".git")
    if os.path.isfile(pointer):  # a worktree or a submodule
        found.append(pointer)
    for repository in _repositories(pointer, tree):
        with contextlib.suppress(OSError):
            os.mkdir(os.path.join(repository, "hooks"))
        found += [os.path.join(repository, name) for name in _OF_GIT]
        found += _configured_hooks(repository, tree)
    return [path for path in found if os.path.exists(path) and not os.path.islink(path)]


def _repositories(pointer: str, tree: str) -> Iterator[str]:
    """The folder of the work tree's repository, if it lies in the tree, and of its submodules and worktrees."""
    folder = _leads_to(pointer)
    if folder is None or not os.path.realpath(folder).startswith(tree.rstrip("/") + "/"):
        return
    yield folder
    count = 0
    for inner in ("modules", "worktrees"):
        for place, folders, files in os.walk(os.path.join(folder, inner)):
            if "HEAD" in files:
                folders[:] = [name for name in folders if name == "modules"]
                yield place
                count += 1
            if count > _MAX_REPOSITORIES:
                return


def _leads_to(pointer: str) -> str | None:
    if os.path.isdir(pointer):
        return pointer
    try:
        with open(pointer, encoding="utf-8", errors="replace") as file:
            word, _, path = file.read(4096).partition(":")
    except OSError:
        return None
    return os.path.normpath(os.path.join(os.path.dirname(pointer), path.strip())) if word == "gitdir" else None


def _configured_hooks(repository: str, tree: str) -> list[str]:
    """Hooks that lie elsewhere in the work tree."""
    try:
        with open(os.path.join(repository, "config"), encoding="utf-8", errors="replace") as file:
            named = _HOOKS_PATH.findall(file.read(1 << 20))
    except OSError:
        return []
    paths = [os.path.normpath(os.path.join(tree, os.path.expanduser(path.strip()))) for path in named]
    return [path for path in paths if path.startswith(tree.rstrip("/") + "/")]
