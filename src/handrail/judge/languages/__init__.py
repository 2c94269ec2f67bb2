"""Judge a program in another language inside a command: it is read, never run.

Python is read by `ast`; the others by small tokenizers and lists of calls; SQL by statement (`sql`). What such a program
would run, delete, write or read is shown to the rules as if the shell did it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from ..rules import Match
from ..values.word_values import Value
from .host import Host

_TAKES_ARGUMENTS = re.compile(r"\bargv\b|\bARGV\b|\bargparse\b|\bclick\b|\btyper\b|\bgetopt\b|\boptparse\b|\barg\b")


def judge(
    language: str,
    code: Value,
    *,
    shell: Callable[[Value, Value | None], object],
    argv: Callable[..., object],
    is_followed: Callable[[str], bool],
    changed: Callable[[str], object],
    cwd: str = ".",
    project: str = "",
    arguments: Sequence[str] | None = None,
) -> list[Match]:
    """What is dangerous in it. Commands that it would run go to `shell` (a text) or `argv` (a list), with their input.

    `is_followed` says whether a name is a program that the walk follows; `changed` takes the files that it writes.
    """
    host = Host(language, shell, argv, is_followed, changed, cwd, project, arguments)
    read(host, code.text, strings=True)
    return host.matches


def read(host: Host, text: str, *, strings: bool) -> None:
    """Tell the host what a program does. `strings`: where nothing is found, its strings are looked at too."""
    if host.language == "python":
        from . import python

        python.judge(host, text)
    else:
        from . import calls

        calls.judge(host, text)
        if strings and not host.matches:
            from . import strings as texts

            texts.judge(host, text)
    if host.arguments and _TAKES_ARGUMENTS.search(text):
        if any(match.rule.id == "code.exec_computed" for match in host.matches):
            host.start_arguments()
