"""Figures of the journal of effects: what it costs that everything a command changes can be undone."""

from __future__ import annotations

import itertools
import os
import sys
import tempfile
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path

from handrail.environments.local_environment import LocalEnvironment
from handrail.environments.shell_host import proc

from .harness import Figure, alternating, milliseconds, paired

_TASKS = 20
_MEGABYTE = 1 << 20
_FILES = (
    "python3 -Sc 'import os\n"
    'for d in range({0} // 100):\n os.makedirs(f"{1}/{{d}}")\n'
    ' for i in range(100):\n  with open(f"{1}/{{d}}/{{i}}", "w") as f: f.write(f"{{d}} {{i}} line\\n" * 40)\''
)
_GIT = "git -C tree -c user.name=a -c user.email=b -c gc.auto=0"
_TESTS = """import pytest
@pytest.mark.parametrize("n", range(100))
def test_one(n, tmp_path): (tmp_path / "x").write_text(str(n))
"""


class Shells:
    """One shell with a journal, one without, each in a folder of its own."""

    def __init__(self, folder: str) -> None:
        self._numbers = itertools.count(1)
        self.watched, self.plain = self._made(folder, "watched"), self._made(folder, "plain")
        self.plain.effects = None
        assert self.watched.coverage.how == "full", self.watched.coverage.reason

    @staticmethod
    def _made(folder: str, name: str) -> LocalEnvironment:
        os.makedirs(f"{folder}/{name}")
        return LocalEnvironment(f"{folder}/{name}")

    def prepare(self, command: str) -> None:
        for shell in (self.watched, self.plain):
            done = shell.execute(command)
            assert done.exit_code == 0, done.output.head

    def run(self, shell: LocalEnvironment, command: str) -> float:
        call = next(self._numbers)
        begin = time.perf_counter()
        done = shell.execute(command, call=call)
        assert done.exit_code == 0, done.output.head
        return time.perf_counter() - begin

    def short(self, what: str, command: str, limit: float | None, more: float) -> Iterator[Figure]:
        """As a ratio, and how many seconds more it takes than `more`."""

        def many(shell: LocalEnvironment, count: int) -> None:
            for _ in range(count):
                self.run(shell, command)

        mine, base, ratio = paired(lambda count: many(self.watched, count), lambda count: many(self.plain, count))
        yield Figure(what, milliseconds(mine), milliseconds(base), ratio, limit)
        extra = max(0.0, mine - base)
        yield Figure(f"{what}, what it takes more", milliseconds(extra), milliseconds(more), extra / more, 1.0)

    def long(self, what: str, command: str, limit: float | None, *, before: str = "true", rounds: int = 3) -> Figure:
        def timed(shell: LocalEnvironment) -> float:
            shell.execute(before)
            return self.run(shell, command)

        found = alternating(lambda: timed(self.watched), lambda: timed(self.plain), rounds=rounds)
        return Figure(what, milliseconds(found[0]), milliseconds(found[1]), found[2], limit)

    def undo(self, what: str, command: str, seconds: float, *, before: str) -> Figure:
        self.watched.execute(before)
        self.run(self.watched, command)
        call, number = next(self._numbers) - 1, next(self._numbers)
        begin = time.perf_counter()
        answer = self.watched.call_effects("undo", call=call, number=number)
        spent = time.perf_counter() - begin
        assert answer["status"] == "undone", answer
        return Figure(what, milliseconds(spent), milliseconds(seconds), spent / seconds, 1.0)


def figures() -> Iterator[Figure]:
    with tempfile.TemporaryDirectory() as folder:
        shells = Shells(folder)
        try:
            yield from _commands(shells)
            yield from _work(shells)
            yield from _many_files(shells)
        finally:
            shells.watched.close()
            shells.plain.close()
    yield from memory()


def _commands(shells: Shells) -> Iterator[Figure]:
    yield from shells.short("`true`", "true", 1.3, 0.0002)
    yield from shells.short("`echo hi`", "echo hi", 1.3, 0.0002)
    yield from shells.short("one small file", "echo x > small", None, 0.0005)


