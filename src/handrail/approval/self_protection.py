"""Protect Handrail's own files (configuration, state, program): an agent that could write them could lift its own gate."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path

from ..config.paths import cache_dir, config_path, state_dir
from ..judge.values.assessment import Finding, Reach, Severity
from ..protocols import Action
from .policy import policy_file

_WHY_OWN = "these are Handrail's own files: an agent cannot change the rules that it is held to"
_WHY_CODE = "this is Handrail's own program: a change of it changes the gate"
_USUAL = "~/.config/handrail"
_PACKAGE = str(Path(__file__).resolve().parents[2])


# `$(pidof handrail)`, `$(python3 -c "import handrail; ...")`, and the same in backquotes.
_FINDS_US = re.compile(
    r"\$\([^()]*(?:\([^()]*\)[^()]*)*handrail(?:[^()]*\([^()]*(?:\([^()]*\)[^()]*)*\))*[^()]*\)|`[^`]*handrail[^`]*`"
)
_ACTS_ON_PROCESSES = re.compile(r"\b(?:p?kill|killall|gdb|lldb|[sl]trace|py-spy|gcore|reptyr|nsenter|perf|bpftrace)\b")


class SelfProtection:
    """Nothing in `folders` may ever be written; symbolic links are resolved once."""

    def __init__(self, folders: Iterable[str | os.PathLike[str]]) -> None:
        named = {os.path.abspath(folder) for folder in folders}
        self._folders = sorted({*named, *map(os.path.realpath, named)}, key=len, reverse=True)
        self._named = [*self._folders, "${HANDRAIL_HOME}", "$HANDRAIL_HOME"]

    def of_file(self, action: Action) -> Finding | None:
        """The finding for writing this path, wherever a link leads."""
        path = os.path.join(action.cwd or os.getcwd(), os.path.expanduser(action.text))
        places = {os.path.normpath(path), os.path.realpath(path)}
        span = (0, len(action.text))
        if any(_is_in(place, folder) for place in places for folder in self._folders):
            return Finding("own.files", Severity.BLOCK, _WHY_OWN, span, (), Reach.HOME)
        if any(_is_in(place, _PACKAGE) or _is_our_name(place) for place in places):
            return Finding("own.program", Severity.ASK, _WHY_CODE, span, (), Reach.SYSTEM)
        return None

    def renamed(self, text: str) -> str:
        """A text, such as a script's, with each of the folders under its usual name; the same object when it names none."""
        for name in self._named:
            if name in text:
                text = text.replace(name, _USUAL)
        return text

    def in_usual_place(self, action: Action) -> str | None:
        """The command with each of the folders replaced by their usual location, which the rules know in every spelling.
        None when it names none of them."""
        command = self.renamed(_with_own_processes(action.text))
        if any(_is_in(action.cwd, folder) for folder in self._folders):
            command = f"cd {_USUAL}; {command}"
        return None if command is action.text or command == action.text else command


def _with_own_processes(command: str) -> str:
    """The command with what would print the number of our process, or a path of ours, replaced by a name that the rules know."""
    if _ACTS_ON_PROCESSES.search(command) is None:
        return _FINDS_US.sub(_USUAL, command) if "handrail" in command else command
    command = _FINDS_US.sub("handrail.process", command)
    return re.sub(rf"(?<![\w./]){os.getpid()}(?![\w./])", "handrail.process", command)


def private_dirs(home: str = "") -> list[Path]:
    """The configuration, state and cache in `home` (by default this user's), what their links point to, and the project's
    policy file."""
    config = config_path(home)
    places = [config.parent, state_dir(home), cache_dir(home)]
    if config.is_symlink():
        places.append(Path(os.path.realpath(config)))
    project = policy_file()
    return [*places, project] if project is not None else places


def _is_our_name(path: str) -> bool:
    """Whether a file would be found instead of our program, once it lies in a folder of programs."""
    folder, name = os.path.split(path)
    return name == "handrail" and (os.path.basename(folder) in ("bin", "sbin") or folder in os.get_exec_path())


def _is_in(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")
