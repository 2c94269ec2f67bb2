"""Find what is dangerous in an action: a command, code, typed input, a file to be written, or an external tool's call."""

from __future__ import annotations

import logging
import os
import re
import shlex
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..config.paths import cache_dir, config_path, state_dir
from ..judge.values.assessment import Assessment, Finding, Reach, Severity
from ..judge.values.data_files import read_tables
from ..judge.values.disk import NO_HOMES, Homes, ShellMemory, local_homes, make_homes
from ..protocols import Action, ActionKind
from .allowlist import can_be_anything
from .policy import Judged, Policy
from .settings import policy_file
from .task_disk import HostDisk, Lookups, RemoteDisk, TaskDisks
from .typed_input import read_typed

if TYPE_CHECKING:
    from ..judge.rules import Match, Rulebook

log = logging.getLogger(__name__)

# A command, the action that it is part of, and the rules that hold (None: those that come with Handrail).
Assess = Callable[[str, Action, "Rulebook | None"], Assessment]

_FRESH = ShellMemory()
_MAX_KNOWN, _MAX_KNOWN_CHARS, _MAX_LOOKUPS = 1000, 1000, 20
_FAILED, _NO_ACTION = "judge.failed", Action(ActionKind.COMMAND, "")
_RULE_CHARACTERS = re.compile(r"[^a-z0-9_.-]+")
_INTERPRETERS = read_tables(__file__)["interpreters"]


