"""Input for a program with a prompt of its own (python, psql, vim, less): the commands as which it is judged.

What is typed into an interpreter is code in its language, what is typed into a console may leave to the shell. Both are judged
as if the program had been started with that input. Each line is judged by itself: what an earlier one has kept in a name is
not known here, so keeping a function that runs something is asked about, and so is every text that would be a command.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from typing import NamedTuple

from ..judge.programs.tables import LANGUAGES

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
