"""Input typed into a running program: which part of it a shell would run, and as which command.

The text is the current line, with what is typed now at its end. A password is neither judged nor stored. Keys that recall or
complete something (arrows, Tab, Ctrl-R) run what was not typed here, and a line that continues in the next one is not a
command yet: at a shell both ask. Input for a program with another language is read by `console_input`.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from typing import NamedTuple

from ..judge.programs.tables import LANGUAGES, SHELLS
from ..judge.values.assessment import Finding, Reach, Severity
from ..protocols import Action

_CONSOLES = frozenset(
    "psql pgcli mysql mariadb mycli sqlite3 litecli gdb lldb ftp tnftp lftp sftp ncftp telnet smbclient mail mailx mutt "
    "neomutt ed red ex mongo mongosh m4 dc".split()
)
_EDITORS = frozenset("vi vim nvim view gvim vimdiff rvim rview".split())
_PAGERS = frozenset("less more most man info pinfo pg".split())
_KEY_EDITORS = {
    "nano": r"[\x14\x18]",
    "pico": r"[\x14\x18]",
    "emacs": r"\x1b[!|&x:]|\x18\x05",
    "mg": r"\x1b[!|&x:]",
    "joe": r"\x0b",
    "mcedit": r"\x1b[!]|\x15",
    "tig": r"[!:]",
    "ranger": r"[!:@S]",
    "nnn": r"[!\]p]",
    "mc": r"[\r\n]",
}
"""Keys of other full-screen programs that run something which is not judged here."""
_KEEPS = re.compile(
    r"\b(?:system|popen|subprocess|exec\w*|spawn\w*|rmtree|unlink|child_process|posix_spawn|eval|__import__|import_module|"
    r"shell_exec|passthru|proc_open|getoutput)\b(?!\s*\(|\s*\.)"
)
_ONLY_IMPORTS = re.compile(
    r"\s*import\s+[\w., ]+\s*|.*\brequire\(\s*['\"](?:node:)?child_process['\"]\s*\)\.\w+\(.*", re.S
)
_CODE_SIGN = re.compile(r"[=;(\[{,]|\b(?:import|require|use)\b")
_LITERAL = re.compile(r"'((?:[^'\\\n]|\\.)+)'|\"((?:[^\"\\\n]|\\.)+)\"|`([^`\n]+)`")
_EX_COMMAND = re.compile(r"(?:^|[\x1b\n\r])\s*:+([^\n\r\x1b]+)(?=[\n\r])")
_FILTER = re.compile(r"(?:^|\x1b)\s*\d*!(?:!|gg|\d*[}{()GjkHLM])([^\n\r]*)[\n\r]")
_PAGER_COMMAND = re.compile(r"(?:^|[\n\r\x1b])[^\n\r]*?(?:!|#|\|.)([^\n\r]*)[\n\r]")
_DEBUGGER = re.compile(r"(?m)^\s*(?:!!|\|\|?)\s*(.+)$")
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
    """What stands for input to a program; None for one without a known prompt."""
    name = (
        program.rstrip("0123456789.").rstrip("-") if program not in LANGUAGES and program not in _CONSOLES else program
    )
    if name in LANGUAGES and name not in _KEY_EDITORS:
        return _code(name, typed)
    if program in _CONSOLES:
        return ConsoleInput((_with_input(program, typed),))
    if program in _EDITORS:
        return _editor(program, typed)
    if program in _PAGERS:
        return _pager(typed)
    if program in _KEY_EDITORS:
        risky = re.search(_KEY_EDITORS[program], typed) is not None
        return ConsoleInput(unclear=f"keys with which {program} runs commands" if risky else "")
    return None


def _with_input(program: str, typed: str) -> Judged:
    return Judged(f"{program} <<'{_END}'\n{typed.replace(_END, '')}\n{_END}", certain=True)


def _code(language: str, typed: str) -> ConsoleInput:
    commands = [_with_input(language, typed)]
    commands += [Judged(text, certain=False) for text in _literals(typed)]
    if LANGUAGES[language] in ("perl", "ruby", "other"):
        commands += [Judged(match[1], certain=True) for match in _DEBUGGER.finditer(typed)]
    bare = _LITERAL.sub("''", typed)
    keeps = _KEEPS.search(bare) and _CODE_SIGN.search(bare) and not _ONLY_IMPORTS.fullmatch(typed)
    return ConsoleInput(tuple(commands), "a function that runs something is kept for later" if keeps else "")


def _literals(typed: str) -> Iterator[str]:
    for number, match in enumerate(_LITERAL.finditer(typed)):
        if number >= _MAX_LITERALS:
            return
        text = match[1] or match[2] or match[3]
        if " " in text:
            yield text


def _editor(program: str, typed: str) -> ConsoleInput:
    """Ex commands after a colon; `!` in normal mode pipes lines through a command."""
    commands = [Judged(f"{program} -c {shlex.quote(match[1])}", certain=True) for match in _EX_COMMAND.finditer(typed)]
    commands += [Judged(match[1], certain=True) for match in _FILTER.finditer(typed) if match[1].strip()]
    return ConsoleInput(tuple(commands))


def _pager(typed: str) -> ConsoleInput:
    found = [match[1].strip() for match in _PAGER_COMMAND.finditer(typed)]
    unclear = "it opens a shell" if any(not text or "%" in text for text in found) else ""
    return ConsoleInput(tuple(Judged(text, certain=True) for text in found if text), unclear)


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
