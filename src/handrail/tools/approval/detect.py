"""Judge a command: `assess` says everything, `detect_dangerous_command` the shortest of it. Nothing is ever run."""

from __future__ import annotations

import contextlib
import gc
import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from .assessment import Assessment, Verdict
from .shell.frames import Frame
from .shell.judgement import Judgement, Limit
from .shell.parser import parse
from .shell.running import Running
from .shell.state import State
from .shell.syntax import ShellSyntaxError, TooLarge
from .shell.values import UNKNOWN

if TYPE_CHECKING:
    from .rules import Rulebook

DANGEROUS_PATTERNS: list[tuple[str, str]]
MAX_CHARS = 2_000_000
_LONG = 4_000
_TURNING = re.compile("[\u202a-\u202e\u2066-\u2069]")


def assess(
    command: str,
    *,
    cwd: str | None = None,
    project: str | None = None,
    variables: Mapping[str, str | None] | None = None,
    rulebook: Rulebook | None = None,
) -> Assessment:
    """What would run, what is dangerous in it, and what cannot be known.

    `cwd` is the absolute directory that the command starts in, `project` the one in which work is expected (by default
    the same, unless that is a home or belongs to the system); without them, relative paths count as the project's.
    `variables` are those that the shell has already, None for a value that is not known.
    """
    with _uncollected(len(command)):
        state = State(cwd or ".", variables)
        judgement = _judged(command, state, project or _project(cwd), rulebook, recording=True)
        return Assessment(command, judgement.sorted_findings(), judgement.segments(), judgement.unknowns(command))


def _project(cwd: str | None) -> str:
    from . import paths

    if cwd is None or not paths.classes(cwd).isdisjoint(
        ("root", "home-root", "system-root", "config", "kernel", "device")
    ):
        return ""
    return cwd


def detect_dangerous_command(command: str) -> tuple[bool, str | None, str | None]:
    """(dangerous, the rule's id, why)."""
    with _uncollected(len(command)):
        findings = _judged(command, State("."), "", None, recording=False).sorted_findings()
    if Assessment(command, findings[:1]).verdict is Verdict.ALLOW:
        return False, None, None
    return True, findings[0].rule, findings[0].why


def __getattr__(name: str) -> list[tuple[str, str]]:
    if name != "DANGEROUS_PATTERNS":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    global DANGEROUS_PATTERNS  # made when first asked for: it needs every rule
    DANGEROUS_PATTERNS = _patterns()
    return DANGEROUS_PATTERNS


def _patterns() -> list[tuple[str, str]]:
    """What the rules are about, as `(regex, description)`: for listings, and for those who know such lists.

    The judge does not use them. A pattern finds the programs of a rule, or its examples when the rule is about no program.
    """
    from .rules import builtin
    from .rules.usage import programs

    found = []
    for rule in builtin().rules.values():
        names = sorted({name for use in rule.uses for name in programs(use) if re.fullmatch(r"[\w.+-]+", name)})
        if names:
            found.append((r"(?:^|[\s;&|(`/])(?:" + "|".join(map(re.escape, names)) + r")(?=$|[\s;&|)`])", rule.why))
        else:
            found.append(("|".join(map(re.escape, rule.match)), rule.why))
    return found


def _judged(command: str, state: State, project: str, rulebook: Rulebook | None, *, recording: bool) -> Judgement:
    from .rules import builtin

    judgement = Judgement(rulebook or builtin(), project, recording=recording)
    whole = (0, len(command))
    if len(command) > MAX_CHARS:
        judgement.report("limit.exceeded", ["the command is too long"], whole)
        return judgement
    if turning := _TURNING.search(command):
        judgement.report("text.hidden", [f"U+{ord(turning.group()):04X}"], turning.span())
    try:
        _follow(command.replace(UNKNOWN, "?"), judgement, state)
    except (Limit, TooLarge) as error:
        judgement.report("limit.exceeded", [str(error)], whole)
    except ShellSyntaxError as error:
        judgement.report("parse.error", [str(error)], (min(error.position, len(command)), len(command)))
    return judgement


def _follow(command: str, judgement: Judgement, state: State) -> None:
    script, text_map = parse(command)
    walk = Running(judgement, state)
    walk.frame = Frame(text_map=text_map)
    try:
        walk.script(script, None)
        walk.definitions()
    finally:
        del walk.expander  # it knows the walk too: without this, all of it would wait for the collector


@contextlib.contextmanager
def _uncollected(size: int) -> Iterator[None]:
    """A long command makes many objects and no garbage: the collector would look at all of them again and again."""
    if size < _LONG or not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