def _work(shells: Shells) -> Iterator[Figure]:
    shells.prepare(_FILES.format(10_000, "tree"))
    shells.prepare(f"git -C tree init -q; {_GIT} commit -q --allow-empty -m 0; git -C tree branch empty")
    shells.prepare(f"{_GIT} add -A; {_GIT} commit -qm 1; git -C tree branch full")
    yield shells.long("grep -r, 10,000 files", "grep -r nowhere tree || true", 1.05, rounds=7)
    yield shells.long("git status, 10,000 files", "git -C tree status >/dev/null", 1.05, rounds=7)
    shells.prepare("for i in 1 2 3 4; do echo '#include <stdio.h>' > $i.c; done")
    yield shells.long("gcc, 4 files", "for i in 1 2 3 4; do gcc -c $i.c; done", 1.05, rounds=9)
    for shell in (shells.watched, shells.plain):
        Path(shell.cwd, "test_one.py").write_text(_TESTS)
    pytest = f"{sys.executable} -m pytest -q -p no:cacheprovider --basetemp=here test_one.py >/dev/null"
    yield shells.long("pytest, 100 tests with a folder each", pytest, 1.05)
    wheel = _wheel(Path(shells.watched.cwd).parent)
    install = f"{sys.executable} -m pip install -q --no-deps --no-index --no-cache-dir --target into {wheel}"
    yield shells.long("pip install of 300 files", install, 1.2, before="rm -rf into")


def _many_files(shells: Shells) -> Iterator[Figure]:
    empty, full = (f"git -C tree checkout -q -f {branch}" for branch in ("empty", "full"))
    part = "git -C tree checkout -q full -- 0 1 2 3 4 5 6 7 8 9"
    yield shells.long("git checkout of 1,000 files", part, 1.5, before=empty, rounds=7)
    yield shells.long("git checkout of 10,000 files", full, 2.0, before=empty)
    new = _FILES.format(20_000, "new")
    yield shells.long("20,000 new files", new, 1.5, before="rm -rf new")
    yield shells.undo("undo of 20,000 new files", new, 0.1, before="rm -rf new")
    again = f"rm -rf old; {_FILES.format(10_000, 'old')}; sync"  # old files are on the disk
    yield shells.long("chmod -R of 10,000 files", "chmod -R o-r old", None, before=again)
    yield shells.long("rm -rf of 10,000 files", "rm -rf old", 1.5, before=again)
    yield shells.undo("undo of rm -rf of 10,000 files", "rm -rf old", 1.0, before=again)


def _wheel(folder: Path) -> Path:
    """Of a package with 300 modules."""
    wheel, about = folder / "demo-1-py3-none-any.whl", "demo-1.dist-info"
    with zipfile.ZipFile(wheel, "w") as archive:
        for number in range(300):
            archive.writestr(f"demo/m{number}.py", f"def f():\n    return {number}\n" * 40)
        archive.writestr(f"{about}/METADATA", "Metadata-Version: 2.1\nName: demo\nVersion: 1\n")
        archive.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{about}/RECORD", "")
    return wheel


def memory() -> Iterator[Figure]:
    """Private memory of the effect watcher: with one task, and what each further one adds."""
    with tempfile.TemporaryDirectory() as folder:
        environments = [LocalEnvironment(folder) for _ in range(_TASKS)]
        try:
            environments[0].execute("echo x > f; rm f", call=1)
            first = _watcher_bytes()
            for number, environment in enumerate(environments[1:], 2):
                environment.execute("echo x > f; rm f", call=number)
            further = (_watcher_bytes() - first) / (_TASKS - 1)
        finally:
            for environment in environments:
                environment.close()
    for what, found, megabytes in (("first task", first, 12), ("each further task", further, 1)):
        ratio = found / (megabytes * _MEGABYTE)
        yield Figure(f"memory of the watcher, {what}", f"{found / _MEGABYTE:.1f} MB", f"{megabytes} MB", ratio, 1.0)


def _watcher_bytes() -> int:
    (watcher,) = (pid for pid in proc.children(os.getpid()) if proc.command_line(pid) == "handrail-fork")
    lines = Path(f"/proc/{watcher}/smaps_rollup").read_text().splitlines()
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("Private_"))
