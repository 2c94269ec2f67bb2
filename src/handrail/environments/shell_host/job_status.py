"""What is known of a background process, in a file that says it right at any moment and on a full disk.

What holds from the start is JSON in a fixed number of bytes, and is not written again. How it ended comes behind that, into room
that was taken at the start: a reader who comes in the middle finds no valid JSON there, and takes the process for running.
"""

from __future__ import annotations

import contextlib
import json
import os
import time

from .wire import Packet, write_all

_KNOWN_BYTES, _END_BYTES = 8192, 128
_NAME = "status"


def create(folder: str) -> int:
    """The file, with all the room that it will take. Raises OSError when there is none: nothing has been started then."""
    fd = os.open(os.path.join(folder, _NAME), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        write_all(fd, b" " * (_KNOWN_BYTES + _END_BYTES))
    except OSError:
        os.close(fd)
        raise
    return fd


def begin(fd: int, known: Packet) -> None:
    os.pwrite(fd, json.dumps(known).encode()[:_KNOWN_BYTES], 0)


def end(fd: int, code: int) -> None:
    content = json.dumps({"code": code, "ended_at": time.time()}).encode()
    os.pwrite(fd, content, _KNOWN_BYTES)


def read(folder: str) -> Packet:
    """Raises FileNotFoundError when there is nothing yet, or nothing any more."""
    with open(os.path.join(folder, _NAME), "rb") as file:
        content = file.read()
    try:
        status: Packet = json.loads(content[:_KNOWN_BYTES])
    except ValueError:
        raise FileNotFoundError(2, "nothing is known of it") from None
    with contextlib.suppress(ValueError):  # it has not ended
        status.update(json.loads(content[_KNOWN_BYTES:]))
    return status


def exists(folder: str) -> bool:
    return os.path.exists(os.path.join(folder, _NAME))
