"""What a hook's command runs: its relative paths are relative to the configuration's folder, never to the current one.

The current folder is the project's, where an agent may write: a command from there would be the agent's own.
"""

from __future__ import annotations

import os
import re
import shlex
from pathlib import Path
from typing import NamedTuple

from ..errors import ConfigError

_SHELL_SIGNS = re.compile(r"[|&;<>()$`\\*?\[\]{}~!\n#=]")
_RUN_FILES = re.compile(
    r"(?:.*/)?(?:(?:ba|da|z|k|a)?sh|fish|python[\d.]*|pypy[\d.]*|node|deno|bun|ruby|perl|php|lua|tclsh|Rscript|\.|source|exec|"
    r"env|nice|time|timeout|xargs|sudo)"
)


# Only root writes there, and updates change what is in it.
_SYSTEM = ("/usr/", "/bin/", "/sbin/", "/lib/", "/lib64/", "/opt/", "/nix/")


class HookCommand(NamedTuple):
    """A command for the shell, and the files in it, which are pinned to their content."""

    text: str
    files: tuple[str, ...]


def resolved(command: str, folder: Path) -> HookCommand:
    """The command with its relative files made absolute. Raises ConfigError for one that would be looked up where an agent may
    write."""
    try:
        words = shlex.split(command)
    except ValueError:
        words = command.split()
    is_plain = not _SHELL_SIGNS.search(command)
    runs_file = bool(words) and _RUN_FILES.fullmatch(words[0]) is not None
    found: list[str] = []
    for number, word in enumerate(words):
        if os.path.isabs(word):
            found.append(word)
        elif _is_code(word, number, runs_file=runs_file):
            found.append(_beside(word, folder, is_plain=is_plain))
        else:
            found.append(word)
    files = tuple(dict.fromkeys(filter(_is_pinned, found)))
    return HookCommand(shlex.join(found) if is_plain and found != words else command, files)


def _is_pinned(word: str) -> bool:
    return os.path.isabs(word) and os.path.isfile(word) and not os.path.realpath(word).startswith(_SYSTEM)


def _is_code(word: str, number: int, *, runs_file: bool) -> bool:
    """Whether a relative word names a program or a script to run, as far as can be seen."""
    if word.startswith(("./", "../")) or (number == 0 and "/" in word):
        return True
    return runs_file and number > 0 and not word.startswith("-") and (os.path.isfile(word) or "." in word)


def _beside(word: str, folder: Path, *, is_plain: bool) -> str:
    place = os.path.normpath(folder / word)
    if not is_plain:
        raise ConfigError(f"{word} is relative, in a command that is more than plain words; write {place}")
    if not os.path.isfile(place):
        raise ConfigError(
            f"{word} is looked for beside config.yaml, and {place} does not exist; write its absolute path"
        )
    return place
