"""Handles of an environment's background processes, the same for this machine and others, and of files elsewhere."""

import errno
import os
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence

from ..errors import FileTooLarge, ToolError, ToolFailed
from ..files.failures import os_failure, shown, size_text
from ..files.local import DEFAULT_MAX_BYTES, Roots, check_path
from ..protocols import FileEntry, FileStat
from ..types import CancelToken
from .base import LeftRunning, LogPiece, ProcessState, ProcessStatus
from .errors import InputRefused, NoSuchProcess
from .shell_host.wire import Packet

Call = Callable[..., tuple[Packet, bytes]]
_FIRST_POLL_SECONDS, _MAX_POLL_SECONDS = 0.0003, 0.02
_KILL_SECONDS = 5.0
_GONE = "this background process is no longer known; list those that are"
_PIECE_BYTES = 1 << 20


class _Process(ABC):
    @abstractmethod
    def poll(self) -> ProcessStatus: ...

    def wait(self, timeout: float | None = None, *, cancel: CancelToken | None = None) -> ProcessStatus:
        for _ in _poll_times(timeout, cancel):
            status = self.poll()
            if status.state is not ProcessState.RUNNING:
                break
        return status


class JobProcess(_Process):
    """One with a job supervisor (shell_host/job_supervisor.py). `call` performs an operation of shell_host/operations.py."""

    def __init__(self, call: Call, known: Packet) -> None:
        self._call = call
        self.id: str = known["id"]
        self.pid: int = known["pid"]
        self.command: str = known["command"]
        self.started_at: float = known["started_at"]
        self.has_pty: bool = known["pty"]
        self.survives: bool = known["survives"]

    def poll(self) -> ProcessStatus:
        return self._status()[0]

    def _status(self) -> tuple[ProcessStatus, bool]:
        """Its status, and whether anything that it started still runs."""
        try:
            status, _ = self._call("job_poll", id=self.id)
        except FileNotFoundError:
            raise NoSuchProcess(_GONE) from None
        return ProcessStatus(ProcessState(status["state"]), status["code"], status["ended_at"]), status["is_supervised"]

    def read(self, offset: int = 0, *, max_bytes: int = 1 << 16, timeout: float = 0.0) -> LogPiece:
        for _ in _poll_times(timeout, None):
            piece = self._log(offset, max_bytes)
            if piece.data or timeout <= 0:
                return piece
            if self.poll().state is not ProcessState.RUNNING:
                break
        return self._log(offset, max_bytes)  # including what came just before the end

    def _log(self, offset: int, max_bytes: int) -> LogPiece:
        try:
            answer, data = self._call("job_log", id=self.id, offset=offset, max_bytes=max_bytes)
        except FileNotFoundError:
            raise NoSuchProcess(_GONE) from None
        return LogPiece(answer["offset"], data, answer["end"])

    def kill(self, *, grace: float = 2.0) -> ProcessStatus:
        self._call("job_ask", id=self.id, what="kill", grace=grace)
        for _ in _poll_times(grace + _KILL_SECONDS, None):
            status, is_supervised = self._status()
            if not is_supervised:
                break
        return status

    def write(self, data: bytes) -> None:
        answer, _ = self._call("job_write", data, id=self.id)
        if not answer.get("room"):
            raise InputRefused("the process takes no input: it has ended, its input was closed, or it does not read")

    def close_stdin(self) -> None:
        self._call("job_ask", id=self.id, what="close")

    def forget(self) -> None:
        if self.poll().state is ProcessState.RUNNING:
            self.kill(grace=0.1)
        self._call("job_forget", id=self.id)

    def resize(self, rows: int, columns: int) -> None:
        self._call("job_ask", id=self.id, what="resize", rows=rows, columns=columns)

    def waits_for_input(self) -> bool:
        answer, _ = self._call("job_ask", id=self.id, what="waits")
        return bool(answer.get("waits"))

    def reader(self) -> tuple[str, bool]:
        answer, _ = self._call("job_ask", id=self.id, what="reader")
        return str(answer.get("name", "")), bool(answer.get("hides"))


class LeftProcess(_Process):
    """One that a command left running. Its log is the late output: what came through the command's pipe after its end."""

    has_pty = survives = False

    def __init__(self, call: Call, left: LeftRunning) -> None:
        self._call, self._left = call, left
        self.id, self.pid = f"left-{left.pid}-{left.start}", left.pid
        self.command, self.started_at = left.command_line, left.started_at

    def poll(self) -> ProcessStatus:
        answer, _ = self._call("left", is_idle=False)
        runs = any(one["pid"] == self.pid and one["start"] == self._left.start for one in answer["left"])
        return ProcessStatus(ProcessState.RUNNING if runs else ProcessState.ENDED)

    def read(self, offset: int = 0, *, max_bytes: int = 1 << 16, timeout: float = 0.0) -> LogPiece:
        for _ in _poll_times(timeout, None):
            has_ended = timeout > 0 and self.poll().state is not ProcessState.RUNNING
            answer, data = self._call("late", number=self._left.command_id, offset=offset)
            if data or has_ended:
                break
        return LogPiece(answer["end"] - len(data), data[:max_bytes], answer["end"])

    def kill(self, *, grace: float = 2.0) -> ProcessStatus:  # noqa: ARG002  the shell supervisor has a fixed one
        self._call("left_end", pid=self.pid, start=self._left.start)
        return self.wait(_KILL_SECONDS)

    def write(self, data: bytes) -> None:  # noqa: ARG002  the same for all input
        why = f"process {self.pid} was started with & and has no input; start it in the background instead"
        raise InputRefused(why)

    def close_stdin(self) -> None:
        """It has none."""

    def forget(self) -> None:
        self.kill()


