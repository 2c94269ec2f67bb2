"""The files of an environment elsewhere, for the file tools."""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from ..errors import FileTooLarge, ToolError, ToolFailed
from ..files.failures import os_failure, shown, size_text
from ..files.local import Roots, check_path
from ..protocols import FileEntry, FileStat

if TYPE_CHECKING:
    from .shell_host.wire import Packet

    Call = Callable[..., tuple[Packet, bytes]]

DEFAULT_MAX_BYTES = 10 << 20
_PIECE_BYTES = 1 << 20


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
        resolved = str(self._ask("use", path, "resolve", cwd=self._cwd(), path=path)["path"])
        self._roots.check_inside(path, resolved)
        return resolved

    def host_path(self, path: str) -> str | None:  # noqa: ARG002  none of its paths is on this machine
        return None

    def stat(self, path: str) -> FileStat | None:
        found = self._ask("use", path, "stat", path=self.resolve(path))["stat"]
        return None if found is None else FileStat(**found)

    def entries(self, path: str) -> list[FileEntry]:
        found = self._ask("list", path, "entries", path=self.resolve(path))["entries"]
        return [FileEntry(*entry) for entry in found]

    def read(self, path: str, *, max_bytes: int, offset: int = 0) -> bytes:
        resolved = self.resolve(path)
        pieces: list[bytes] = []
        left = min(max_bytes, self.max_read_bytes)
        while left > 0:
            piece = self._data("read", path, "read", path=resolved, offset=offset, max_bytes=min(left, _PIECE_BYTES))
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

    def write_pieces(self, path: str, pieces: Iterable[bytes], *, mode: int | None = None, call: int = 0) -> FileStat:
        """The same for a file of any size."""
        resolved = self.resolve(path)
        temporary = self._ask("write", path, "begin_write", path=resolved, mode=mode, call=call)["temporary"]
        try:
            offset = 0
            for piece in pieces:
                self._data("write", path, "append", piece, temporary=temporary, offset=offset)
                offset += len(piece)
            ended = self._ask("write", path, "end_write", temporary=temporary, path=resolved, call=call)
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

    def _ask(self, doing: str, shown_path: str, op: str, **details: object) -> Packet:
        return self._safely(doing, shown_path, op, b"", details)[0]

    def _data(self, doing: str, shown_path: str, op: str, data: bytes = b"", **details: object) -> bytes:
        return self._safely(doing, shown_path, op, data, details)[1]

    def _safely(self, doing: str, path: str, op: str, data: bytes, details: dict[str, object]) -> tuple[Packet, bytes]:
        try:
            return self._call(op, data, **details)
        except ToolError:
            raise  # the environment is lost; that error is an OSError too
        except OSError as error:
            if error.errno == errno.EINVAL:
                raise ToolFailed(f"{shown(path)} is not a regular file", path=shown(path)) from None
            raise os_failure(error, doing=doing, path=path) from None
