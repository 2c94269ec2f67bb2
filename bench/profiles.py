"""Figures of the profile contained, against open: what it costs that writes outside of the work tree are asked about."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from handrail.environments.local_environment import LocalEnvironment
from handrail.environments.protection import Protection
from handrail.environments.shell_host import proc

from .corpus import _outside
from .effects import _FILES, _TESTS
from .harness import Figure, alternating, milliseconds

_SHELLS = 6


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
    """The first shell, with the process that it is forked from, and further ones, each with a work tree of its own."""
    with tempfile.TemporaryDirectory(dir=_outside()) as folder:
        places = [tempfile.mkdtemp(dir=folder) for _ in range(_SHELLS)]

        def timed(protection: Protection | None) -> float:
            begin = time.perf_counter()
            with _opened(folder, protection):
                return time.perf_counter() - begin

        def more(protection: Protection | None) -> float:
            with contextlib.ExitStack() as stack:
                stack.enter_context(_opened(folder, protection))
                begin = time.perf_counter()
                for place in places:
                    stack.enter_context(_opened(place, protection))
                return (time.perf_counter() - begin) / _SHELLS

        for what, start in (("first shell, to open", timed), ("another shell, to open", more)):
            found = alternating(partial(start, Protection()), partial(start, None), rounds=9)
            yield Figure(what, milliseconds(found[0]), milliseconds(found[1]), found[2], 1.3)
        with _opened(folder, Protection()), contextlib.ExitStack() as stack:
            before = set(proc.tree(os.getpid()))
            for place in places:
                stack.enter_context(_opened(place, Protection()))
            mine = set(proc.tree(os.getpid())) - before
            memory = sum(map(_private, mine)) / _SHELLS / 1024
            yield Figure("  its processes, of 2", f"{len(mine) / _SHELLS:.1f}", "2", len(mine) / _SHELLS / 2, 1)
            yield Figure("  its private memory, of 4 MB", f"{memory:.1f} MB", "4 MB", memory / 4, 1)


def _opened(folder: str, protection: Protection | None) -> LocalEnvironment:
    """Watched in both profiles, as root's commands are."""
    shell = LocalEnvironment(folder, protection=protection)
    shell.execute("true")
    return shell


def _private(pid: int) -> int:
    with open(f"/proc/{pid}/smaps_rollup") as file:
        return sum(int(line.split()[1]) for line in file if line.startswith("Private_"))
