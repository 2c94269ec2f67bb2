"""The real Daytona SDK against the double's terminals: on a raw one a process can be talked to in bytes.

With the asynchronous SDK. The other one gives up on a terminal that does not answer within a tenth of a second: it waits
for a `TimeoutError` where httpx-ws raises `queue.Empty` (daytona 0.226.1, `PtyHandle.wait_for_connection`).
"""

from __future__ import annotations

import asyncio
import os
import shlex
import uuid
from collections.abc import Awaitable, Callable
from types import ModuleType
from typing import Any

import pytest

from ..support import wait_until
from .proofs import EVERY_BYTE, LOADER, REVERSER, running_with

# What the real daemon takes in one message.
MAX_BYTES_IN = 64 * 1024


class Stream:
    """Bytes to and from a process in a Daytona sandbox: a terminal that is told to leave them alone. All is public API.

    What the shell says before is skipped: the process says a word first that the command line does not contain. Nothing
    in bytes is sent before that word. The command line stays short, as long as the terminal may still take it as a line.
    """

    def __init__(self) -> None:
        self.handle: Any = None
        self._said: asyncio.Queue[bytes] = asyncio.Queue()
        self._buffer = b""

    @classmethod
    async def open(cls, sandbox: Any, program: str, *, env: dict[str, str] | None = None) -> Stream:
        stream = cls()
        word = uuid.uuid4().hex.encode()
        announced = f"import os;os.write(1,bytes.fromhex('{word.hex()}'))\n{program}"
        # Never waits: the daemon drops a client that does not keep up with the output.
        stream.handle = await sandbox.process.create_pty_session(
            uuid.uuid4().hex, on_data=stream._said.put_nowait, envs=env
        )
        await stream.handle.send_input(f"stty raw -echo; exec python3 -c {shlex.quote(announced)}\n")
        while word not in stream._buffer:
            stream._buffer += await stream._said.get()
        stream._buffer = stream._buffer.partition(word)[2]
        return stream

    async def write(self, data: bytes) -> None:
        for start in range(0, len(data), MAX_BYTES_IN):
            await self.handle.send_input(data[start : start + MAX_BYTES_IN])

    async def read(self, count: int) -> bytes:
        while len(self._buffer) < count:
            self._buffer += await self._said.get()
        taken, self._buffer = self._buffer[:count], self._buffer[count:]
        return taken

    async def reversed(self, frame: bytes) -> bytes:
        await self.write(len(frame).to_bytes(4, "big") + frame)
        return await self.read(int.from_bytes(await self.read(4), "big"))

    async def close(self) -> None:
        await self.handle.disconnect()


async def _reverser(sandbox: Any, **options: Any) -> Stream:
    stream = await Stream.open(sandbox, LOADER, **options)
    await stream.write(b"%09d" % len(REVERSER) + REVERSER)
    return stream


@pytest.fixture
def in_sandbox(daytona_sdk: ModuleType) -> Callable[[Callable[[Any], Awaitable[None]]], None]:
    """Runs what is given to it with a sandbox."""

    async def run(scenario: Callable[[Any], Awaitable[None]]) -> None:
        async with daytona_sdk.AsyncDaytona() as client:
            sandbox = await client.create()
            try:
                await scenario(sandbox)
            finally:
                await sandbox.delete()

    return lambda scenario: asyncio.run(run(scenario))


def test_a_process_on_a_raw_terminal_is_talked_to_in_bytes(in_sandbox: Any) -> None:
    async def scenario(sandbox: Any) -> None:
        stream = await _reverser(sandbox)
        for frame in (b"x", EVERY_BYTE, b"", os.urandom(1_000_000)):
            assert await stream.reversed(frame) == frame[::-1]
        await stream.close()

    in_sandbox(scenario)


def test_two_processes_are_talked_to_at_once(in_sandbox: Any) -> None:
    async def scenario(sandbox: Any) -> None:
        one, other = await _reverser(sandbox), await _reverser(sandbox)
        assert await asyncio.gather(one.reversed(b"one"), other.reversed(b"other")) == [b"eno", b"rehto"]
        await one.close()
        await other.close()

    in_sandbox(scenario)


def test_a_terminal_ends_with_its_exit_code(in_sandbox: Any) -> None:
    async def scenario(sandbox: Any) -> None:
        handle = await sandbox.process.create_pty_session("ends", on_data=lambda _: None)
        await handle.send_input("exit 5\n")
        assert (await handle.wait()).exit_code == 5
        assert await sandbox.process.list_pty_sessions() == []

    in_sandbox(scenario)


def test_a_terminal_has_its_size_and_variables_and_is_killed_with_all_that_runs_in_it(
    daytona_sdk: ModuleType, in_sandbox: Any
) -> None:
    async def scenario(sandbox: Any) -> None:
        mark = uuid.uuid4().hex
        stream = await _reverser(sandbox, env={"MARK": mark})
        resized = await stream.handle.resize(daytona_sdk.PtySize(rows=50, cols=132))
        assert (resized.rows, resized.cols) == (50, 132)
        assert running_with(mark)
        await stream.handle.kill()
        assert (await stream.handle.wait()).exit_code == 137
        wait_until(lambda: not running_with(mark))

    in_sandbox(scenario)


def test_a_terminal_does_not_end_because_its_client_is_gone_and_can_be_connected_to_again(in_sandbox: Any) -> None:
    """Nor does Daytona end it: whoever must not outlive its client has to ask for a sign of life."""

    async def scenario(sandbox: Any) -> None:
        mark = uuid.uuid4().hex
        stream = await _reverser(sandbox, env={"MARK": mark})
        await stream.close()
        again = Stream()
        [session] = await sandbox.process.list_pty_sessions()
        again.handle = await sandbox.process.connect_pty_session(session.id, on_data=again._said.put_nowait)
        assert await again.reversed(b"abc") == b"cba"
        await again.handle.kill()
        await again.close()
        wait_until(lambda: not running_with(mark))

    in_sandbox(scenario)


def test_a_message_that_is_too_long_ends_the_connection(in_sandbox: Any) -> None:
    async def scenario(sandbox: Any) -> None:
        stream = await _reverser(sandbox)
        await stream.handle.send_input(bytes(MAX_BYTES_IN + 1))
        await stream.handle.wait()
        assert not stream.handle.is_connected()

    in_sandbox(scenario)


def test_a_client_that_does_not_read_is_dropped(in_sandbox: Any) -> None:
    async def scenario(sandbox: Any) -> None:
        has_ended = asyncio.Event()

        async def read_nothing(_: bytes) -> None:
            await has_ended.wait()

        handle = await sandbox.process.create_pty_session("slow", on_data=read_nothing)
        await handle.send_input("stty raw -echo; exec head -c 60000000 /dev/zero\n")
        while await sandbox.process.list_pty_sessions():
            pass
        has_ended.set()
        assert (await handle.wait()).exit_code is None

    in_sandbox(scenario)
