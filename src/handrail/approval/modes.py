"""How much an agent may do by itself: plan, ask, auto or yolo. A mode tightens or loosens the policy for one session.

    plan    nothing that changes anything runs; reading does
    ask     edits, commands and other tools that change something ask
    auto    the gate decides: what destroys asks
    yolo    nobody is asked; the floor and the deny list hold

The mode of a session comes from the person: no tool sets it, and a session without one has the mode of its runtime.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import InvalidArguments
from ..judge.values.assessment import Finding, Reach, Severity
from ..protocols import ActionKind
from .policy import PLAN_RULE, DecidedBy, Judged, Policy

if TYPE_CHECKING:
    from ..protocols import Action

_NO_FILE = re.compile(r"[0-9&]*>>?\s*/dev/null\b|[0-9]*>&[0-9-]")
_OPERANDS = "operands"
_CHANGES = frozenset(ActionKind) - {ActionKind.FILE_READ}


class Mode(StrEnum):
    PLAN = "plan"
    ASK = "ask"
    AUTO = "auto"
    YOLO = "yolo"

    @property
    def next(self) -> Mode:
        modes = list(Mode)
        return modes[(modes.index(self) + 1) % len(modes)]


MEANINGS = {
    Mode.PLAN: "nothing that changes anything runs",
    Mode.ASK: "edits and commands ask you",
    Mode.AUTO: "what destroys asks you",
    Mode.YOLO: "you are not asked; blocked actions and your deny list still hold",
}


class Modes:
    """The mode of each session, and `default` for all others."""

    def __init__(self) -> None:
        self.default = Mode.AUTO
        self._sessions: dict[str, Mode] = {}

    def of(self, session_id: str | None, usual: Mode | None = None) -> Mode:
        """`usual` is for a session without a mode of its own in which somebody can be asked; see `usual_mode`."""
        return self._sessions.get(session_id or "", usual or self.default)

    def set(self, session_id: str, mode: Mode) -> None:
        self._sessions[session_id] = mode

    def inherit(self, child: str, parent: str) -> None:
        """A child agent has its parent's mode."""
        if parent in self._sessions:
            self._sessions[child] = self._sessions[parent]

    def forget(self, session_id: str) -> None:
        self._sessions.pop(session_id, None)

    def are_strict(self, session_id: str | None) -> bool:
        """Whether tools that name no actions are reviewed too."""
        return self.of(session_id) in (Mode.PLAN, Mode.ASK)


def usual_mode(profile: object) -> Mode:
    """The mode in which a conversation starts: where the kernel contains nothing, edits and commands ask."""
    return Mode.ASK if profile == "open" else Mode.AUTO


def read_mode(name: str) -> Mode:
    """Raises InvalidArguments."""
    try:
        return Mode(name.strip().lower())
    except ValueError:
        raise InvalidArguments(f"there is no mode {name!r}; choose plan, ask, auto or yolo") from None


def loosened(policy: Policy, mode: Mode) -> Policy:
    return policy._replace(ask_disabled_by=DecidedBy.YOLO) if mode is Mode.YOLO else policy


def tightened(judged: Judged, tool: str, mode: Mode) -> Judged:
    """With what the mode adds: in `plan` a refusal, in `ask` a question."""
    action = judged.action
    if mode not in (Mode.PLAN, Mode.ASK) or action.kind not in _CHANGES or _only_reads(judged):
        return judged
    place = (0, len(action.text))
    if mode is Mode.PLAN:
        added = Finding(PLAN_RULE, Severity.BLOCK, "this session only plans: nothing may be changed yet", place)
    elif any(finding.severity is Severity.ASK for finding in judged.findings):
        return judged
    else:
        added = _question(judged, tool, place)
    return judged._replace(findings=(*judged.findings, added))


def _question(judged: Judged, tool: str, place: tuple[int, int]) -> Finding:
    action = judged.action
    if action.kind is ActionKind.FILE_WRITE:
        inside = _is_inside(action)
        return Finding("mode.edit", Severity.ASK, "edits files", place, (), Reach.PROJECT if inside else Reach.OUTSIDE)
    if action.kind is ActionKind.COMMAND and judged.command_lines:
        programs = dict.fromkeys(re.sub(r"[^a-z0-9_-]+", "-", argv[0].lower()) for argv in judged.command_lines if argv)
        name = f"mode.command.{'+'.join(programs)}"
        return Finding(name, Severity.ASK, f"runs {' and '.join(programs)}", place, (), Reach.PROJECT)
    return Finding(f"mode.tool.{tool.lower()}", Severity.ASK, f"calls {tool}", place)


def _is_inside(action: Action) -> bool:
    root = str(action.details.get("project") or action.cwd)
    return bool(root) and Path(action.text).is_relative_to(root)


def _only_reads(judged: Judged) -> bool:
    """Whether a command changes nothing, as far as its text tells: readers only, and no output into a file."""
    if judged.action.kind is not ActionKind.COMMAND or not judged.command_lines:
        return False
    if any(finding.severity is not Severity.NOTE for finding in judged.findings):
        return False
    return ">" not in _NO_FILE.sub("", judged.action.text) and all(map(reads, judged.command_lines))


def reads(argv: Sequence[str]) -> bool:
    """Whether this command line is one of `reading_commands.txt`."""
    known = _readers()
    for length in (1, 2, 3):
        refused = known.get(tuple(argv[:length]))
        if refused is not None:
            return not any(_does_more(word, refused) for word in argv[length:])
    return False


def _does_more(word: str, refused: tuple[str, ...]) -> bool:
    is_operand = not word.startswith(("-", "+"))
    return word == "?" or word.startswith(refused) or (is_operand and _OPERANDS in refused)


@functools.cache
def _readers() -> dict[tuple[str, ...], tuple[str, ...]]:
    """Each command with the options that it must not have."""
    found = {}
    for line in Path(__file__).with_name("reading_commands.txt").read_text("utf-8").splitlines():
        words = line.split()
        if words and not line.startswith("#"):
            command = tuple(word for word in words if not word.startswith("!"))
            found[command] = tuple(word[1:] for word in words if word.startswith("!") and len(word) > 1)
    return found
