"""The end of the terminal ends the chat, whatever it is doing then."""

from __future__ import annotations

import asyncio

import pytest

from handrail.cli.chat.turn import Leave


def test_an_event_loop_does_not_keep_what_a_signal_raises_in_one_of_its_callbacks() -> None:
    def told() -> None:
        raise Leave(129)

    async def read() -> None:
        asyncio.get_running_loop().call_soon(told)
        await asyncio.Event().wait()

    with pytest.raises(Leave) as left:
        asyncio.run(read())
    assert left.value.code == 129
