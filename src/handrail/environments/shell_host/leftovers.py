"""What outlives the command that started it: processes, which of them must not be touched, and what they still print."""

from __future__ import annotations

import os
import signal
import time
from typing import Any, Callable, NamedTuple  # noqa: UP035  Python 3.8 knows no other place

from . import proc

_MAX_LISTED = 200
_TERM_SECONDS, _EXEC_SECONDS = 0.05, 0.005
KEPT_BYTES = 1 << 16
CLOSED = -1
_PIPES_REMEMBERED = 32


class Leftover(NamedTuple):
    start: int
    command: int  # the number of the command that left it; 0 for a job supervisor
    survives: bool


class Leftovers:
    """What a shell's earlier commands left running on purpose, and the supervisors of its background processes."""

    def __init__(self) -> None:
        self._known: dict[int, Leftover] = {}

    def keep(self, pid: int, start: int, *, survives: bool) -> None:
        """Register a job supervisor, which is never a command's own process. If it survives, it does not end with the shell."""
        self._known[pid] = Leftover(start, 0, survives)

    def forget(self, pid: int) -> None:
        self._known.pop(pid, None)

    def find(self, tree: dict[int, proc.Stat], shell: int, command: int) -> list[dict[str, Any]]:
        """Everything that was left running. What is new was left by `command`, which is 0 if one still runs."""
        for pid in [pid for pid, left in self._known.items() if pid not in tree or tree[pid].start != left.start]:
            del self._known[pid]
        new = self.strangers(tree, shell) if command else []
        for pid in new:
            if tree[pid].parent not in new:  # descendants are ended with their parent
                self._known[pid] = Leftover(tree[pid].start, command, False)
        listed = [(pid, left) for pid, left in self._known.items() if left.command]
        subshell = proc.command_line(shell)
        began = time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)
        return [
            {
                "pid": pid,
                "start": left.start,
                "started_at": began + left.start / proc.TICKS_PER_SECOND,
                "number": left.command,
                "command": _name(pid, subshell),
            }
            for pid, left in listed[-_MAX_LISTED:]
        ]

    def strangers(self, tree: dict[int, proc.Stat], shell: int, before: int | None = None) -> list[int]:
        """Descendants that are not known, not below a known one, and not older than the tick `before`."""
        old = {pid for pid, left in self._known.items() if pid in tree and tree[pid].start == left.start}
        if before is not None:
            old |= {pid for pid, stat in tree.items() if stat.start < before and pid != shell}
        inside = proc.below(old, tree)
        # An orphaned worker of an old server is recognised by its process group; the shell's own group means nothing.
        groups = {tree[pid].group for pid in inside} - {shell}
        return [
            pid
            for pid, stat in tree.items()
            if pid != shell and pid not in inside and (stat.parent in tree or stat.group not in groups)
        ]

    def not_surviving(self, tree: dict[int, proc.Stat]) -> list[int]:
        """All but those that survive, with their descendants."""
        spared = proc.below([pid for pid, left in self._known.items() if left.survives], tree)
        return [pid for pid in tree if pid not in spared]

    def end(self, pid: int, start: int, root: int, reap: Callable[[], object]) -> bool:
        """End a leftover below `root`, with its descendants. False if it is not a leftover."""
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


def _name(pid: int, subshell: str) -> str:
    """Its command line; empty for a subshell. A process that was just forked gets a moment to execute its program."""
    end = time.monotonic() + _EXEC_SECONDS
    while True:
        words = proc.command_line(pid)
        if words != subshell:
            return words
        if time.monotonic() > end:
            return ""
        time.sleep(0.0005)


class LateOutput:
    """The latest output through one command's pipe since the command ended."""

    def __init__(self, command: int, fd: int) -> None:
        self.command, self.fd = command, fd
        self.total, self.tail = 0, bytearray()

    def read(self) -> bool:
        """Read what is there. False at the end of the pipe, which is then closed."""
        try:
            data = os.read(self.fd, 1 << 16)
        except BlockingIOError:
            return True
        self.total += len(data)
        self.tail += data
        del self.tail[:-KEPT_BYTES]
        if not data:
            os.close(self.fd)
            self.fd = CLOSED
        return bool(data)


class LatePipes:
    """Of all commands. Reading continues so that a server neither blocks on a full pipe nor dies of a closed one."""

    def __init__(self) -> None:
        self._of_command: dict[int, LateOutput] = {}

    @property
    def is_used(self) -> bool:
        return bool(self._of_command)

    def add(self, command: int, fd: int) -> LateOutput:
        os.set_blocking(fd, False)
        late = self._of_command[command] = LateOutput(command, fd)
        ended = [number for number, one in self._of_command.items() if one.fd == CLOSED]
        for number in ended[:-_PIPES_REMEMBERED]:
            del self._of_command[number]
        return late

    def since(self, command: int, offset: int) -> tuple[int, bytes]:
        """The total size so far, and what is kept from `offset` on."""
        late = self._of_command.get(command)
        if late is None:
            return 0, b""
        start = max(0, offset - (late.total - len(late.tail)))
        return late.total, bytes(late.tail[start:])
