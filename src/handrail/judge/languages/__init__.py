"""Judge a program in another language inside a command: it is read, never run.

Python is read by `ast`; the others by small tokenizers and lists of calls; SQL by statement (`sql`). What such a program
would run, delete, write or read is shown to the rules as if the shell did it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..rules import Match
from ..values.word_values import Arg, Value
from .host import Host


def judge(
    language: str,
    code: Value,
    *,
    shell: Callable[[Value, Value | None], object],
    argv: Callable[[Sequence[Arg], Value | None], object],
    is_followed: Callable[[str], bool],
    changed: Callable[[str], object],
    cwd: str = ".",
    project: str = "",
) -> list[Match]:
    """What is dangerous in it. Commands that it would run go to `shell` (a text) or `argv` (a list), with their input.

    `is_followed` says whether a name is a program that the walk follows; `changed` takes the files that it writes.
    """
    host = Host(language, shell, argv, is_followed, changed, cwd, project)
    if language == "python":
        from . import python

        python.judge(host, code.text)
    else:
        from . import calls

        calls.judge(host, code.text)
        if not host.matches:
            from . import strings

            strings.judge(host, code.text)
    return host.matches
