"""Judge a command: `assess` returns everything, `detect_dangerous_command` only the worst finding. Nothing is ever run."""

import dataclasses
import gc
import re
from collections.abc import Mapping

from .grammar.parser import parse
from .grammar.syntax import ShellSyntaxError, SourceMap, TooLarge
from .rules import Rulebook, builtin
from .values import paths
from .values.assessment import Assessment, Finding, Severity
from .values.disk import Disk, Homes, ShellMemory, Sources, local_homes
from .values.word_values import UNKNOWN, Value
from .walk import program_handlers
from .walk.judgement import Judgement, Limit
from .walk.state import State
from .walk.walk import Walk

MAX_CHARS = 2_000_000
_LONG = 4_000
_CODE_PATHS = frozenset("PYTHONPATH PERL5LIB RUBYLIB NODE_PATH COMPOSE_FILE".split())
_MAX_ALIASES = 200
_MAX_REMEMBERED = 10_000
_BIDI_CONTROL = re.compile("[\u202a-\u202e\u2066-\u2069]")


def assess(
    command: str,
    *,
    cwd: str | None = None,
    project: str | None = None,
    variables: Mapping[str, str | None] | None = None,
    rulebook: Rulebook | None = None,
    homes: Homes | None = None,
    disk: Disk | None = None,
    shell: ShellMemory | None = None,
) -> Assessment:
    """What would run, what is dangerous in it, and what cannot be known.

    `cwd` is the absolute directory that the command starts in, `project` the one in which work is expected (by default
    the same, unless that is a home or belongs to the system); without them, relative paths count as the project's.
    `variables` are those that the shell already has, None for a value that is not known. `homes` are those of the machine
    that it runs on, by default this one. With a `disk`, the scripts, build files and modules that the command would run are
    read too. `shell` is what earlier commands left in the shell.
    """
    with paths.with_homes(homes or local_homes()):
        state = State(cwd or ".", variables)
        scope = _project(project or cwd)
        judgement = _judged(command, state, scope, rulebook, recording=True, disk=disk, shell=shell)
        findings = judgement.sorted_findings()
        if findings and not scope and "home-root" in paths.classes(project or cwd or "."):
            findings = tuple(map(_in_a_home, findings))
        return Assessment(command, findings, judgement.segments(), judgement.unknowns(command))


def _in_a_home(finding: Finding) -> Finding:
    """Work in a home itself is not in a project: the reason must not speak of one."""
    why = finding.why.replace("outside the project", "in your home or elsewhere").replace("the project", "your home")
    return finding if why == finding.why else dataclasses.replace(finding, why=why)


def _project(place: str | None) -> str:
    """Where work is expected: not in a whole home, nor in what belongs to the system."""
    if place is None or not paths.classes(place).isdisjoint(
        ("root", "home-root", "system-root", "config", "kernel", "device", "credential", "startup")
    ):
        return ""
    return place


def detect_dangerous_command(command: str) -> tuple[bool, str | None, str | None]:
    """(dangerous, the rule's id, why)."""
    with paths.with_homes(local_homes()):
        judgement = _judged(command, State("."), "", None, recording=False)
    for finding in judgement.sorted_findings()[:1]:
        if finding.severity is not Severity.NOTE:
            return True, finding.rule, finding.why
    return False, None, None


def _judged(
    command: str,
    state: State,
    project: str,
    rulebook: Rulebook | None,
    *,
    recording: bool,
    disk: Disk | None = None,
    shell: ShellMemory | None = None,
) -> Judgement:
    judgement = Judgement(rulebook or builtin(), project, length=len(command), recording=recording)
    whole = (0, len(command))
    if len(command) > MAX_CHARS:
        judgement.report("limit.exceeded", ["the command is too long"], whole)
        return judgement
    if not command.isascii():
        if control := _BIDI_CONTROL.search(command):
            judgement.report("text.hidden", [f"U+{ord(control.group()):04X}"], control.span())
        command = command.replace(UNKNOWN, "?")
    # A long command makes many objects and no garbage: the collector would scan all of them again and again.
    pauses_collector = (len(command) >= _LONG or disk is not None) and gc.isenabled()
    if pauses_collector:
        gc.disable()
    try:
        _follow(command, judgement, state, disk, shell)
    except (Limit, TooLarge, RecursionError) as error:
        judgement.report("limit.exceeded", [str(error)], whole)
    except ShellSyntaxError as error:
        judgement.report("parse.error", [str(error)], (min(error.position, len(command)), len(command)))
    finally:
        if pauses_collector:
            gc.enable()
    return judgement


def _follow(command: str, judgement: Judgement, state: State, disk: Disk | None, shell: ShellMemory | None) -> None:
    script, text_map = parse(command)
    sources = None if disk is None else Sources(disk)
    walk = Walk(judgement, state, program_handlers, SourceMap(text_map=text_map), sources)
    known = {name: Value(text) for name, text in shell.aliases.items()} if shell is not None else {}
    state.aliases.update(known)
    if shell is not None:
        for name, text in shell.variables.items():
            state.variables.setdefault(name, Value(text))
            walk.variables.exported.add(name)
        if shell.path:
            state.variables["PATH"] = Value(shell.path)
    try:
        walk.script(script, None)
        if shell is not None:
            _remember(walk, shell)
        for alias, value in known.items():  # they were judged when they were set
            if state.aliases.get(alias) is value:
                del state.aliases[alias]
        if state.functions or state.aliases:
            walk.definitions()
    finally:
        walk.close()


def _remember(walk: Walk, shell: ShellMemory) -> None:
    state = walk.state
    for name in _CODE_PATHS & walk.variables.exported:
        value = state.variables.get(name)
        if isinstance(value, Value) and len(value.text) < _MAX_REMEMBERED:
            shell.variables[name] = value.text
    path = state.variables.get("PATH")
    if isinstance(path, Value) and path is not state.first_path and len(path.text) < _MAX_REMEMBERED:
        shell.path = path.text
    for name, text in state.aliases.items():
        if len(shell.aliases) < _MAX_ALIASES and len(text.text) < _MAX_REMEMBERED:
            shell.aliases[name] = text.text
