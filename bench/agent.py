"""Figures of the agent: what the loop costs beyond model and tools, and that length and company do not make it slower."""

from __future__ import annotations

import asyncio
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
import tracemalloc
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

from handrail.agent.agent import Agent
from handrail.agent.events import Budgets, End
from handrail.agent.models.base import CallPiece, Finished, Piece, TextPiece
from handrail.agent.models.providers.openai import OpenAIChat
from handrail.base.workers import run_async
from handrail.core.registry import registry
from handrail.model_tools import default
from handrail.store.search import search
from handrail.store.sessions import SessionStore

from . import samples
from .harness import Figure, alternating, milliseconds

_CALLS = 200
_TURNS = 1_000
_MESSAGES = int(os.environ.get("HANDRAIL_BENCH_MESSAGES", "1000000"))
_SESSIONS = 100
_MODEL_SECONDS = 1.0


class _Instant:
    """A model that answers at once: so many calls of a tool, then a word."""

    name, context_tokens = "instant", 100_000_000

    def __init__(self, calls: int) -> None:
        self._calls, self._asked = calls, 0

    async def stream(self, messages: Any, tools: Any) -> AsyncIterator[Piece]:
        self._asked += 1
        if self._asked % (self._calls + 1):
            yield CallPiece(0, f"c{self._asked}", "bench_agent", samples.ARGUMENTS)
        else:
            yield TextPiece("done")
        yield Finished()


def figures() -> Iterator[Figure]:
    registry.register(
        name="bench_agent", toolset="bench", schema=samples.schema("bench_agent"), handler=lambda args, **_: "ok"
    )
    try:
        with tempfile.TemporaryDirectory() as folder:
            yield _overhead(Path(folder))
            yield from _long_session(Path(folder))
            yield from _store(Path(folder))
            yield _company(Path(folder))
    finally:
        registry.deregister("bench_agent")


def _agent(store: SessionStore, calls: int) -> Agent:
    return Agent(default(), [_Instant(calls)], store=store, toolsets=["bench"], budgets=Budgets(model_calls=None))


def _overhead(folder: Path) -> Figure:
    """A round of the loop (ask, run one call, keep both) with a model that takes no time, less what the call itself takes."""
    store = SessionStore(folder / "overhead.db")
    agent = _agent(store, _CALLS)
    function = {"name": "bench_agent", "arguments": samples.ARGUMENTS}
    calls = [{"id": "c", "type": "function", "function": function}]

    async def only_calls() -> None:
        for _ in range(_CALLS):
            await default().batches.run(calls, task_id=agent.session_id, session_id=agent.session_id)

    def rounds() -> float:
        start = time.perf_counter()
        assert agent.run("go").end is End.ANSWERED
        return (time.perf_counter() - start) / _CALLS

    def alone() -> float:
        start = time.perf_counter()
        run_async(only_calls())
        return (time.perf_counter() - start) / _CALLS

    whole, tool, _ = alternating(rounds, alone, rounds=9)
    agent.close()
    store.close()
    mine = whole - tool
    return Figure("the loop, beyond model and tool, a turn", milliseconds(mine), "1 ms", mine / 1e-3, 1)


def _long_session(folder: Path) -> Iterator[Figure]:
    store = SessionStore(folder / "long.db")
    agent = _agent(store, 1)
    times, held = [], []
    tracemalloc.start()
    for _ in range(_TURNS):
        start = time.perf_counter()
        assert agent.run("go on, please, with what you were doing").end is End.ANSWERED
        times.append(time.perf_counter() - start)
        held.append(tracemalloc.get_traced_memory()[0])
    tracemalloc.stop()
    agent.close()
    store.close()
    early, late = statistics.median(times[100:200]), statistics.median(times[-100:])
    yield Figure("turn 1,000 of a session", milliseconds(late), milliseconds(early), late / early, 1.3)
    first, last = (held[200] - held[100]) / 100, (held[-1] - held[-101]) / 100
    yield Figure("memory that turn 1,000 adds", f"{last:,.0f} B", f"{first:,.0f} B", last / first, 1.3)


