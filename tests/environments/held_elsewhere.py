"""System calls that wait for an answer where the shell is not on this machine."""

from __future__ import annotations

import threading
from collections.abc import Callable

from handrail.environments.live_environment import LiveEnvironment
from handrail.environments.shell_host.held_calls import ALLOW, STOP, HeldCall

_FILL = "mkdir d && for i in $(seq 40); do echo $i > d/$i; done && cd d"


def answering(shell: LiveEnvironment, answer: Callable[[HeldCall], str]) -> list[HeldCall]:
    """What is asked from now on, as long as the shell has not started yet."""
    asked: list[HeldCall] = []

    def answered(held: HeldCall) -> str:
        asked.append(held)
        return answer(held)

    shell.held.answer = answered  # type: ignore[method-assign]
    return asked


def check_pause(shell: LiveEnvironment) -> None:
    """A command that deletes much waits for longer than it may take, and goes on after a yes; after a no it is stopped."""
    answers = [ALLOW, STOP]

    def answer(_: HeldCall) -> str:
        threading.Event().wait(3)
        return answers.pop(0)

    shell.effects = {"pause": [20, 100]}
    asked = answering(shell, answer)
    shell.execute(f"cd $(mktemp -d) && {_FILL}", timeout=60)
    allowed = shell.execute("rm -f *", timeout=2, call=5)
    assert (allowed.exit_code, allowed.timed_out) == (0, False)
    assert shell.execute("ls", timeout=60).output.head == b""
    shell.execute(f"cd .. && rmdir d && {_FILL}", timeout=60)
    assert shell.execute("rm -f *", timeout=60, call=6).exit_code != 0
    assert len(shell.execute("ls", timeout=60).output.head.split()) > 10
    assert [(held.kind, held.call, held.program) for held in asked] == [
        ("many deletions", number, "rm") for number in (5, 6)
    ]
    shell.execute('cd /; rm -rf "$OLDPWD"', timeout=60)
