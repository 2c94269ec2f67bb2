"""Background processes as seen from outside: through their folders, which outlive whoever started them.

A folder has a status and a log. The status is one file that is right at any moment and on a full disk. What is known at the start
is JSON in a fixed number of bytes, and is not written again. How the process ended follows in space that was reserved at the
start: a reader in between finds no valid JSON there, and takes the process for running.

The log is two files that are written in turn, each with the offset of its first byte at its beginning: an endless writer keeps
its latest output on a bounded disk. A full disk costs the bytes that came meanwhile, never the process.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import time
from typing import Any, NamedTuple, Sequence  # noqa: UP035  Python 3.8 knows no other place

from . import proc, wire
from .wire import Packet, write_all

SEGMENT_BYTES = 16 << 20
_START_BYTES, _END_BYTES = 8192, 128
_HEAD_BYTES = 20
_STATUS = "status"
_ANSWER_SECONDS, _KILL_SECONDS = 5.0, 2.0


def default_folder() -> str:
    """Where a machine without a Handrail installation keeps them: private to this user, and gone after a reboot."""
    # Not XDG_RUNTIME_DIR: it is removed at the user's last logout, and a process may have to be found after that.
    return f"/tmp/handrail-{os.getuid()}"


def journal_folder(name: str) -> str:
    """Where such a machine keeps the journal of the Handrail elsewhere that has this name; empty if nowhere."""
    home = os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")
    for folder in (os.path.join(home, "handrail"), default_folder()):
        try:
            return private_folder(os.path.join(private_folder(folder), f"journal-{name}"))
        except OSError:
            continue
    return ""


def private_folder(folder: str) -> str:
    """Create the folder if it is missing. It must belong to this user and not be writable by others."""
    os.makedirs(folder, mode=0o700, exist_ok=True)
    found = os.stat(folder)
    if found.st_uid != os.getuid() or found.st_mode & 0o022:
        raise PermissionError(1, f"{folder} belongs to another user or is writable by others; remove it")
    return folder


def poll(folder: str) -> Packet:
    """Its status, with `state`: running, ended, or lost (its job supervisor was killed, or the machine rebooted).
    `is_supervised` is true until everything that it started has ended too."""
    status = read_status(folder)
    is_supervised = status.get("boot") == proc.boot_id() and _lives(status, "minder")
    if status.get("code") is None and is_supervised:
        return {**status, "state": "running", "is_supervised": True}
    status = read_status(folder)  # it may have ended between the two reads
    return {**status, "state": "lost" if status.get("code") is None else "ended", "is_supervised": is_supervised}


def ask(folder: str, op: str, **details: Any) -> Packet | None:
    """Ask the job supervisor. None if it has ended."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as supervisor:
        supervisor.settimeout(_ANSWER_SECONDS)
        try:
            with proc.closing(os.open(folder, os.O_RDONLY | os.O_DIRECTORY)) as opened:
                supervisor.connect(f"/proc/self/fd/{opened}/control")
                wire.send(supervisor, {"op": op, **details})
                return wire.receive(supervisor)[0]
        except (ConnectionError, FileNotFoundError):
            return None


def known(root: str) -> list[str]:
    """The ids of all processes with a folder under `root`, the oldest first."""
    try:
        with os.scandir(root) as entries:
            found = [entry for entry in entries if os.path.exists(f"{entry.path}/{_STATUS}")]
            return [name for _, name in sorted((entry.stat().st_mtime, entry.name) for entry in found)]
    except FileNotFoundError:
        return []


def prune(root: str) -> None:
    """Remove what is left of processes that should have ended with their shell, and whose shell supervisor was killed."""
    for name in known(root):
        folder = os.path.join(root, name)
        try:
            status = poll(folder)
        except OSError:
            continue  # it is being removed
        has_owner = status["boot"] == proc.boot_id() and _lives(status, "keeper")
        if not (status["survives"] or has_owner or status["state"] == "running"):
            forget(folder)


def forget(folder: str) -> None:
    """Remove what is left of one that has ended, or lost its supervisor."""
    end_orphan(folder)
    remove_folder(folder)


def _lives(status: Packet, which: str) -> bool:
    start = status[f"{which}_start"]
    return proc.is_alive(proc.pid_here(status[which], start, status.get("pid_namespace", 0)), start)


def pid_outside(folder: str) -> int:
    """The pid in this process's namespace of the process of a folder; 0 if it has ended. Commands may know it by another."""
    status = read_status(folder)
    return proc.pid_here(status["pid"], status["start"], status.get("pid_namespace", 0))


def end_orphan(folder: str) -> None:
    """Kill a process that outlived its job supervisor, with its descendants; also those that have outlived it, too."""
    try:
        status = poll(folder)
    except OSError:
        return
    if status["state"] != "lost" or status.get("boot") != proc.boot_id():
        return
    proc.stop_and_kill(lambda: _orphans(status), lambda: None, seconds=_KILL_SECONDS)


def is_any_alive(root: str, call: int) -> bool:
    """Whether something of the background process of a call runs, or of one whose call is not known."""
    for name in known(root):
        with contextlib.suppress(OSError):  # it is being removed
            status = poll(os.path.join(root, name))
            is_here = status.get("call", call) == call and status.get("boot") == proc.boot_id()
            if is_here and (status["is_supervised"] or _orphans(status)):
                return True
    return False


