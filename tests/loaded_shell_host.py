"""A Python that has loaded the shell host, for the tests' fork server: what it forks is a process that forks shells."""

from __future__ import annotations

import importlib
import json
import os
import sys
from types import ModuleType

from .fork_server import ROOT

_PACKAGE = "handrail_shell_host"
_MAINS = {"fork_server": "main", "sandbox_server": "sandbox_server"}
_READY = b"\0handrail\0loaded  "  # as transport/bundle.py reads it


def main() -> None:
    """The client's socket is stdin, the arguments are on the command line."""
    client, nothing = os.dup(0), os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    os.close(nothing)
    arguments = json.loads(sys.argv[1])
    module = sys.modules[f"{_PACKAGE}.{_MAINS[arguments['role']]}"]
    module.main({**arguments, "socket": client})


def remote() -> None:
    """The client is at the other ends of stdin and stdout, and sends the arguments with what is to be loaded: nothing."""
    os.write(1, _READY)
    bundle = json.loads(_take(int(_take(9))))
    assert not bundle["modules"]
    sys.modules[f"{_PACKAGE}.main"].main(bundle["arguments"])


def _take(count: int) -> bytes:
    data = b""
    while len(data) < count:
        piece = os.read(0, count - len(data))
        if not piece:
            sys.exit("the client has left")
        data += piece
    return data


# As transport/bundle.py makes it.
package = sys.modules[_PACKAGE] = ModuleType(_PACKAGE)
package.__path__ = [str(ROOT / "src" / "handrail" / "environments" / "shell_host")]
for name in (*_MAINS.values(), "frame_relay"):
    importlib.import_module(f"{_PACKAGE}.{name}")
