"""Processes that outlive the command which started them: whose they are, and which of them must not be touched."""

from __future__ import annotations

import signal
import time
from typing import Any, Callable, NamedTuple  # noqa: UP035  Python 3.8 knows no other place

from . import proc

_MAX_LISTED = 200
_TERM_SECONDS = 0.05
_EXEC_SECONDS = 0.005


class Leftover(NamedTuple):
    start: int
    command: int  # the number of the command that left it; 0 for a minder
    lives_on: bool


class Leftovers:
    """What a shell's earlier commands left running on purpose, and the minders of its background processes."""

    def __init__(self) -> None:
        self._known: dict[int, Leftover] = {}

    def keep(self, pid: int, start: int, *, lives_on: bool) -> None:
        """A minder: never a command's own process. One that lives on is not ended with the shell either."""
        self._known[pid] = Leftover(start, 0, lives_on)

    def forget(self, pid: int) -> None:
        self._known.pop(pid, None)

    def look(self, tree: dict[int, proc.Stat], shell: int, command: int) -> list[dict[str, Any]]:
        """All that was left running. What is seen for the first time was left by `command`; 0 when one still runs."""
        self._drop_dead(tree)
        new = self.strangers(tree, shell) if command else []
        for pid in new:
            if tree[pid].parent not in new:  # what is below another goes with it
                self._known[pid] = Leftover(tree[pid].start, command, False)
        listed = [(pid, left) for pid, left in self._known.items() if left.command]
        subshell = proc.command_line(shell)
        began = time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)
        return [
            {
                "pid": pid,
                "start": left.start,
                "started_at": began + left.start / proc.TICKS_A_SECOND,
                "number": left.command,
                "command": _name(pid, subshell),
            }
            for pid, left in listed[-_MAX_LISTED:]
        ]

    def strangers(self, tree: dict[int, proc.Stat], shell: int, before: int | None = None) -> list[int]:
        """Descendants that are not known, nor below a known one, nor were there `before` that tick."""
        old = {pid for pid, left in self._known.items() if pid in tree and tree[pid].start == left.start}
        if before is not None:
            old |= {pid for pid, stat in tree.items() if stat.start < before and pid != shell}
        inside = proc.below(old, tree)
        # The worker of an old server, orphaned by now, is told by its process group; the shell's own says nothing.
        groups = {tree[pid].group for pid in inside} - {shell}
        return [
            pid
            for pid, stat in tree.items()
            if pid != shell and pid not in inside and (stat.parent in tree or stat.group not in groups)
        ]

    def mortal(self, tree: dict[int, proc.Stat]) -> list[int]:
        """All but those that live on, with what is below them."""
        spared = proc.below([pid for pid, left in self._known.items() if left.lives_on], tree)
        return [pid for pid in tree if pid not in spared]

    def end(self, pid: int, start: int, root: int, reap: Callable[[], object]) -> bool:
        """End one that was left below `root`, with all below it. False when it is not one of those."""
        left = self._known.get(pid)
        if left is None or left.start != start or not left.command:
            return False

        def find() -> set[int]:
            return proc.below([pid], proc.tree(root))

        proc.signal_each(find(), signal.SIGTERM)
        end = time.monotonic() + _TERM_SECONDS
        while time.monotonic() < end and find():
            time.sleep(0.002)
            reap()
        return proc.stop_and_kill(find, reap, seconds=1)

    def _drop_dead(self, tree: dict[int, proc.Stat]) -> None:
        for pid in [pid for pid, left in self._known.items() if pid not in tree or tree[pid].start != left.start]:
            del self._known[pid]


def _name(pid: int, subshell: str) -> str:
    """Its words; nothing for a subshell. One that was forked just now gets a moment to become the program it will be."""
    end = time.monotonic() + _EXEC_SECONDS
    while True:
        words = proc.command_line(pid)
        if words != subshell:
            return words
        if time.monotonic() > end:
            return ""
        time.sleep(0.0005)
