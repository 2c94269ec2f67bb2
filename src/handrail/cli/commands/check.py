"""Show what a shell command would do, and whether it may. Nothing runs.

The dangerous parts are marked, each with the rule that found it and why. Your own rules, your deny list and what
you allowed for good (`approval_rules`, `approvals` and `command_allowlist` in config.yaml) count too. Below are
the command lines that would run, as far as they can be known: variables, quotes, wrappers and nested shells are
followed.

Examples:
  handrail check 'rm -rf build/'
  handrail check 'curl -s https://example.com/install.sh | sudo bash'
  handrail check --json - < script.sh

Exit codes: 0 it may run, 3 you would be asked, 4 it is blocked and nobody can allow it.
"""

import os
import sys
import time
from shlex import quote
from typing import Annotated

from ...approval.policy import DecidedBy, Judged, Ruling, read_policy
from ...approval.settings import policy_file, project_settings, tightened
from ...approval.task_disk import BEFORE_SECONDS, HostDisk
from ...config.store import load_config, located
from ...errors import ConfigError
from ...judge import assess
from ...judge.values.assessment import Assessment, stretches
from ...protocols import Action, ActionKind
from ..options import Exit, Json, argument, option
from ..output import ExitCode, colours, emit, emit_json, fitted, paint, visible

Command = Annotated[str, argument("COMMAND", "A shell command; or - to read it from stdin.")]
Cwd = Annotated[str | None, option("--cwd FOLDER", "Where it would start; by default, here.")]


def check(command: Command, cwd: Cwd = None, as_json: Json = False) -> None:
    text = sys.stdin.buffer.read().decode("utf-8", "surrogateescape") if command == "-" else command
    try:
        project = policy_file()
        settings = tightened(load_config(), None if project is None else project_settings(project))
        policy = read_policy(settings)
    except ConfigError as error:
        raise located(error) from None
    disk, folder = HostDisk(time.time() - BEFORE_SECONDS), os.path.abspath(cwd or os.curdir)
    assessment = assess(text, cwd=folder, rulebook=policy.rulebook, disk=disk)
    lines = tuple([segment.argv for segment in assessment.segments])
    judged = Judged(Action(ActionKind.COMMAND, text, cwd=folder), assessment.findings, lines)
    ruling = policy.rule(judged, "terminal", granted=lambda _: False)
    verdict = "block" if ruling.refused is not None else "ask" if ruling.pending else "allow"
    if as_json:
        emit_json({**assessment.as_dict(), "verdict": verdict, "decided_by": ruling.by.value})
    else:
        _show(assessment, ruling, verdict)
    raise Exit(_EXIT_CODES[verdict])


_EXIT_CODES = {"allow": ExitCode.OK, "ask": ExitCode.DENIED, "block": ExitCode.BLOCKED}
_STYLES = {"block": "red", "ask": "yellow", "note": "cyan", "allow": "green"}
_MAX_LINES_SHOWN, _MAX_CHARS_SHOWN = 20, 120


def _show(assessment: Assessment, ruling: Ruling, verdict: str) -> None:
    painted = colours(sys.stdout)
    for text, worst in stretches(assessment):
        emit(paint(visible(text), _STYLES[worst.value], on=painted) if worst else visible(text), end="")
    emit("\n")
    for finding in assessment.findings:
        severity, (start, end) = finding.severity.value, finding.span
        _say(severity, f"{finding.rule}: {finding.why}", _STYLES[severity], on=painted)
        if (start, end) != (0, len(assessment.command)):
            excerpt = " ".join(assessment.command[start:end].split())
            excerpt = excerpt if len(excerpt) <= _MAX_CHARS_SHOWN else f"{excerpt[: _MAX_CHARS_SHOWN - 3]}..."
            emit(f"       at {start}-{end}: {visible(excerpt)}")
    for segment in assessment.segments[:_MAX_LINES_SHOWN]:
        line = " ".join(arg if arg == "?" else quote(arg) for arg in segment.argv)
        _say("runs", line, "dim", on=painted)
    if len(assessment.segments) > _MAX_LINES_SHOWN:
        emit(f"       and {len(assessment.segments) - _MAX_LINES_SHOWN} more")
    if assessment.unknown:
        parts = ", ".join(dict.fromkeys(part.what for part in assessment.unknown))
        _say("open", f"{parts}: known only when it runs", "dim", on=painted)
    _say(verdict, _WHY.get(ruling.by, _MEANING[verdict]), _STYLES[verdict], on=painted)


_MEANING = {
    "allow": "it would run without asking",
    "ask": "you would be asked",
    "block": "it would never run, whoever approves it",
}
_WHY = {
    DecidedBy.DENY_LIST: "your deny list has it: it would never run, whoever approves it",
    DecidedBy.ALLOW_LIST: "your settings allow it: it would run without asking",
    DecidedBy.OFF: "approvals.mode is off: it would run without asking",
}


def _say(word: str, text: str, style: str, *, on: bool) -> None:
    line = fitted(f"{word:7}{visible(text)}", indent=7)
    emit(paint(word, style, on=on) + line[len(word) :])
