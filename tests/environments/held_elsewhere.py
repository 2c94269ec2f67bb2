"""System calls that wait for an answer where the shell is not on this machine."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path

from handrail.environments.live_environment import LiveEnvironment
from handrail.environments.shell_host.held_calls import ALLOW, DENY, STOP, HeldCall

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


def check_asked_mount(make: Callable[[list[str]], LiveEnvironment], folder: Path) -> None:
    """Writes below a mount that asks wait for longer than the command may take, by whatever system call; others do not wait."""
    for name in ("kept", "gone", "old", "free/x"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(name)
    (folder / "tree").mkdir()
    for number in range(150):  # so many that `rm -rf` would be taken over
        (folder / "tree" / str(number)).touch()
    shell = make([f"{folder}:/data:ask", f"{folder}/free:/free"])
    answers = {"/data/yes": ALLOW, "/data/gone": ALLOW, "/data/old": ALLOW}

    def answer(held: HeldCall) -> str:
        given = answers.get(held.target, DENY)
        if given == ALLOW:
            threading.Event().wait(0.6)
        return given

    try:
        asked = answering(shell, answer)
        done = shell.execute(
            "cat /data/kept >/dev/null; echo a > /tmp/a && echo b > /free/x && echo c > /data/yes && rm /data/gone && "
            "mv /data/old /data/yes && cat /data/yes",
            timeout=1,
            call=1,
        )
        assert (done.output.head, done.exit_code, done.timed_out) == (b"old", 0, False)
        assert {held.target: held.second for held in asked} == {
            "/data/yes": "",
            "/data/gone": "",
            "/data/old": "/data/yes",
        }
        visible = sorted(
            name for name in os.listdir(folder) if not name.startswith(".handrail")
        )  # its journal is there too
        assert visible == ["free", "kept", "tree", "yes"]
        assert (folder / "free/x").read_text() == "b\n"
        asked.clear()
        for command in (
            "echo no > /data/kept",
            "cd /data && rm -rf tree",
            "ln -s /data/kept /tmp/l && echo no > /tmp/l",
        ):
            assert shell.execute(command, timeout=60, call=2).exit_code != 0, command
        assert {held.target for held in asked} >= {"/data/kept"}
        assert len(os.listdir(folder / "tree")) == 150
        assert (folder / "kept").read_text() == "kept"
        assert shell.execute("python3 -c 'import os; os.chmod(\"/data/kept\", 0)'", timeout=60, call=3).exit_code != 0
    finally:
        shell.close()
