"""Run commands in a protected shell, as whoever starts this: `python -m ... < JSON` with `cwd`, `commands` and options.

A program of its own, so that a test can start it as another user. It prints a JSON object: what each command printed, whether
another process was alive after it, and how the shell is protected. `refused` are system calls that the kernel refuses from the
start on, as some systems and containers do.
"""

from __future__ import annotations

import ctypes
import json
import os
import platform
import struct
import subprocess
import sys
from collections.abc import Iterable

from handrail.environments.local_environment import LocalEnvironment
from handrail.environments.protection import Protection
from handrail.environments.transport.link import fork_servers

_NUMBERS = {
    "x86_64": {"unshare": 272, "landlock_create_ruleset": 444},
    "aarch64": {"unshare": 97, "landlock_create_ruleset": 444},
}
_PR_SET_SECCOMP, _PR_SET_NO_NEW_PRIVS, _FILTER = 22, 38, 2
_LOAD, _EQUAL, _RETURN = 0x20, 0x15, 0x06  # of a BPF program: load a word, jump if equal, return
_ALLOW, _REFUSE = 0x7FFF0000, 0x00050001  # with EPERM


def refuse(names: Iterable[str]) -> None:
    """Have the kernel refuse these system calls in this process and in all that it starts."""
    wanted = [_NUMBERS[platform.machine()][name] for name in names]
    steps = [(_LOAD, 0, 0, 0), *((_EQUAL, len(wanted) - place, 0, number) for place, number in enumerate(wanted))]
    code = b"".join(struct.pack("HBBI", *step) for step in [*steps, (_RETURN, 0, 0, _ALLOW), (_RETURN, 0, 0, _REFUSE)])
    kept = ctypes.create_string_buffer(code)
    program = struct.pack("HxxxxxxP", len(code) // 8, ctypes.addressof(kept))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) or libc.prctl(_PR_SET_SECCOMP, _FILTER, program, 0, 0):
        raise OSError(ctypes.get_errno(), "no filter for system calls")


def main() -> None:
    order = json.load(sys.stdin)
    if order.get("refused"):
        refuse(order["refused"])
    given = {
        name: tuple(each) if isinstance(each, list) else each for name, each in order.get("protection", {}).items()
    }
    protection = Protection(**given) if order.get("protected", True) else None
    outside = subprocess.Popen(["sleep", "1000"], env={**os.environ, "MARKED": "secret-of-another-process"})
    said, alive = [], []
    try:
        with LocalEnvironment(order["cwd"], protection=protection) as shell:
            for command in order["commands"]:
                command = command.replace("@OUTSIDE@", str(outside.pid)).replace("@RUNTIME@", str(os.getpid()))
                result = shell.execute(command, timeout=60)
                alive.append(outside.poll() is None)
                said.append([result.exit_code, result.output.head.decode("utf-8", "replace")])
            confinement = protection.confinement(order["cwd"]) if protection is not None else None
            report = fork_servers.acquire(confinement).report
    finally:
        outside.kill()
        outside.wait()
    json.dump({"said": said, "report": report, "alive": alive}, sys.stdout)
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
