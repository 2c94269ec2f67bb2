"""Run one program where the kernel protects what belongs to Handrail (protection.py): a server of tools.

The program replaces this process, so it keeps the pid; it sees the processes of the machine, and cannot signal them. Started as
`python -I -S -c CODE POLICY PROGRAM ARGUMENTS`.
"""

from __future__ import annotations

import json
import os
import signal

from . import protection


def main(words: list[str]) -> None:
    policy, program = json.loads(words[0]), words[1:]
    here = os.getcwd()
    protection.enter_alone(policy)
    os.chdir(here)
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # Python ignores it, and a program would inherit that
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    try:
        os.execvp(program[0], program)
    except OSError as error:
        os.write(2, f"{program[0]} cannot be started: {error.strerror}\n".encode())
        os._exit(127)