def _store(folder: Path) -> Iterator[Figure]:
    store = SessionStore(folder / "many.db")
    _fill(store, _MESSAGES)
    message = {"role": "assistant", "content": _text(random.Random(5), 150)}
    session = store.recent(limit=1)[0].id
    writes = [_timed(lambda: store.append(session, [message])) for _ in range(200)]
    mine = statistics.median(writes)
    yield Figure("a message written", milliseconds(mine), "1 ms", mine / 1e-3, 1)
    queries = {
        "a rare word": "word49000",
        "two words": "word300 word4000",
        "a word that is everywhere": "word0",
        "a phrase": '"word1 word2"',
        "a piece of code": "fig(path_17",
        "no hit": "nothingofthesort",
        "another script": "配置文件",
    }
    medians = []
    for query in queries.values():
        medians.append(statistics.median(_timed(lambda query=query: search(store, query, limit=8)) for _ in range(11)))
    store.close()
    mine = statistics.median(medians)
    worst = max(zip(medians, queries, strict=True))
    said = f"slowest: {worst[1]}, {milliseconds(worst[0])}"
    yield Figure(f"a search in {_MESSAGES:,} messages", milliseconds(mine), "50 ms", mine / 50e-3, 1, said)


def _fill(store: SessionStore, count: int) -> None:
    made = random.Random(7)
    sessions = [store.create(platform="cli", model="m", cwd="/w", title=f"session {number}") for number in range(1_000)]
    for start in range(0, count, 10_000):
        messages = [{"role": "user", "content": _text(made, 12)} for _ in range(min(10_000, count - start))]
        store.append(sessions[start // 10_000 % len(sessions)].id, messages)
    store.index()


def _text(made: random.Random, words: int) -> str:
    """Words as they are spread in languages: few everywhere, most rarely; now and then code, or another script."""
    text = " ".join(f"word{int(50_000 ** made.random()) - 1}" for _ in range(words))
    rare = made.random()
    return (
        f"{text} read_config(path_{int(rare * 1e6)})"
        if rare < 0.05
        else f"{text} 请读取配置文件"
        if rare > 0.999
        else text
    )


def _timed(work: Any) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


_SERVER = """
import json, sys, time
from handrail.testing import ModelReply, ModelServer, call
seconds, ARGUMENTS = float(sys.argv[1]), json.loads(sys.argv[2])
def answer(messages, tools):
    time.sleep(seconds)  # as long as a fast model takes
    return ModelReply("done") if messages[-1]["role"] == "tool" else ModelReply("", [call("bench_agent", **ARGUMENTS)])
with ModelServer([answer] * 100_000) as server:
    print(server.base_url, flush=True)
    sys.stdin.read()
"""


def _company(folder: Path) -> Figure:
    """How long a turn (two questions, one call) takes with 100 sessions at work, against one alone."""
    store = SessionStore(folder / "company.db")
    with subprocess.Popen(
        [sys.executable, "-c", _SERVER, str(_MODEL_SECONDS), samples.ARGUMENTS],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as server:
        assert server.stdout is not None
        url = server.stdout.readline().strip()

        def agent() -> Agent:
            return Agent(default(), [OpenAIChat("m", base_url=url)], store=store, toolsets=["bench"])

        async def turns(one: Agent, wait: float) -> list[float]:
            await asyncio.sleep(wait)  # people do not speak all at the same moment
            times = []
            for _ in range(3):
                start = time.perf_counter()
                assert (await one.arun("go")).end is End.ANSWERED
                times.append(time.perf_counter() - start)
            return times

        async def all_of(count: int) -> float:
            agents = [agent() for _ in range(count)]
            found = await asyncio.gather(
                *(turns(one, place * 2 * _MODEL_SECONDS / count) for place, one in enumerate(agents))
            )
            for one in agents:
                one.close()
            return statistics.median(seconds for times in found for seconds in times)

        asyncio.run(all_of(1))
        alone = asyncio.run(all_of(1))
        together = asyncio.run(all_of(_SESSIONS))
        server.kill()
    store.close()
    what = f"a turn among {_SESSIONS} sessions"
    return Figure(what, milliseconds(together), milliseconds(alone), together / alone, 1.3)
