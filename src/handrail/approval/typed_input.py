"""Input typed into a running program: which part of it a shell would run, and as which command.

The text is the current line, with what is typed now at its end. A password is neither judged nor stored. Keys that recall or
complete something (arrows, Tab, Ctrl-R) run what was not typed here, and a line that continues in the next one is not a
command yet: at a shell both ask. Input for a program with another language is read by `console_input`.
"""

import re
import shlex
from itertools import islice
from typing import NamedTuple

from ..judge.programs.tables import LANGUAGES, SHELLS
from ..judge.values.assessment import Finding, Reach, Severity
from ..judge.values.data_files import Patterns, Words, read_tables
from ..protocols import Action

_WORDS = Words(__file__)
_RE = Patterns(__file__)
_KEY_EDITORS = read_tables(__file__)["keys"]
"""Keys of other full-screen programs that run something which is not judged here."""
_END = "_end_of_typed_input_"
_MAX_LITERALS = 50


class Judged(NamedTuple):
    """A command that stands for what was typed."""

    command: str
    certain: bool
    """Whether the program would run it, or only could."""


class ConsoleInput(NamedTuple):
    commands: tuple[Judged, ...] = ()
    unclear: str = ""
    """Why it cannot be known what the program would run."""


def console_input(program: str, typed: str) -> ConsoleInput | None:
    """What stands for input to a program; None for one without a name."""
    is_known = program in LANGUAGES or program in _WORDS.consoles
    name = program if is_known else program.rstrip("0123456789.").rstrip("-")
    if name in LANGUAGES and name not in _KEY_EDITORS:
        return _code(name, typed)
    if program in _WORDS.consoles:
        return ConsoleInput((_with_input(program, typed),))
    if program in _WORDS.editors:
        # Ex commands after a colon; `!` in normal mode pipes lines through a command.
        ex = (f"{program} -c {shlex.quote(match[1])}" for match in _RE.ex_command.finditer(typed))
        filters = (match[1] for match in _RE.filter.finditer(typed) if match[1].strip())
        return ConsoleInput(tuple(Judged(text, certain=True) for text in (*ex, *filters)))
    if program in _WORDS.pagers:
        found = [match[1].strip() for match in _RE.pager_command.finditer(typed)]
        unclear = "it opens a shell" if any(not text or "%" in text for text in found) else ""
        return ConsoleInput(tuple(Judged(text, certain=True) for text in found if text), unclear)
    if program in _KEY_EDITORS:
        risky = re.search(_KEY_EDITORS[program], typed) is not None
        return ConsoleInput(unclear=f"keys with which {program} runs commands" if risky else "")
    return ConsoleInput((_with_input(program, typed),)) if _RE.name.fullmatch(program) else None


def _with_input(program: str, typed: str) -> Judged:
    return Judged(f"{program} <<'{_END}'\n{typed.replace(_END, '')}\n{_END}", certain=True)


def _code(language: str, typed: str) -> ConsoleInput:
    commands = [_with_input(language, typed)]
    literals = (match[1] or match[2] or match[3] for match in islice(_RE.literal.finditer(typed), _MAX_LITERALS))
    commands += [Judged(text, certain=False) for text in literals if " " in text]
    if LANGUAGES[language] in ("perl", "ruby", "julia", "other"):
        commands += [Judged(match[1], certain=True) for match in _RE.debugger.finditer(typed)]
    bare = _RE.literal.sub("''", typed)
    keeps = _RE.keeps.search(bare) and _RE.code_sign.search(bare) and not _RE.only_imports.fullmatch(typed)
    return ConsoleInput(tuple(commands), "a function that runs something is kept for later" if keeps else "")


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
    program = _program(action)
    is_shell = not program or program in SHELLS or program in _WORDS.lead_to_shells
    # A program that reads a password: not a shell or interpreter, whose echo an agent could have turned off.
    base = str(action.details.get("foreground") or "").rpartition("/")[2].lstrip("-")
    can_run_more = not base or base.rstrip("0123456789.") in SHELLS | LANGUAGES.keys()
    if action.details.get("echo") is False and not can_run_more:
        return None
    typed = action.text.replace("\r\n", "\n")
    if is_shell and (found := _unforeseeable(typed)) is not None:
        return Reading(typed, 0, is_shell, (found,))
    if not _RE.runs_line.search(typed):
        return None
    forgotten = _RE.forgets_line.match(typed)
    start = forgotten.end() if forgotten else 0
    text = _RE.runs_line.sub("\n", typed[start:])
    console = None if is_shell else console_input(program, text)
    if console is None:
        return Reading(text, start, is_shell)
    if console.unclear:
        why = f"{console.unclear}: what will run cannot be known"
        found = Finding("input.unclear", Severity.ASK, why, (start, len(action.text)), (), Reach.UNKNOWN)
        return Reading(text, start, is_shell, (found,))
    return Reading(text, start, is_shell, (), console.commands)


def _unforeseeable(typed: str) -> Finding | None:
    keys = [key.start() for key in _RE.keys.finditer(typed)]
    if keys:
        why = "keys that recall, complete or edit a line: what the shell will run cannot be known"
        return Finding("input.keys", Severity.ASK, why, (keys[0], keys[-1] + 1), (), Reach.UNKNOWN)
    if _RE.continued.search(typed):
        why = "the line continues in the next one: what the shell will run cannot be known"
        return Finding("input.continued", Severity.ASK, why, (0, len(typed)), (), Reach.UNKNOWN)
    return None


def _program(action: Action) -> str:
    """The program in the foreground, if that is known, else the one that was started."""
    name = str(action.details.get("foreground") or "")
    if not name:
        words = [word for word in str(action.details.get("command") or "").split() if "=" not in word]
        name = words[0] if words else ""
    return name.rpartition("/")[2].lstrip("-")
