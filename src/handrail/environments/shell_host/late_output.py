"""Late output: what processes print after the command that started them has ended."""

from __future__ import annotations

import os

KEPT_BYTES = 1 << 16
CLOSED = -1
_PIPES_REMEMBERED = 32


class LateOutput:
    """The latest output through one command's pipe since the command ended."""

    def __init__(self, command: int, fd: int) -> None:
        self.command = command
        self.fd = fd
        self.total = 0
        self.tail = bytearray()

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