def _poll_times(timeout: float | None, cancel: CancelToken | None) -> Iterator[None]:
    """Yields when it is time to poll: immediately, then less and less often, and once more at the end."""
    end = float("inf") if timeout is None else time.monotonic() + timeout
    pause = _FIRST_POLL_SECONDS
    yield
    while (left := end - time.monotonic()) > 0 and not (cancel is not None and cancel.cancelled):
        time.sleep(min(pause, left))
        pause = min(pause * 1.1, _MAX_POLL_SECONDS)
        yield


class RemoteFiles:
    """`protocols.Files` through the operations of shell_host/operations.py."""

    def __init__(
        self, call: Call, cwd: Callable[[], str], max_bytes: int = DEFAULT_MAX_BYTES, roots: Sequence[str] = ()
    ) -> None:
        self._call, self._cwd = call, cwd
        self._roots = Roots(None, roots)
        self.max_read_bytes = self.max_write_bytes = max_bytes

    def resolve(self, path: str) -> str:
        check_path(path)
        resolved = str(self._ask("use", path, "resolve", cwd=self._cwd(), path=path)[0]["path"])
        self._roots.check_inside(path, resolved)
        return resolved

    def host_path(self, path: str) -> str | None:  # noqa: ARG002  none of its paths is on this machine
        return None

    def stat(self, path: str) -> FileStat | None:
        found = self._ask("use", path, "stat", path=self.resolve(path))[0]["stat"]
        return None if found is None else FileStat(**found)

    def entries(self, path: str) -> list[FileEntry]:
        answer, _ = self._ask("list", path, "entries", path=self.resolve(path))
        return [FileEntry(*entry) for entry in answer["entries"]]

    def read(self, path: str, *, max_bytes: int, offset: int = 0) -> bytes:
        resolved = self.resolve(path)
        pieces: list[bytes] = []
        left = min(max_bytes, self.max_read_bytes)
        while left > 0:
            size = min(left, _PIECE_BYTES)
            _, piece = self._ask("read", path, "read", path=resolved, offset=offset, max_bytes=size)
            if not piece:
                break
            pieces.append(piece)
            offset, left = offset + len(piece), left - len(piece)
        return b"".join(pieces)

    def write(self, path: str, data: bytes, *, mode: int | None = None, call: int = 0) -> FileStat:
        """`call` is in whose name it is written: what is there before is kept in the journal there."""
        if len(data) > self.max_write_bytes:
            raise FileTooLarge(
                f"cannot write {shown(path)}: it would be {size_text(len(data))}, and the limit is "
                f"{size_text(self.max_write_bytes)}; split it into several files"
            )
        offsets = range(0, len(data), _PIECE_BYTES)
        return self.write_pieces(path, (data[at : at + _PIECE_BYTES] for at in offsets), mode=mode, call=call)

    def upload(self, host_path: str, path: str) -> None:
        with open(host_path, "rb") as file:
            mode = os.fstat(file.fileno()).st_mode & 0o777
            self.write_pieces(path, iter(lambda: file.read(_PIECE_BYTES), b""), mode=mode)

    def download(self, path: str, host_path: str) -> None:
        offset = 0
        with tempfile.NamedTemporaryFile(dir=os.path.dirname(host_path) or ".", delete=False) as file:
            try:
                while piece := self.read(path, max_bytes=_PIECE_BYTES, offset=offset):
                    file.write(piece)
                    offset += len(piece)
                os.replace(file.name, host_path)
            except BaseException:
                os.unlink(file.name)
                raise

    def write_pieces(self, path: str, pieces: Iterable[bytes], *, mode: int | None = None, call: int = 0) -> FileStat:
        resolved = self.resolve(path)
        temporary = self._ask("write", path, "begin_write", path=resolved, mode=mode, call=call)[0]["temporary"]
        try:
            offset = 0
            for piece in pieces:
                self._ask("write", path, "append", piece, temporary=temporary, offset=offset)
                offset += len(piece)
            ended, _ = self._ask("write", path, "end_write", temporary=temporary, path=resolved, call=call)
            return FileStat(**ended["stat"])
        except BaseException:
            self._call("remove", path=temporary)
            raise

    def remove(self, path: str, *, call: int = 0) -> None:
        check_path(path)
        folder, _, name = path.rstrip("/").rpartition("/")
        # The last component is not followed, so that a link is seen as a link.
        parent = self.resolve(folder or ("/" if path.startswith("/") else "."))
        self._ask("remove", path, "remove", path=f"{parent}/{name}", call=call)

    def _ask(self, doing: str, named: str, op: str, data: bytes = b"", **details: object) -> tuple[Packet, bytes]:
        """`named` is the path for messages."""
        try:
            return self._call(op, data, **details)
        except ToolError:
            raise  # the environment is lost; that error is an OSError too
        except OSError as error:
            if error.errno == errno.EINVAL:
                raise ToolFailed(f"{shown(named)} is not a regular file", path=shown(named)) from None
            raise os_failure(error, doing=doing, path=named) from None
