# ruff: noqa: A005  a table of the bench, that nothing imports as `code`
"""Figures of `execute_code`: how soon a script runs, and what one call of a tool costs it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator

from handrail.core.builtin import builtin_tools
from handrail.core.registry import registry
from handrail.environments.tasks import TaskEnvironments
from handrail.runtime.dispatch import Runtime
from handrail.settings.schema import Config
from handrail.settings.sections import CodeConfig, TerminalConfig
from handrail.testing import MemoryResultStore, OpenGate

from .harness import Figure, alternating, milliseconds

_START_LIMIT_SECONDS = 0.060
_CALL_LIMIT_SECONDS = 0.002
_CALLS = 300
_TIMED = f"""
import time
from handrail_tools import read_file
read_file("small")
start = time.perf_counter()
for _ in range({_CALLS}):
    read_file("small")
print((time.perf_counter() - start) / {_CALLS})
"""


def figures() -> Iterator[Figure]:
    builtin_tools()
    # A `python3` that is a shell script in front of Python, as version managers have it, takes longer than all the rest.
    config = Config(terminal=TerminalConfig(), code=CodeConfig(python=os.path.realpath(sys.executable)))
    with tempfile.TemporaryDirectory() as folder:
        config = Config(terminal=TerminalConfig(cwd=folder), code=config.code)
        with open(os.path.join(folder, "small"), "w") as file:
            file.write("one line\n")
        with TaskEnvironments(config) as environments:
            runtime = Runtime(
                registry, config=config, environments=environments, results=MemoryResultStore(), gate=OpenGate()
            )
            runtime.handle("terminal", {"command": "true"}, "bench")
            yield start(runtime, config.code.python)
            yield one_call(runtime)


def start(runtime: Runtime, python: str) -> Figure:
    """From the call to the script's first line, beside a bare Python that prints the same."""

    def ours() -> float:
        begun = time.time()
        return float(_printed(runtime, "import time; print(time.time())")) - begun

    def floor() -> float:
        begun = time.time()
        command = [python, "-c", "import time; print(time.time())"]
        return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout) - begun

    mine, base, _ = alternating(ours, floor, rounds=15)
    what = "execute_code: to the first line, of 60 ms"
    return Figure(what, milliseconds(mine), milliseconds(base), mine / _START_LIMIT_SECONDS, 1)


def one_call(runtime: Runtime) -> Figure:
    """A tool from a script, beside the same call in this process."""

    def ours() -> float:
        return float(_printed(runtime, _TIMED))

    def floor() -> float:
        begun = time.perf_counter()
        for _ in range(_CALLS):
            runtime.handle("read_file", {"path": "small"}, "bench")
        return (time.perf_counter() - begun) / _CALLS

    mine, base, _ = alternating(ours, floor, rounds=7)
    what = "execute_code: one read_file from the script, of 2 ms"
    return Figure(what, milliseconds(mine), milliseconds(base), mine / _CALL_LIMIT_SECONDS, 1)


def _printed(runtime: Runtime, code: str) -> str:
    answer = json.loads(str(runtime.handle("execute_code", {"code": code}, "bench")))
    assert answer["exit_code"] == 0, answer
    return str(answer["output"])