class Judge:
    """`assess` judges a command; `self_protection` knows which files are Handrail's own."""

    def __init__(self, assess: Assess, self_protection: SelfProtection) -> None:
        self._assess, self._self_protection = assess, self_protection
        self._disks = TaskDisks(self_protection.renamed)
        # Of commands that are judged by their text, and by what there is at some paths.
        self._known: dict[tuple[object, ...], tuple[Judged, Lookups]] = {}

    def judge(self, action: Action, tool: str, policy: Policy, task: str | None = None) -> Judged:
        details, more = action.details, dict[str, Any]()
        if action.kind is ActionKind.COMMAND and not details.get("background"):
            more["shell"] = self._disks.shell(task or "")
        if (disk := self._disks.of(action)) is not None:
            more["disk"] = disk
        key = self._key(action, more.get("shell", _FRESH), disk, policy)
        known = self._known.get(key) if key is not None else None
        if known is not None and (disk is None or disk.holds(known[1])):
            judged = Judged(action, known[0].findings, known[0].command_lines)
        else:
            # Each kind has a method of its name.
            way: Callable[[Action, str, Rulebook | None], Judged] = getattr(self, f"_{action.kind.value}")
            judged = way(action._replace(details={**details, **more}), tool, policy.rulebook)
            if key is not None and more.get("shell", _FRESH) == _FRESH:
                self._remember(key, judged, {} if disk is None else disk.lookups)
        if policy.ask_tools and any(fnmatchcase(tool, pattern) for pattern in policy.ask_tools):
            name = rule_name("tool", tool)
            listed = Finding(name, Severity.ASK, f"approvals.ask_tools lists {tool}", (0, len(action.text)))
            judged = judged._replace(findings=(*judged.findings, listed))
        return judged

    def _remember(self, key: tuple[object, ...], judged: Judged, lookups: Lookups | None) -> None:
        has_failed = any(finding.rule == _FAILED for finding in judged.findings)
        is_of_process = _ACTS_ON_PROCESSES.search(judged.action.text) is not None  # after a fork it is another
        if lookups is None or len(lookups) > _MAX_LOOKUPS or has_failed or is_of_process:
            return
        if len(self._known) >= _MAX_KNOWN:
            self._known.clear()
        self._known[key] = judged._replace(action=_NO_ACTION), lookups

    def _key(
        self, action: Action, shell: ShellMemory, disk: HostDisk | RemoteDisk | None, policy: Policy
    ) -> tuple[object, ...] | None:
        """All that the judgement of a command depends on, beside what there is at some paths; None if that is more."""
        details = action.details
        is_command = action.kind is ActionKind.COMMAND and self._assess is builtin_assess
        if not is_command or len(action.text) > _MAX_KNOWN_CHARS or shell != _FRESH:
            return None
        if "home" in details or "variables" in details or DANGEROUS_PATTERNS != _BUILTIN:
            return None
        where = (action.cwd, details.get("project"), action.isolated, _homes(action), type(disk))
        return action.text, where, policy.rulebook

    def _command(self, action: Action, _: str, rulebook: Rulebook | None) -> Judged:
        assessment = self._assessed(action.text, action, rulebook)
        findings = (*assessment.findings, *findings_of_added(action.text))
        if not action.isolated and (usual := self._self_protection.in_usual_place(action)) is not None:
            whole = (0, len(action.text))
            ours = [found for found in self._assessed(usual, action, None).findings if found.rule.startswith("own.")]
            findings = (*(replace(found, span=whole) for found in ours), *findings)
        return Judged(action, findings, tuple([segment.argv for segment in assessment.segments]))

    def _assessed(self, text: str, action: Action, rulebook: Rulebook | None) -> Assessment:
        try:
            return self._assess(text, action, rulebook)
        except Exception as error:  # noqa: BLE001  what could not be judged is asked about, whatever went wrong
            log.warning("a command could not be judged: %s: %s", type(error).__name__, error)
            why = "it could not be judged"
            return Assessment(text, (Finding(_FAILED, Severity.ASK, why, (0, len(text)), (), Reach.UNKNOWN),))

    def _code(self, action: Action, tool: str, rulebook: Rulebook | None) -> Judged:
        """Code is judged as the command that would run it."""
        language = str(action.details.get("language", "python")).lower()
        interpreter = _INTERPRETERS.get(language)
        if interpreter is None:
            return _asking(action, "code.unknown", f"runs {language} code, which cannot be judged", Reach.UNKNOWN)
        command = f"{interpreter} {shlex.quote(action.text)}"
        judged = self._command(action._replace(text=command), tool, rulebook)
        shift = len(interpreter) + 2
        is_same = command[shift : shift + len(action.text)] == action.text
        findings = tuple(_within(finding, shift, len(action.text), exact=is_same) for finding in judged.findings)
        return Judged(action, findings, judged.command_lines)

    def _input(self, action: Action, tool: str, rulebook: Rulebook | None) -> Judged:
        reading = read_typed(action)
        if reading is None:
            return Judged(action)
        if reading.findings:
            return Judged(action, reading.findings)
        judged = self._command(action._replace(text=reading.text), tool, rulebook)
        findings = judged.findings if reading.is_shell else _clear(judged.findings)
        moved = [_within(finding, -reading.start, len(action.text), exact=True) for finding in findings]
        for command, certain in reading.commands:
            found = self._command(action._replace(text=command), tool, rulebook).findings
            counted = [one for one in found if one.rule != "code.unreadable" or "(" in reading.text]
            moved += [replace(one, span=(0, len(action.text))) for one in (counted if certain else _clear(counted))]
        return Judged(action, tuple(moved), judged.command_lines)

    def _file_write(self, action: Action, _: str, __: Rulebook | None) -> Judged:
        self._disks.note_written(action)
        ours = self._self_protection.of_file(action)
        if ours is not None:
            return Judged(action, (ours,))
        from ..judge.rules import on_write

        return _of_path(action, on_write)

    def _file_read(self, action: Action, _: str, __: Rulebook | None) -> Judged:
        from ..judge.rules import on_read, on_search

        return _of_path(action, on_search if action.details.get("below") else on_read)

    def _connect(self, action: Action, _: str, __: Rulebook | None) -> Judged:
        """What `egress.questions` has decided about a host, as a finding."""
        details, place = action.details, (0, len(action.text))
        severity = Severity.BLOCK if details.get("denied") else Severity.ASK
        reach = Reach.UNKNOWN if details.get("once") else Reach.NOWHERE
        return Judged(action, (Finding(str(details["rule"]), severity, str(details["why"]), place, (), reach),))

    def _tool(self, action: Action, tool: str, _: Rulebook | None) -> Judged:
        """A tool that declares itself destructive, or a question from a plugin."""
        if why := str(action.details.get("why") or ""):
            named = str(action.details.get("rule") or "")
            reach = Reach.NOWHERE if named else Reach.UNKNOWN  # a question without a name can be answered only once
            return _asking(action, rule_name("hook", named or tool), why, reach)
        if action.details.get("destructive"):
            why = "an external tool that declares itself destructive: it can delete or overwrite"
            return _asking(action, rule_name("tool", tool), why)
        return Judged(action)

    def _held(self, action: Action, tool: str, rulebook: Rulebook | None) -> Judged:
        """A system call that waits. A lasting yes is for the folder or file `project`, or for this very text."""
        details, rule = action.details, str(action.details["rule"])
        found: tuple[Finding, ...] = ()
        if details.get("path"):  # a path that no tool may write stays one
            written = self._file_write(action._replace(text=str(details["path"])), tool, rulebook)
            found = tuple(one for one in written.findings if one.severity is Severity.BLOCK)
        elif not details.get("once"):
            rule = rule_name(rule, action.text)
        reach = Reach.PROJECT if details.get("project") else Reach.NOWHERE
        place = (0, 0 if details.get("once") else len(action.text))  # nothing is marked in a list of changes
        asked = Finding(rule, Severity.ASK, str(details["why"]), place, (), reach)
        return Judged(action, (*found, asked))


def _of_path(action: Action, find: Callable[[str, str], Sequence[Match]]) -> Judged:
    from ..judge.values.paths import with_homes

    place, argv = (0, len(action.text)), (action.text,)
    with with_homes(_homes(action)):
        found = find(action.text, action.cwd or "/")
    findings = (Finding(m.rule.id, m.rule.severity, m.rule.why, place, argv, m.reach) for m in found)
    return Judged(action, tuple(findings))


