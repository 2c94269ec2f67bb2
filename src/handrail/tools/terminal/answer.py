"""The result of a command that has ended, as the model reads it, with what its exit code means."""

from __future__ import annotations

import json
import re
import signal
from pathlib import Path
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


# Programs with the same codes share a line. Only what a reader would not guess.
_KNOWN = json.loads(Path(__file__).with_name("exit_codes.json").read_text())
BY_PROGRAM = {
    program: {int(code): Meaning(*known) for code, known in codes.items()}
    for programs, codes in _KNOWN["by_program"].items()
    for program in programs.split()
}
BY_CODE: dict[int, Meaning] = {
    126: Meaning("it was found but cannot be run: not executable, for another machine, or its arguments are too long"),
    127: Meaning("a command was not found; check its spelling, or install it"),
}
_SIGNALS: dict[int, str] = {signal.Signals[name]: text for name, text in _KNOWN["by_signal"].items()}

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
