"""Commands that an async caller runs."""

from __future__ import annotations

import asyncio
import gc
import time
import weakref
from typing import Any

import pytest

from handrail.environments import in_loop
from handrail.environments.base import CommandResult
from handrail.environments.errors import EnvironmentClosed
from handrail.environments.local_environment import LocalEnvironment
from handrail.environments.output import OutputSink
from handrail.types import CancelToken

from ..support import PATIENCE_SECONDS, wait_until
from .conftest import naps, text


async def execute(environment: LocalEnvironment, command: str, **options: Any) -> CommandResult:
    options = {"cwd": None, "timeout": PATIENCE_SECONDS, "cancel": CancelToken(), "output": OutputSink()} | options
    return await in_loop.execute(environment, command, **options)


def test_a_short_command_needs_no_thread(local: LocalEnvironment, monkeypatch: pytest.MonkeyPatch) -> None:
    local.execute("true")  # what the first finds out about the shell takes a question
    monkeypatch.setattr(in_loop, "_LATE_SECONDS", PATIENCE_SECONDS)
    monkeypatch.delattr(in_loop, "on_worker")
    assert text(asyncio.run(execute(local, "echo hi"))) == "hi\n"
    assert text(asyncio.run(execute(local, "sleep 0.05; echo hi"))) == "hi\n"


def test_a_command_that_ends_the_shell_is_noticed_soon(local: LocalEnvironment) -> None:
    local.execute("true")
    assert asyncio.run(execute(local, "exit 3", timeout=None)).exit_code == 3


def test_a_full_pipe_is_read_soon(local: LocalEnvironment) -> None:
    local.execute("true")
    assert asyncio.run(execute(local, "head -c 200000 /dev/zero", timeout=None)).output.total_bytes == 200_000


def test_commands_that_take_long_keep_nobody_waiting(local: LocalEnvironment) -> None:
    async def main() -> None:
        commands = in_loop._commands.setdefault(asyncio.get_running_loop(), in_loop._Commands())
        for _ in range(in_loop._AT_ONCE - 1):
            await commands.turns.acquire()
        sleeping = asyncio.create_task(execute(local, "sleep 1000"))
        await asyncio.to_thread(wait_until, naps)
        await asyncio.wait_for(commands.turns.acquire(), PATIENCE_SECONDS)
        sleeping.cancel()
        await asyncio.wait([sleeping])

    asyncio.run(main())


def test_a_long_output_and_a_long_command_come_whole(local: LocalEnvironment) -> None:
    result = asyncio.run(execute(local, "head -c 200000 /dev/zero; sleep 0.1; echo end"))
    assert result.output.total_bytes == 200_004
    assert text(asyncio.run(execute(local, "echo next"))) == "next\n"


def test_a_caller_that_is_cancelled_leaves_nothing_running_and_the_shell_goes_on(local: LocalEnvironment) -> None:
    async def main() -> CommandResult:
        local.execute("kept=1")
        running = asyncio.create_task(execute(local, "sleep 1000"))
        await asyncio.to_thread(wait_until, naps)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert naps() == []
        return await execute(local, "echo $kept")

    assert text(asyncio.run(main())) == "1\n"


def test_a_cancel_at_the_moment_of_the_end_is_not_lost(local: LocalEnvironment) -> None:
    async def main() -> None:
        for turns in range(40):
            running = asyncio.create_task(execute(local, "true"))
            for _ in range(turns):
                await asyncio.sleep(0)
            if running.cancel():
                with pytest.raises(asyncio.CancelledError):
                    await running

    asyncio.run(main())
    assert text(local.execute("echo on")) == "on\n"


def test_a_token_ends_the_command(local: LocalEnvironment) -> None:
    async def main() -> CommandResult:
        cancel = CancelToken()
        running = asyncio.create_task(execute(local, "sleep 1000", cancel=cancel))
        await asyncio.to_thread(wait_until, naps)
        cancel.cancel("enough")
        return await running

    assert asyncio.run(main()).cancelled


def test_commands_of_one_shell_wait_for_each_other(local: LocalEnvironment) -> None:
    async def main() -> list[CommandResult]:
        return await asyncio.gather(*(execute(local, f"x=${{x}}{number}; echo $x") for number in range(5)))

    assert sorted(len(text(result)) for result in asyncio.run(main())) == [2, 3, 4, 5, 6]


def test_closing_in_the_loop_that_waits_for_a_command_ends_it(local: LocalEnvironment) -> None:
    async def main() -> float:
        running = asyncio.create_task(execute(local, "sleep 1000"))
        await asyncio.sleep(0)
        began = time.monotonic()
        local.close()
        with pytest.raises(EnvironmentClosed):
            await running
        return time.monotonic() - began

    assert asyncio.run(main()) < PATIENCE_SECONDS
    wait_until(lambda: naps() == [])


def test_loops_that_were_closed_are_not_kept(local: LocalEnvironment) -> None:
    async def main() -> None:
        await asyncio.gather(*(execute(local, "true") for _ in range(in_loop._AT_ONCE + 2)))
        kept.append(weakref.ref(asyncio.get_running_loop()))

    kept: list[weakref.ref[asyncio.AbstractEventLoop]] = []
    for _ in range(3):
        asyncio.run(main())
    gc.collect()
    assert [loop() for loop in kept[:2]] == [None, None]
