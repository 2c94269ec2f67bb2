"""Input typed into a running program: which part of it a shell would run, and as which command.

The text is the current line, with what is typed now at its end. A password is neither judged nor stored. Keys that recall or
complete something (arrows, Tab, Ctrl-R) run what was not typed here, and a line that continues in the next one is not a
command yet: at a shell both ask. Input for a program with another language is read by `console_input`.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from ..judge.programs.tables import LANGUAGES, SHELLS
from ..judge.values.assessment import Finding, Reach, Severity
from ..protocols import Action
from .console_input import Judged, console_input

# Programs that take command lines, and those that lead to one, somewhere.
_SHELLS = SHELLS | frozenset(
    "busybox ssh su sudo doas tmux screen script docker podman kubectl nsenter chroot machinectl toolbox unshare env nohup "
    "setsid mosh distrobox lxc incus".split()
)
_RUNS_LINE = re.compile(r"[\r\n]")
_FORGETS_LINE = re.compile(r"^.*[\x03\x15]", re.DOTALL)  # Ctrl-C, Ctrl-U
_KEYS = re.compile(
    r"[\x00-\x02\x05-\x09\x0b\x0e-\x14\x16-\x1f\x7f]"
)  # but Ctrl-C, Ctrl-D, Ctrl-L, Ctrl-U and ends of lines
_CONTINUED = re.compile(r"\\[\r\n]+\Z")


class Reading(NamedTuple):
    """What the program gets to run, where that starts in the typed text, and whether the program is a shell."""

    text: str
    start: int
    is_shell: bool
    findings: tuple[Finding, ...] = ()
    commands: tuple[Judged, ...] = ()
    """For a program with a prompt of its own: the commands as which its input is judged."""


def read_typed(action: Action) -> Reading | None:
    """What to judge before this is typed. None when it runs nothing."""
    is_shell = _reads_as_shell(action)
    if action.details.get("echo") is False and _asks_for_a_password(action):
        return None
    typed = action.text.replace("\r\n", "\n")
    if is_shell and (found := _unforeseeable(typed)) is not None:
        return Reading(typed, 0, is_shell, (found,))
    if not _RUNS_LINE.search(typed):
        return None
    forgotten = _FORGETS_LINE.match(typed)
    start = forgotten.end() if forgotten else 0
    text = _RUNS_LINE.sub("\n", typed[start:])
    console = None if is_shell else console_input(_program(action), text)
    if console is None:
        return Reading(text, start, is_shell)
    if console.unclear:
        why = f"{console.unclear}: what will run cannot be known"
        found = Finding("input.unclear", Severity.ASK, why, (start, len(action.text)), (), Reach.UNKNOWN)
        return Reading(text, start, is_shell, (found,))
    return Reading(text, start, is_shell, (), console.commands)


def _unforeseeable(typed: str) -> Finding | None:
    keys = [key.start() for key in _KEYS.finditer(typed)]
    if keys:
        why = "keys that recall, complete or edit a line: what the shell will run cannot be known"
        return Finding("input.keys", Severity.ASK, why, (keys[0], keys[-1] + 1), (), Reach.UNKNOWN)
    if _CONTINUED.search(typed):
        why = "the line continues in the next one: what the shell will run cannot be known"
        return Finding("input.continued", Severity.ASK, why, (0, len(typed)), (), Reach.UNKNOWN)
    return None


def _asks_for_a_password(action: Action) -> bool:
    """Whether it is a program that reads a password: not a shell or interpreter, whose echo an agent could have turned off."""
    base = str(action.details.get("foreground") or "").rpartition("/")[2].lstrip("-")
    return bool(base) and base.rstrip("0123456789.") not in SHELLS | LANGUAGES.keys()


def _program(action: Action) -> str:
    """The program in the foreground, if that is known, else the one that was started."""
    name = str(action.details.get("foreground") or "")
    if not name:
        words = [word for word in str(action.details.get("command") or "").split() if "=" not in word]
        name = words[0] if words else ""
    return name.rpartition("/")[2].lstrip("-")


def _reads_as_shell(action: Action) -> bool:
    base = _program(action)
    return not base or base in _SHELLS
