"""The result of a command that has ended, as the model reads it, with what its exit code means."""

from __future__ import annotations

import re
import signal
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from ...environments.command_request import Shown
    from ...types import JsonDict


def ended(command: str, exit_code: int, shown: Shown) -> JsonDict:
    """Its output and exit code; for a failure also an error, and what the code means where that is not obvious."""
    answer: JsonDict = {"output": shown.text, "exit_code": exit_code}
    if shown.stored is not None:
        answer["stored"] = shown.stored
    if exit_code == 0:
        return answer
    known = meaning(command, exit_code, printed=bool(shown.text))
    if known is None or known.is_failure:
        answer |= {"error": f"the command failed with exit code {exit_code}", "error_type": "command_failed"}
    if known is not None:
        answer["meaning"] = known.text
    return answer


def timed_out(seconds: float) -> JsonDict:
    why = f"the command timed out after {seconds:g} s and was ended with all that it had started"
    return {"error": f"{why}; give it a longer timeout, or run it with background", "error_type": "timeout"}


def cancelled() -> JsonDict:
    return {"error": "the command was cancelled, and ended with all that it had started", "error_type": "cancelled"}


def with_notes(answer: JsonDict, *notes: str) -> JsonDict:
    return {**answer, "note": "; ".join(notes)} if notes else answer


class Meaning(NamedTuple):
    """`is_failure`: whether the command did not do what it was run for. That grep finds nothing is an answer."""

    text: str
    is_failure: bool = True


def _answer(text: str) -> Meaning:
    return Meaning(text, is_failure=False)


# Programs with the same codes share a line. Only what a reader would not guess.
_TABLE: dict[str, dict[int, Meaning]] = {
    "grep egrep fgrep zgrep rg ag ack": {1: _answer("no line matched")},
    "diff cmp colordiff": {1: _answer("the files differ")},
    "test [ [[": {1: _answer("the condition is false")},
    "pgrep pidof": {1: _answer("no process matched")},
    "which type": {1: _answer("there is no such command")},
    "expr": {1: _answer("the result is empty or zero")},
    "systemctl": {3: _answer("the unit is not running"), 4: Meaning("there is no such unit")},
    "pytest py.test": {
        1: Meaning("tests failed"),
        2: Meaning("the run was interrupted, or tests could not be collected"),
        4: Meaning("it was called with wrong arguments, or a path does not exist"),
        5: Meaning("no tests were collected"),
    },
    "mypy ruff eslint flake8 pylint shellcheck": {1: Meaning("it found problems")},
    "curl": {
        6: Meaning("the host name could not be resolved"),
        7: Meaning("the connection was refused, or the host cannot be reached"),
        22: Meaning("the server answered with an HTTP error"),
        28: Meaning("the transfer took too long"),
        35: Meaning("the TLS handshake failed"),
        60: Meaning("the server's certificate could not be verified"),
    },
    "wget": {4: Meaning("the network failed"), 8: Meaning("the server answered with an error")},
    "ssh scp sftp": {255: Meaning("the connection, the host key or the login failed")},
    "rsync": {23: Meaning("some files were not transferred"), 24: Meaning("some files vanished before their transfer")},
    "git": {1: Meaning("it found a difference or a conflict, or refused"), 128: Meaning("it could not go on")},
    "make": {2: Meaning("a target failed; its error is above")},
    "find": {1: Meaning("some folders could not be searched; the results are incomplete")},
    "tar": {1: Meaning("some files changed while they were read")},
    "timeout": {124: Meaning("the command was ended, as its time was over")},
    "xargs": {123: Meaning("a command that it ran failed"), 124: Meaning("a command that it ran gave 255")},
    "docker podman": {125: Meaning("it failed itself, not the command in the container")},
    "apt-get apt": {100: Meaning("it failed; its error is above")},
}
BY_PROGRAM = {program: codes for programs, codes in _TABLE.items() for program in programs.split()}
BY_CODE: dict[int, Meaning] = {
    126: Meaning("it was found but cannot be run: not executable, for another machine, or its arguments are too long"),
    127: Meaning("a command was not found; check its spelling, or install it"),
}
_SIGNALS: dict[int, str] = {
    signal.SIGINT: "it was interrupted (SIGINT)",
    signal.SIGQUIT: "it was ended with SIGQUIT",
    signal.SIGABRT: "it aborted itself (SIGABRT)",
    signal.SIGBUS: "it crashed: bus error (SIGBUS)",
    signal.SIGFPE: "it crashed: an arithmetic error (SIGFPE)",
    signal.SIGILL: "it crashed: an illegal instruction (SIGILL)",
    signal.SIGKILL: "it was killed (SIGKILL); often because memory ran out",
    signal.SIGSEGV: "it crashed: segmentation fault (SIGSEGV)",
    signal.SIGPIPE: "its reader went away (SIGPIPE), as with `| head`",
    signal.SIGTERM: "it was ended with SIGTERM",
    signal.SIGXCPU: "it used up its processor time (SIGXCPU)",
    signal.SIGXFSZ: "it wrote a file that is too large (SIGXFSZ)",
}

# What is not a program's name: quoted words, substitutions, comments. Escapes first, so that an escaped quote opens nothing.
_OPAQUE = re.compile(r"\\.|'[^']*'|\"(?:[^\"\\]|\\.)*\"|\$\((?:[^()]|\([^()]*\))*\)|`[^`]*`|(?<!\S)#[^\n]*", re.DOTALL)
_PIPELINES = re.compile(r"(\|\||&&|[;\n]|(?<![>&|<])&(?![>&]))")
# Words that run the one after them, with their options.
_BEFORE = re.compile(
    r"\A\s*(?:(?:[A-Za-z_]\w*=\S*|!|time|exec|command|builtin|nice|nohup|sudo|doas|env|stdbuf|uv\s+run|poetry\s+run|npx"
    r"|python3?\s+-m|then|do|else|[{(])(?:\s+-\S+)*\s*(?<=[\s({]))*"
)


def meaning(command: str, code: int, *, printed: bool = False) -> Meaning | None:
    """What a command's exit code says, if there is something to say. `printed`: whether there was any output."""
    if code == 0:
        return None
    programs = _candidates(command)
    for program in programs:
        known = BY_PROGRAM.get(program, {}).get(code)
        if known is not None:
            # In `cd x && grep y` it may have been the other one that failed; that one would have said why.
            is_failure = known.is_failure or (printed and len(programs) > 1)
            return Meaning(f"{program}: {known.text}", is_failure)
    if code in BY_CODE:
        return BY_CODE[code]
    if 128 < code < 128 + signal.NSIG:
        return Meaning(_SIGNALS.get(code - 128, f"it was ended by signal {code - 128}"))
    return None


def _candidates(command: str) -> list[str]:
    """The programs that can have given the code: the last one of the last pipeline, and of those joined to it by && or ||."""
    plain = _OPAQUE.sub("_", command).rstrip(" \t\n;)}")
    parts = _PIPELINES.split(plain)
    programs = [_program(parts[-1])]
    for index in range(len(parts) - 2, 0, -2):
        if parts[index] not in ("&&", "||"):
            break
        programs.append(_program(parts[index - 1]))
    return programs


def _program(pipeline: str) -> str:
    last = pipeline.rpartition("|")[2].removeprefix("&")
    words = _BEFORE.sub("", last, count=1).split()
    return words[0].rpartition("/")[2] if words else ""