def _orphans(status: Packet) -> list[int]:
    """What is left of a process without its job supervisor."""
    start, inner, of_namespace = status.get("start", 0), status.get("pid", 0), status.get("pid_namespace", 0)
    pid = proc.pid_here(inner, start, of_namespace)
    alive = [pid] if proc.is_alive(pid, start) else []
    roots = {*alive, *(proc.in_session(inner, start, of_namespace) if inner and start else ())}
    return [each for root in roots for each in (root, *proc.tree(root))]


def create_status(folder: str) -> int:
    """Create the file, with all the space it will need. Raises OSError on a full disk, before anything is started."""
    fd = os.open(os.path.join(folder, _STATUS), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        write_all(fd, b" " * (_START_BYTES + _END_BYTES))
    except OSError:
        os.close(fd)
        raise
    return fd


def write_start(fd: int, known: Packet) -> None:
    os.pwrite(fd, json.dumps(known).encode()[:_START_BYTES], 0)


def write_end(fd: int, code: int) -> None:
    content = json.dumps({"code": code, "ended_at": time.time()}).encode()
    os.pwrite(fd, content, _START_BYTES)


def read_status(folder: str) -> Packet:
    """Raises FileNotFoundError if there is no status yet, or no longer."""
    with open(os.path.join(folder, _STATUS), "rb") as file:
        content = file.read()
    try:
        status: Packet = json.loads(content[:_START_BYTES])
    except ValueError:
        raise FileNotFoundError(2, "it has no status") from None
    with contextlib.suppress(ValueError):  # it has not ended
        status.update(json.loads(content[_START_BYTES:]))
    return status


class LogPiece(NamedTuple):
    """Bytes from `offset` on; `offset` is later than requested if the log no longer has the rest. `end` is the log's end."""

    offset: int
    data: bytes
    end: int


class JobFiles(NamedTuple):
    """The open files of a job's folder. The job supervisor gets these and no folder: it may run where the folder is hidden."""

    control: int  # a listening socket
    status: int
    log: tuple[int, int]


def create(folder: str) -> JobFiles:
    """Make the folder with its files. Raises OSError, and leaves nothing open in that case."""
    os.makedirs(folder, mode=0o700)
    opened: list[int] = []
    try:
        opened.append(_listen(folder))
        opened.append(create_status(folder))
        opened += open_log(folder)
    except BaseException:
        for fd in opened:
            os.close(fd)
        raise
    control, status, *log = opened
    return JobFiles(control, status, (log[0], log[1]))


def _listen(folder: str) -> int:
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as control:
        with proc.closing(os.open(folder, os.O_RDONLY | os.O_DIRECTORY)) as opened:
            control.bind(f"/proc/self/fd/{opened}/control")  # an address has at most 107 bytes, a folder may have more
        control.listen(16)
        control.setblocking(False)
        return control.detach()


def open_log(folder: str) -> list[int]:
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
    return [os.open(path, flags, 0o600) for path in _segments(folder)]


class LogWriter:
    """Writes to two files in turn, each with the offset of its first byte before its content."""

    def __init__(self, files: Sequence[int], segment_bytes: int = SEGMENT_BYTES) -> None:
        self._files, self._segment_bytes = list(files), segment_bytes
        self._begin: int | None = None  # of the file that is written to, the last of the two
        self._size = 0
        self.total = 0  # bytes received, written or not

    def write(self, data: bytes) -> None:
        begin, self.total = self.total, self.total + len(data)
        try:
            if self._begin is None or begin - self._begin >= self._segment_bytes:
                self._files.reverse()
                self._begin, self._size = begin, 0
                os.ftruncate(self._files[-1], 0)
                os.pwrite(self._files[-1], b"%0*d" % (_HEAD_BYTES, begin), 0)
            view = memoryview(data)
            while view:
                written = os.pwrite(self._files[-1], view, _HEAD_BYTES + self._size)
                view, self._size = view[written:], self._size + written
        except OSError:
            if self._size == 0 and os.fstat(self._files[0]).st_size > _HEAD_BYTES:
                self._files.reverse()  # the same one next time: the other has what was printed before
            self._begin = None  # output that comes when there is space again starts a new file


def read_log(folder: str, offset: int, max_bytes: int) -> LogPiece:
    while True:
        found = [segment for segment in map(_head, _segments(folder)) if segment is not None]
        end = max((begin + size for begin, size, _ in found), default=0)
        for begin, size, path in sorted(found):
            if offset < begin + size:
                at, data = max(begin, offset), b""
                with contextlib.suppress(FileNotFoundError), open(path, "rb") as file:
                    data = os.pread(file.fileno(), min(max_bytes, begin + size - at), _HEAD_BYTES + at - begin)
                head = _head(path)
                if head is not None and head[0] == begin:
                    return LogPiece(at, data, end)
                break  # it was the oldest, and has just been begun anew
        else:
            return LogPiece(end, b"", end)


def _segments(folder: str) -> list[str]:
    return [os.path.join(folder, name) for name in ("log.a", "log.b")]


def _head(path: str) -> tuple[int, int, str] | None:
    """The offset of a file's first byte, how many it has, and its path. None for one that has none."""
    try:
        with open(path, "rb") as file:
            begin = file.read(_HEAD_BYTES)
            size = os.fstat(file.fileno()).st_size - _HEAD_BYTES
    except FileNotFoundError:
        return None
    return (int(begin), size, path) if begin.isdigit() and len(begin) == _HEAD_BYTES else None


def remove_folder(folder: str) -> None:
    """Remove a process's folder with its files; it has no subfolders."""
    # Another process may be removing it too, and an ending job supervisor may have written once more.
    for _ in range(3):
        with contextlib.suppress(OSError):
            for name in os.listdir(folder):
                os.unlink(os.path.join(folder, name))
            os.rmdir(folder)
            return
