"""The end of the terminal ends the chat, whatever it is doing then."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys

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


def test_nothing_that_waits_for_a_closed_terminal_keeps_the_process() -> None:
    code = """
import contextlib, os, signal, threading
from handrail.cli.chat import turn
turn._LEAVE_SECONDS = 0.1
turn.leave_on_signals()
with contextlib.suppress(turn.Leave):
    os.kill(os.getpid(), signal.SIGHUP)
threading.Event().wait()
"""
    assert subprocess.run([sys.executable, "-c", code], timeout=120, check=False).returncode == 128 + signal.SIGHUP
