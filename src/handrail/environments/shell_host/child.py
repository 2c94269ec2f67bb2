"""Starting a background process: a bash with a copy of the shell's state, on pipes or on a terminal.

The shell supervisor prepares everything before it forks a job supervisor, which then only has to spawn: a fresh fork is slow at
first, because it has to copy the memory that it writes to.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shlex
import struct
import termios
from typing import Any, NamedTuple

from . import bash, bash_template, wire
from .job_folder import JobFiles
from .syscall_filter import Watch
from .wire import Packet


class Child(NamedTuple):
    """Everything that a job supervisor needs. `input` and `output` are our ends, which do not block."""

    job: Packet
    folder: JobFiles
    input: int
    output: int
    theirs: tuple[int, ...]
    files: tuple[int, ...]  # where the process reads its state and its command
    words: str
    actions: list[Any]

    def spawn(self, watch: Watch | None) -> int:
        job = self.job
        words = ("-c", self.words, "bash")
        pid = bash.spawn(job["program"], words, self.actions, cwd=job["cwd"], env=job["env"], watch=watch)
        for fd in self.theirs:
            os.close(fd)
        return pid

    @property
    def kept(self) -> tuple[int, ...]:
        """The descriptors that the job supervisor keeps."""
        folder = self.folder
        return (folder.control, folder.status, *folder.log, self.input, self.output, *self.files)

    def close(self) -> None:
        """Close what `prepare` opened."""
        for fd in (self.input, self.output, *self.theirs, *self.files):
            os.close(fd)


def prepare(job: Packet, state: bytes, text: int, folder: JobFiles) -> Child:
    """`text` is a memory file with the command. Raises OSError; nothing is left open in that case."""
    job["cwd"] = _directory(job["cwd"], job["shell_cwd"])
    with contextlib.ExitStack() as undo:

        def kept(fd: int) -> int:
            undo.callback(os.close, fd)
            return fd

        extra = "".join(f"\ncommand declare -x {name}={shlex.quote(value)}" for name, value in job["extra_env"].items())
        restore = state + os.fsencode(extra) + b"\n"
        files = (kept(wire.memory_file("restore", restore)), kept(os.dup(text)))
        actions: list[Any]
        theirs: tuple[int, ...]
        if job["pty"] is not None:
            ours_in, terminal = map(kept, os.openpty())
            ours_out = kept(os.dup(ours_in))
            resize(ours_in, *job["pty"])
            # The first terminal that a session leader opens becomes its controlling terminal.
            actions = [(os.POSIX_SPAWN_OPEN, fd, os.ttyname(terminal), os.O_RDWR, 0) for fd in (0, 1, 2)]
            theirs = (terminal,)
        else:
            read, ours_in = map(kept, os.pipe())
            ours_out, write = map(kept, os.pipe())
            actions = [(os.POSIX_SPAWN_DUP2, end, fd) for end, fd in ((read, 0), (write, 1), (write, 2))]
            theirs = (read, write)
        os.set_blocking(ours_in, False)
        os.set_blocking(ours_out, False)
        # The parent of the new bash is the job supervisor, which has them under the same numbers.
        words = bash_template.job(*(f"/proc/$PPID/fd/{fd}" for fd in files))
        undo.pop_all()
    return Child(job, folder, ours_in, ours_out, theirs, files, words, actions)


def resize(terminal: int, rows: int, columns: int) -> None:
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


def _directory(requested: str, shells: str) -> str:
    """The directory to start in: the requested one, or the shell's."""
    if not requested:
        return shells
    directory = os.path.join(shells, os.path.expanduser(requested))
    os.stat(os.path.join(directory, "."))  # raises if it cannot be entered
    return directory
