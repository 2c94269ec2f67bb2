"""Run commands in a protected shell, as whoever starts this: `python -m ... < JSON` with `cwd`, `commands` and options.

A program of its own, so that a test can start it as another user. It prints a JSON object: what each command printed, and how the
shell is protected.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys

from handrail.environments.local_environment import LocalEnvironment
from handrail.environments.protection import Protection
from handrail.environments.transport.fork_server_client import fork_servers


def main() -> None:
    order = json.load(sys.stdin)
    protection = Protection(**order.get("protection", {})) if order.get("protected", True) else None
    outside = subprocess.Popen(["sleep", "1000"], env={**os.environ, "MARKED": "secret-of-another-process"})
    said = []
    try:
        with LocalEnvironment(order["cwd"], protection=protection) as shell:
            for command in order["commands"]:
                command = command.replace("@OUTSIDE@", str(outside.pid)).replace("@RUNTIME@", str(os.getpid()))
                result = shell.execute(command, timeout=60)
                said.append([result.exit_code, result.output.head.decode("utf-8", "replace")])
            confinement = protection.confinement(order["cwd"]) if protection is not None else None
            report = fork_servers.acquire(confinement).report
        alive = outside.poll() is None
    finally:
        outside.kill()
        outside.wait()
    json.dump({"said": said, "report": report, "alive": alive}, sys.stdout)
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