def _asking(action: Action, rule: str, why: str, reach: Reach = Reach.NOWHERE) -> Judged:
    return Judged(action, (Finding(rule, Severity.ASK, why, (0, len(action.text)), (), reach),))


def rule_name(theme: str, name: str) -> str:
    """A rule's id made from a name that a plugin or server chose."""
    return f"{theme}.{_RULE_CHARACTERS.sub('-', name.lower()).strip('-.') or 'unnamed'}"


def builtin_assess(command: str, action: Action, rulebook: Rulebook | None) -> Assessment:
    """The judge that comes with Handrail."""
    from ..judge.assessor import assess  # the parser is loaded with the first command: some programs never run one

    known = {name: action.details[name] for name in ("project", "variables", "disk", "shell") if name in action.details}
    return assess(command, cwd=action.cwd or None, rulebook=rulebook, homes=_homes(action), **known)


def _homes(action: Action) -> Homes:
    """The homes of the machine that it acts on: this one, else what the action says about the other."""
    if home := action.details.get("home"):
        return make_homes((str(home),))
    return NO_HOMES if action.isolated and not action.reaches_host else local_homes()


def _clear(findings: Iterable[Finding]) -> list[Finding]:
    """Of findings in a text that may be no command at all: those about what clearly is one."""
    return [finding for finding in findings if finding.argv and not can_be_anything(finding.rule)]


def _within(finding: Finding, shift: int, length: int, *, exact: bool) -> Finding:
    """A finding in a longer text, moved to the part of it that starts at `shift`."""
    start, end = finding.span
    span = (max(0, start - shift), min(length, end - shift)) if exact else (0, length)
    return replace(finding, span=span if span[0] < span[1] else (0, length))


DANGEROUS_PATTERNS: list[tuple[str, str]] = [
    (text.replace("START", r"(?:^|[\s;&|(`/])").replace("REST", r"[^;&|\n]*"), why)
    for why, text in read_tables(__file__)[""].items()
]
# The documented list, which a program may add to: what it adds is asked about. The judge needs none of these, which describe
# what it finds.
_BUILTIN = list(DANGEROUS_PATTERNS)
_NOT_IN_AN_ID = re.compile(r"[^a-z0-9]+")


def findings_of_added(command: str) -> tuple[Finding, ...]:
    """What the entries that a program has added find in a command; costs next to nothing when there are none."""
    found = []
    added = [] if DANGEROUS_PATTERNS == _BUILTIN else [each for each in DANGEROUS_PATTERNS if each not in _BUILTIN]
    for pattern, description in added:
        if match := re.search(pattern, command, re.IGNORECASE | re.DOTALL):
            rule = f"pattern.{_NOT_IN_AN_ID.sub('-', description.lower()).strip('-') or 'added'}"
            found.append(Finding(rule, Severity.ASK, description, match.span()))
    return tuple(found)


def detect_dangerous_command(command: str) -> tuple[bool, str | None, str | None]:
    """`(dangerous, the rule's id, why)`: what the judge finds, else what an added pattern finds."""
    from ..judge.assessor import detect_dangerous_command as judged  # the judge loads with the first command

    verdict, added = judged(command), findings_of_added(command)
    return (True, added[0].rule, added[0].why) if added and not verdict[0] else verdict


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
    """Handrail's own files (configuration, state, program): an agent that could write them could lift its own gate. Nothing in
    `folders` may ever be written; symbolic links are resolved once."""

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
        """The command with each of the folders replaced by their usual location, which the rules know in every spelling, and
        what would print the number of our process, or a path of ours, by a name that they know. None when it has none of it."""
        command = action.text
        if _ACTS_ON_PROCESSES.search(command) is not None:
            command = _FINDS_US.sub("handrail.process", command)
            command = re.sub(rf"(?<![\w./]){os.getpid()}(?![\w./])", "handrail.process", command)
        elif "handrail" in command:
            command = _FINDS_US.sub(_USUAL, command)
        command = self.renamed(command)
        if any(_is_in(action.cwd, folder) for folder in self._folders):
            command = f"cd {_USUAL}; {command}"
        return None if command == action.text else command


def private_dirs(home: str = "") -> list[Path]:
    """The configuration, state and cache in `home` (by default this user's), what their links point to, and the project's
    policy file."""
    config, project = config_path(home), policy_file()
    linked = [Path(os.path.realpath(config))] if config.is_symlink() else []
    return [config.parent, state_dir(home), cache_dir(home), *linked, *([] if project is None else [project])]


def _is_our_name(path: str) -> bool:
    """Whether a file would be found instead of our program, once it lies in a folder of programs."""
    folder, name = os.path.split(path)
    return name == "handrail" and (os.path.basename(folder) in ("bin", "sbin") or folder in os.get_exec_path())


def _is_in(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")
