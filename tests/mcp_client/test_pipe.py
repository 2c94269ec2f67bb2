"""Lines to a server that reads slowly, or not at all."""

from __future__ import annotations

import asyncio
import os
import threading

import pytest

from handrail.mcp_client.pipe import Pipe


def test_what_does_not_fit_is_sent_when_there_is_room_and_in_order() -> None:
    lines = [b"%d:%s\n" % (number, b"x" * 50_000) for number in range(40)]

    async def write() -> bytes:
        theirs, ours = os.pipe()
        pipe = Pipe(ours)
        sender = threading.Thread(target=lambda: [pipe.send(line) for line in lines])
        sender.start()
        await asyncio.to_thread(sender.join)
        assert pipe.is_blocked
        reading = asyncio.ensure_future(asyncio.to_thread(_all_of, theirs))
        await pipe.drained()
        pipe.close()
        return await reading

    assert asyncio.run(write()) == b"".join(lines)


def test_what_is_left_is_dropped_with_the_reader() -> None:
    async def write() -> None:
        theirs, ours = os.pipe()
        pipe = Pipe(ours)
        pipe.send(b"x" * 1_000_000)
        os.close(theirs)
        await pipe.drained()
        with pytest.raises(OSError, match="pipe"):
            pipe.send(b"more")
        pipe.close()
        with pytest.raises(OSError, match="closed"):
            pipe.send(b"more")
        pipe.close()

    asyncio.run(write())


def _all_of(descriptor: int) -> bytes:
    with os.fdopen(descriptor, "rb") as file:
        return file.read()
