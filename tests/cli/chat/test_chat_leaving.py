"""The end of the terminal ends the chat, whatever it is doing then."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from handrail.cli.chat.turn import Leave, leave_on_signals, run


def test_an_event_loop_does_not_keep_what_a_signal_raises_in_one_of_its_callbacks() -> None:
    def told() -> None:
        raise Leave(129)

    async def read() -> None:
        asyncio.get_running_loop().call_soon(told)
        await asyncio.Event().wait()

    with pytest.raises(Leave) as left:
        asyncio.run(read())
    assert left.value.code == 129


def _run(code: str, folder: Path) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([sys.executable, "-c", code, str(folder)], timeout=120, check=False, capture_output=True)


def test_nothing_that_waits_for_a_closed_terminal_keeps_the_process_or_pasted_images(tmp_path: Path) -> None:
    code = """
import contextlib, os, signal, sys, threading
from pathlib import Path
from handrail.cli.chat import turn
turn._LEAVE_SECONDS = 0.1
pasted = Path(sys.argv[1], "pasted")
pasted.touch()
turn.leave_on_signals(pasted.unlink)
with contextlib.suppress(turn.Leave):
    os.kill(os.getpid(), signal.SIGHUP)
threading.Event().wait()
"""
    assert _run(code, tmp_path).returncode == 128 + signal.SIGHUP
    assert not list(tmp_path.iterdir())


def test_the_prompt_ends_whatever_its_event_loop_was_about_to_do(tmp_path: Path) -> None:
    """A signal before each of the loop's first steps. One that raised there would lose the step, and the task that it is of."""
    code = """
import asyncio, os, signal, sys
from pathlib import Path
from prompt_toolkit.application import create_app_session
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput
from handrail.cli.chat import turn
from handrail.cli.chat.input import Input
from handrail.cli.chat.pastes import Pastes
run, steps = asyncio.Handle._run, 0

def run_after_signal(handle):
    global steps
    steps -= 1
    if not steps:
        os.kill(os.getpid(), signal.SIGHUP)
    return run(handle)

asyncio.Handle._run = run_after_signal
for number in range(1, 25):
    steps = number
    turn.leave_on_signals(lambda: None)
    with create_pipe_input() as pipe, create_app_session(input=pipe, output=DummyOutput()):
        made = Input(history=Path(sys.argv[1], "history"), choices=dict, resources=list, toolbar=str, coloured=False,
                     folder=lambda: sys.argv[1], next_mode=lambda: None, pastes=Pastes())
        pipe.send_text("/h")
        try:
            made.read(str)
        except turn.Leave as left:
            assert left.code == 129
        else:
            raise AssertionError(f"the signal before step {number} was lost")
print("left each time")
"""
    ran = _run(code, tmp_path)
    assert ran.stdout == b"left each time\n", ran.stderr.decode()


def test_a_second_signal_does_not_interrupt_what_closes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threading.Timer, "start", lambda _: None)
    before = {number: signal.getsignal(number) for number in (signal.SIGHUP, signal.SIGTERM)}
    try:
        leave_on_signals(lambda: None)
        with pytest.raises(Leave):
            run(
                lambda: os.kill(os.getpid(), signal.SIGHUP),
                stop=lambda: None,
                draw=lambda: None,
                suspend=lambda: None,
                read_keys=lambda: None,
            )
        os.kill(os.getpid(), signal.SIGTERM)  # as a shell or a service manager does after the terminal's own
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
