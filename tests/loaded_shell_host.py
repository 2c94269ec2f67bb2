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


def main() -> None:
    """The client's socket is stdin, the arguments are on the command line."""
    client, nothing = os.dup(0), os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    os.close(nothing)
    arguments = json.loads(sys.argv[1])
    module = sys.modules[f"{_PACKAGE}.{_MAINS[arguments['role']]}"]
    module.main({**arguments, "socket": client})


# As transport/bundle.py makes it.
package = sys.modules[_PACKAGE] = ModuleType(_PACKAGE)
package.__path__ = [str(ROOT / "src" / "handrail" / "environments" / "shell_host")]
for name in _MAINS.values():
    importlib.import_module(f"{_PACKAGE}.{name}")
