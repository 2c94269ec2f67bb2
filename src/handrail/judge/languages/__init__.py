"""Judge a program in another language inside a command: it is read, never run.

Python is read by `ast`; the others by small tokenizers and lists of calls; SQL by statement (`sql`). What such a program
would run, delete, write or read is shown to the rules as if the shell did it.
"""

import re

from .host import Host

_TAKES_ARGUMENTS = re.compile(r"\bargv\b|\bARGV\b|\bargparse\b|\bclick\b|\btyper\b|\bgetopt\b|\boptparse\b|\barg\b")


def read(host: Host, text: str, *, strings: bool) -> None:
    """Tell the host what a program does. `strings`: where nothing is found, its strings are looked at too."""
    text = host.with_inputs(text)
    if host.language == "python":
        from . import python

        python.judge(host, text)
    else:
        from . import calls

        calls.judge(host, text)
        if strings and not host.matches:
            calls.judge_strings(host, text)
    computes = any(match.rule.id == "code.exec_computed" for match in host.matches)
    if computes and host.arguments and _TAKES_ARGUMENTS.search(text):
        host.start_arguments()
