"""Figures of the profile contained, against open: what it costs that writes outside of the work tree are asked about."""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from handrail.environments.local_environment import LocalEnvironment
from handrail.environments.protection import Protection

from .effects import _FILES, _TESTS
from .harness import Figure, alternating, milliseconds


def figures() -> Iterator[Figure]:
    with tempfile.TemporaryDirectory() as folder:
        shells = [_shell(folder, "contained", Protection()), _shell(folder, "open", None)]
        shells[1].effects = None
        try:
            yield from _work(*shells)
        finally:
            for shell in shells:
                shell.close()
    yield from _start()


def _shell(folder: str, name: str, protection: Protection | None) -> LocalEnvironment:
    os.makedirs(f"{folder}/{name}")
    return LocalEnvironment(f"{folder}/{name}", protection=protection)


def _work(contained: LocalEnvironment, plain: LocalEnvironment) -> Iterator[Figure]:
    for shell in (contained, plain):
        shell.execute(_FILES.format(10_000, "tree"))
        shell.execute("for i in 1 2 3 4; do echo '#include <stdio.h>' > $i.c; done")
        Path(shell.cwd, "test_one.py").write_text(_TESTS)
    pytest = f"{sys.executable} -m pytest -q -p no:cacheprovider --basetemp=here test_one.py >/dev/null"
    for what, command, rounds in (
        ("grep -r, 10,000 files", "grep -r nowhere tree || true", 7),
        ("gcc, 4 files", "for i in 1 2 3 4; do gcc -c $i.c; done", 5),
        ("pytest, 100 tests with a folder each", pytest, 5),
    ):
        found = alternating(_run(contained, command), _run(plain, command), rounds=rounds)
        yield Figure(what, milliseconds(found[0]), milliseconds(found[1]), found[2], 1.05)


def _run(shell: LocalEnvironment, command: str) -> Callable[[], float]:
    def timed() -> float:
        begin = time.perf_counter()
        done = shell.execute(command, call=1)
        assert done.exit_code == 0, done.output.head
        return time.perf_counter() - begin

    return timed


def _start() -> Iterator[Figure]:
    """The first shell, with the process that it is forked from."""
    with tempfile.TemporaryDirectory() as folder:

        def timed(protection: Protection) -> float:
            begin = time.perf_counter()
            with LocalEnvironment(folder, protection=protection) as shell:
                shell.execute("true")
                return time.perf_counter() - begin

        found = alternating(lambda: timed(Protection()), lambda: timed(Protection(profile=None)), rounds=9)
        yield Figure(
            "first shell, to one that is only protected", milliseconds(found[0]), milliseconds(found[1]), found[2], 1.3
        )
