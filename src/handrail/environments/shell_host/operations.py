"""What a client can ask for besides running commands, by name: the same functions locally and remotely."""

from __future__ import annotations

import errno
import os
import stat
from typing import Any, Tuple  # noqa: UP035  Python 3.8 knows no other place

from . import jobs, proc, wire
from .journal import FileJournal, NotRecorded
from .live_shell import LiveShell
from .wire import Packet

_MAX_BYTES = 1 << 20
Answer = Tuple[Packet, bytes]  # noqa: UP006  the same


class JobOperations:
    """Operations on background processes that need only their folder, and no shell."""

    def __init__(self, jobs_root: str) -> None:
        self._root = jobs_root

    def call(self, op: str, details: Packet, data: bytes = b"") -> Answer:
        answer: Any = getattr(self, "op_" + op)(data, **details)
        return answer if isinstance(answer, tuple) else (answer, b"")

    def op_job_poll(self, _: bytes, id: str) -> Packet:  # noqa: A002  the field's name on the wire
        return jobs.poll(self._folder(id))

    def op_job_log(self, _: bytes, id: str, offset: int, max_bytes: int) -> Answer:  # noqa: A002  the field's name on the wire
        piece = jobs.read_log(self._folder(id), offset, max_bytes)
        return {"offset": piece.offset, "end": piece.end}, piece.data

    def op_job_write(self, data: bytes, id: str) -> Packet:  # noqa: A002  the field's name on the wire
        return jobs.ask(self._folder(id), "write", data=data.decode("latin-1")) or {"room": False}

    def op_job_ask(self, _: bytes, id: str, what: str, **details: Any) -> Packet:  # noqa: A002  the field's name on the wire
        answer = jobs.ask(self._folder(id), what, **details)
        if answer is None and what == "kill":
            jobs.end_orphan(self._folder(id))
        return answer or {}

    def op_job_forget(self, _: bytes, id: str) -> Packet:  # noqa: A002  the field's name on the wire
        jobs.forget(self._folder(id))
        return {}

    def op_jobs(self, _: bytes) -> Packet:
        jobs.prune(self._root)
        return {"ids": jobs.known(self._root)}

    def _folder(self, id: str) -> str:  # noqa: A002  the field's name on the wire
        if "/" in id or id in ("", ".", ".."):
            raise FileNotFoundError(2, f"there is no background process {id}")
        return os.path.join(self._root, id)


