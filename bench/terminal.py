"""Figures of the tool `terminal`, called as a model calls it, with the gate that comes with Handrail: latency, much output."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import time
from collections.abc import Iterator

from handrail import model_tools

from .harness import Figure, alternating, milliseconds, paired

_BYTES = 50_000_000
_COMMAND = f"yes 'a line of output, like those that builds print' | head -c {_BYTES}"


def figures() -> Iterator[Figure]:
    try:
        yield echo()
        yield from big_output()
    finally:
        model_tools.reset()


def echo() -> Figure:
    def ours(count: int) -> None:
        for _ in range(count):
            assert '"hi\\n"' in model_tools.handle_function_call("terminal", {"command": "echo hi"})

    def floor(count: int) -> None:
        for _ in range(count):
            assert subprocess.run(["bash", "-c", "echo hi"], capture_output=True, check=True).stdout == b"hi\n"

    mine, base, ratio = paired(ours, floor)
    peers = "hermes 6.5, SWE-ReX 51, stateless ones 0.7-1.6"
    return Figure("`echo hi` through the gate, to bash -c", milliseconds(mine), milliseconds(base), ratio, 0.4, peers)


def big_output() -> Iterator[Figure]:
    def ours() -> float:
        start = time.perf_counter()
        answer = model_tools.handle_function_call("terminal", {"command": _COMMAND})
        elapsed = time.perf_counter() - start
        assert isinstance(answer, str)
        assert f"{_BYTES:,} bytes" in json.loads(answer)["output"]
        return elapsed

    def raw() -> float:
        start = time.perf_counter()
        with subprocess.Popen(["bash", "-c", _COMMAND], stdout=subprocess.PIPE, bufsize=0) as process:
            assert process.stdout is not None
            total = 0
            while count := len(os.read(process.stdout.fileno(), 65536)):
                total += count
        assert total == _BYTES
        return time.perf_counter() - start

    mine, base, ratio = alternating(ours, raw, rounds=15)
    what = f"{_BYTES // 1_000_000} MB of output through the tool, to a raw read"
    yield Figure(what, milliseconds(mine), milliseconds(base), ratio, 1.5, "1.06-4.2, hermes 2.8")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    ours()
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    yield Figure("  memory that it takes, of 10 MB", f"{grown:.1f} MB", "10 MB", grown / 10, 1)
