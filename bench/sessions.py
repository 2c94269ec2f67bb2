"""Figures of many sessions in one process: warm calls, calls that are asked about, short sessions, and what the loop notices."""

from __future__ import annotations

import asyncio
import os
import subprocess
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

from handrail.approval import ApprovalRequest, Decision
from handrail.environments.shell_host import proc
from handrail.sessions.session import Session, session
from handrail.store.database import Database

from .harness import Figure, alternating, milliseconds

_SESSIONS, _SHORT, _SANDBOXED = 500, 20, 32
_BEAT_SECONDS = 0.005
_COMMANDS = ("cd /tmp; export STATE=kept", "pwd; echo $STATE")


def figures() -> Iterator[Figure]:
    with tempfile.TemporaryDirectory() as folder:
        yield from asyncio.run(_many(folder))
        yield _short(folder)
        yield from _sandboxed(folder)


async def _many(folder: str) -> list[Figure]:
    bare_rate, bare_lag = await _bare()
    async with _opened(_SESSIONS, cwd=folder, toolsets=["coding"], approver=_yes) as sessions:

        async def call(one: Session, command: str) -> None:
            result = await one.call("terminal", {"command": command})
            assert not result.is_error, result

        await asyncio.gather(*(call(one, "true") for one in sessions))
        warm, warm_lag = await _rate(lambda number: call(sessions[number], "echo hi"), _SESSIONS)
        asked, asked_lag = await _rate(lambda number: call(sessions[number], "rm -rf none"), _SESSIONS)
    serial = _commits(Path(folder))
    what = f"warm calls, {_SESSIONS} sessions: bare bash to ours"
    return [
        Figure(what, f"{warm:.0f}/s", f"{bare_rate:.0f}/s", bare_rate / warm, 3, "before 6.8"),
        Figure("  loop lag p99, to the same with bare bash", *_lags(warm_lag, bare_lag), 1),
        Figure("asked calls, to commits one after the other", f"{asked:.0f}/s", f"{serial:.0f}/s", serial / asked),
        Figure("  loop lag p99, to the same with bare bash", *_lags(asked_lag, bare_lag), 1),
    ]


async def _yes(_: ApprovalRequest) -> Decision:
    return Decision.ONCE


def _lags(ours: float, floor: float) -> tuple[str, str, float]:
    return milliseconds(ours), milliseconds(floor), ours / floor


async def _bare() -> tuple[float, float]:
    pipe = subprocess.PIPE
    shells = [await asyncio.create_subprocess_exec("bash", "--norc", stdin=pipe, stdout=pipe) for _ in range(_SESSIONS)]

    async def call(number: int) -> None:
        shell = shells[number]
        assert shell.stdin is not None
        assert shell.stdout is not None
        shell.stdin.write(b"echo hi; echo END\n")
        await shell.stdout.readuntil(b"END\n")

    await asyncio.gather(*map(call, range(_SESSIONS)))
    found = await _rate(call, _SESSIONS)
    for shell in shells:
        shell.kill()
    await asyncio.gather(*(shell.wait() for shell in shells))
    return found


async def _rate(call: Callable[[int], Awaitable[None]], count: int) -> tuple[float, float]:
    """Calls per second when all begin at once, and how late the loop was for the latest hundredth of a steady beat."""
    lags: list[float] = []

    async def beat() -> None:
        while True:
            start = time.perf_counter()
            await asyncio.sleep(_BEAT_SECONDS)
            lags.append(time.perf_counter() - start - _BEAT_SECONDS)

    beating, start = asyncio.create_task(beat()), time.perf_counter()
    await asyncio.gather(*(call(number) for number in range(count)))
    rate = count / (time.perf_counter() - start)
    beating.cancel()
    return rate, sorted(lags)[int(len(lags) * 0.99)]


@asynccontextmanager
async def _opened(count: int, **options: object) -> AsyncIterator[list[Session]]:
    opened = [session(**options) for _ in range(count)]  # type: ignore[arg-type]
    try:
        yield list(await asyncio.gather(*(each.__aenter__() for each in opened)))
    finally:
        await asyncio.gather(*(each.__aexit__() for each in opened))


def _commits(folder: Path) -> float:
    """Durable commits per second, as one after the other takes them."""
    database, count = Database(folder / "commits.db", ("CREATE TABLE rows (value INTEGER);",), durable=True), 50
    start = time.perf_counter()
    for number in range(count):
        with database.transaction() as connection:
            connection.execute("INSERT INTO rows VALUES (?)", (number,))
    rate = count / (time.perf_counter() - start)
    database.close()
    return rate


def _short(folder: str) -> Figure:
    """A session with two commands, as a batch has many, against `bash -c` with the same two."""

    def ours() -> float:
        start = time.perf_counter()
        for _ in range(_SHORT):
            with session(cwd=folder, toolsets=["coding"]) as opened:
                for command in _COMMANDS:
                    assert not opened.call("terminal", {"command": command}).is_error
        return (time.perf_counter() - start) / _SHORT

    def floor() -> float:
        start = time.perf_counter()
        for _ in range(_SHORT):
            for command in _COMMANDS:
                subprocess.run(["bash", "-c", command], check=True, capture_output=True)
        return (time.perf_counter() - start) / _SHORT

    mine, base, ratio = alternating(ours, floor, rounds=5)
    return Figure(
        "short session, to bash -c with its commands", milliseconds(mine), milliseconds(base), ratio, None, "goal 1.3"
    )


def _sandboxed(folder: str) -> Iterator[Figure]:
    before = set(proc.tree(os.getpid()))
    opened = [session(cwd=folder, toolsets=["coding"], backend="local", sandbox=True) for _ in range(_SANDBOXED)]
    try:
        for each in opened:
            assert not each.__enter__().call("terminal", {"command": "true"}).is_error
        mine = set(proc.tree(os.getpid())) - before
        processes = len(mine) / _SANDBOXED
        memory = sum(_memory(pid) for pid in mine) / _SANDBOXED / 1024
        yield Figure("processes of a sandboxed session, of 3", f"{processes:.1f}", "3", processes / 3, None, "goal 1")
        yield Figure("  memory, of 6 MB", f"{memory:.1f} MB", "6 MB", memory / 6, None, "goal 1")
    finally:
        for each in opened:
            each.__exit__()


def _memory(pid: int) -> int:
    with open(f"/proc/{pid}/smaps_rollup") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("Pss:"))