class Operations(JobOperations):
    """All operations, one per `op_` method: details and data in, details and data out. Failures are OSError or Lost."""

    def __init__(self, shell: LiveShell, jobs_root: str, journal: str = "") -> None:
        super().__init__(jobs_root)
        self._shell, self._journal = shell, journal
        self._folders: list[str] = []
        self._file_journal = FileJournal(journal) if journal else NotRecorded()

    def op_call_effects(self, _: bytes, operation: str, arguments: Packet) -> Packet:
        """An operation of call_effects.py on the journal, which lies here."""
        if not self._journal:
            raise FileNotFoundError(2, "there is no journal here")
        from . import call_effects  # of no use to run a command, and not sent along if the shell is local

        return getattr(call_effects, operation)(self._journal, **arguments)  # type: ignore[no-any-return]

    def op_left(self, _: bytes, is_idle: bool) -> Packet:
        """`is_idle`: no command runs, so that what is found was left by the last one."""
        is_certain = is_idle and not self._shell.is_running
        return self._shell.connection.ask("left", number=self._shell.last_number if is_certain else 0)

    def op_left_end(self, _: bytes, pid: int, start: int) -> Packet:
        return self._shell.connection.ask("end", pid=pid, start=start)

    def op_late(self, _: bytes, number: int, offset: int) -> Answer:
        answer = self._shell.connection.ask("late", number=number, offset=offset)
        return {"end": answer["total"]}, answer["data"].encode("latin-1")

    def op_job_start(self, data: bytes, **job: Any) -> Packet:
        folder = os.path.join(jobs.private_folder(self._root), job["id"])
        progress = {"number": self._shell.last_number, "busy": self._shell.is_running}
        details = {"segment_bytes": jobs.SEGMENT_BYTES, **job, "folder": folder, **progress}
        try:
            files = jobs.create(folder)
            fds = [wire.memory_file("text", data), files.control, files.status, *files.log]
            try:
                answer = self._shell.connection.ask("job", fds, **details)
            finally:
                for fd in fds:
                    os.close(fd)
            if "error" in answer:
                raise OSError(answer["error"], answer["reason"])
        except BaseException:
            jobs.remove_folder(folder)
            raise
        if not job["survives"]:
            self._folders.append(folder)
        return answer

    def close(self) -> None:
        """The client has left."""
        self._file_journal.close()

    def remove_folders(self) -> None:
        """After the end of the shell: remove those of the processes that ended with it, which it may not have been able to."""
        for folder in self._folders:
            jobs.remove_folder(folder)

    # Files. A failure is an OSError, which is passed to the client as it is.
    def op_resolve(self, _: bytes, cwd: str, path: str) -> Packet:
        """The absolute path with links followed; it need not exist."""
        return {"path": os.path.realpath(os.path.join(cwd, os.path.expanduser(path)))}

    def op_stat(self, _: bytes, path: str) -> Packet:
        return {"stat": _describe(path)}

    def op_entries(self, _: bytes, path: str) -> Packet:
        with os.scandir(path) as found:
            kinds = ([one.name, one.is_dir(follow_symlinks=False), one.is_file(follow_symlinks=False)] for one in found)
            return {"entries": list(kinds)}

    def op_read(self, _: bytes, path: str, offset: int, max_bytes: int) -> Answer:
        # Without O_NONBLOCK, opening a FIFO would wait for a writer.
        with proc.closing(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)) as fd:
            _check_regular(os.fstat(fd).st_mode)
            return {}, os.pread(fd, min(max_bytes, _MAX_BYTES), offset)

    def op_begin_write(self, _: bytes, path: str, mode: int | None, call: int = 0) -> Packet:
        """Create a temporary file beside the one to be replaced, and missing folders. `mode` is for a file that is new."""
        if call:
            self._file_journal.keep(call, path, is_replaced=True)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        try:
            kept: int | None = stat.S_IMODE(os.stat(path).st_mode)
            _check_regular(os.stat(path).st_mode)
            if not os.access(path, os.W_OK):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        except FileNotFoundError:
            kept = mode
        temporary = os.path.join(os.path.dirname(path), f".handrail-{os.getpid()}-{os.urandom(6).hex()}")
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        with proc.closing(os.open(temporary, flags, 0o666 if kept is None else 0o600)) as fd:
            if kept is not None:
                os.fchmod(fd, kept)
        return {"temporary": temporary}

    def op_append(self, data: bytes, temporary: str, offset: int) -> Packet:
        with open(os.open(temporary, os.O_WRONLY | os.O_CLOEXEC), "wb", 0) as file:
            file.seek(offset)
            wire.write_all(file.fileno(), data)
        return {}

    def op_end_write(self, _: bytes, temporary: str, path: str, call: int = 0) -> Packet:
        """Replace `path`. A reader sees the old content or the new, also after a crash."""
        with proc.closing(os.open(temporary, os.O_RDONLY | os.O_CLOEXEC)) as fd:
            os.fsync(fd)
        os.replace(temporary, path)
        self._file_journal.end(call)
        return {"stat": _describe(path)}

    def op_remove(self, _: bytes, path: str, call: int = 0) -> Packet:
        if call:
            self._file_journal.keep(call, path, is_replaced=False)
        kind = os.lstat(path).st_mode
        if stat.S_ISLNK(kind):
            raise OSError(errno.ELOOP, "it is a symbolic link, and those are not removed")
        (os.rmdir if stat.S_ISDIR(kind) else os.unlink)(path)
        self._file_journal.end(call)
        return {}


def _describe(path: str) -> Packet | None:
    try:
        found = os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    version = f"{found.st_mtime_ns:x}-{found.st_ctime_ns:x}-{found.st_size:x}-{found.st_ino:x}"
    return {"size": found.st_size, "is_dir": stat.S_ISDIR(found.st_mode), "version": version, "mode": found.st_mode}


def _check_regular(mode: int) -> None:
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    if not stat.S_ISREG(mode):
        raise OSError(errno.EINVAL, "it is not a regular file")
