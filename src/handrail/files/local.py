"""The files of this machine, for the file tools."""

import contextlib
import errno
import os
import stat
from collections.abc import Iterator, Sequence

from ..base.atomic import opened, replace_file
from ..errors import Denied, FileTooLarge, InvalidArguments, ToolFailed
from ..protocols import FileEntry, FileStat
from .failures import os_failure, shown, size_text, special_kind

DEFAULT_MAX_BYTES = 10 * 1024 * 1024


class LocalFiles:
    """`protocols.Files` on this machine. Every method checks the path against the roots, even if it was resolved before."""

    def __init__(
        self,
        cwd: str | None = None,
        roots: Sequence[str] = (),
        max_read_bytes: int = DEFAULT_MAX_BYTES,
        max_write_bytes: int = DEFAULT_MAX_BYTES,
        hidden: Sequence[str] = (),
    ) -> None:
        self.max_read_bytes, self.max_write_bytes = max_read_bytes, max_write_bytes
        self._roots = Roots(cwd, roots, hidden)

    def resolve(self, path: str) -> str:
        return self._roots.resolve(path)

    def host_path(self, path: str) -> str | None:
        return self.resolve(path)

    def stat(self, path: str) -> FileStat | None:
        resolved = self.resolve(path)
        try:
            with _inside(resolved) as (folder, name):
                return _stat(_without_link(os.stat(name, dir_fd=folder, follow_symlinks=False)))
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise os_failure(error, doing="use", path=path) from None

    def entries(self, path: str) -> list[FileEntry]:
        resolved = self.resolve(path)
        try:
            with opened(resolved) as folder:
                fd = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=folder)
            try:
                with os.scandir(fd) as found:
                    return [
                        FileEntry(one.name, one.is_dir(follow_symlinks=False), one.is_file(follow_symlinks=False))
                        for one in found
                    ]
            finally:
                os.close(fd)
        except OSError as error:
            raise os_failure(error, doing="list", path=path) from None

    def read(self, path: str, *, max_bytes: int, offset: int = 0) -> bytes:
        # Without O_NONBLOCK, opening a FIFO would wait for a writer.
        flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NOCTTY
        resolved = self.resolve(path)
        try:
            with _inside(resolved) as (folder, name):
                _check_regular(path, _without_link(os.stat(name, dir_fd=folder, follow_symlinks=False)))
                fd = os.open(name, flags, dir_fd=folder)
            try:
                _check_regular(path, os.fstat(fd))
                return _read(fd, offset, min(max_bytes, self.max_read_bytes))
            finally:
                os.close(fd)
        except OSError as error:
            raise os_failure(error, doing="read", path=path) from None

    def write(self, path: str, data: bytes, *, mode: int | None = None, call: int = 0) -> FileStat:  # noqa: ARG002  see Files
        resolved = self.check_write(path, data)
        try:
            return _stat(replace_file(resolved, data, mode=mode))
        except OSError as error:
            raise os_failure(error, doing="write", path=path) from None

    def check_write(self, path: str, data: bytes) -> str:
        """The resolved path, if this may be written there. Raises what `write` would."""
        if len(data) > self.max_write_bytes:
            raise FileTooLarge(
                f"cannot write {shown(path)}: it would be {size_text(len(data))}, and the limit is "
                f"{size_text(self.max_write_bytes)} (files.max_write_bytes); split it into several files"
            )
        resolved = self.resolve(path)
        try:
            with contextlib.suppress(FileNotFoundError), _inside(resolved) as (folder, name):
                _check_regular(path, _without_link(os.stat(name, dir_fd=folder, follow_symlinks=False)))
                # Replacing a file needs permission for its folder only; respect the file's own mode all the same.
                if not os.access(name, os.W_OK, dir_fd=folder, effective_ids=os.access in os.supports_effective_ids):
                    raise PermissionError(errno.EACCES, "read-only")
        except OSError as error:
            raise os_failure(error, doing="write", path=path) from None
        return resolved

    def remove(self, path: str, *, call: int = 0) -> None:  # noqa: ARG002  see Files
        literal = self._roots.resolve_parent(path)
        try:
            with _inside(literal) as (folder, name):
                kind = os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
                if stat.S_ISLNK(kind):
                    raise ToolFailed(f"cannot remove {shown(path)}: it is a link, and links are left alone")
                if stat.S_ISDIR(kind):
                    os.rmdir(name, dir_fd=folder)
                else:
                    os.unlink(name, dir_fd=folder)
        except OSError as error:
            raise os_failure(error, doing="remove", path=path) from None


def _stat(found: os.stat_result) -> FileStat:
    version = f"{found.st_mtime_ns:x}-{found.st_ctime_ns:x}-{found.st_size:x}-{found.st_ino:x}"
    return FileStat(found.st_size, stat.S_ISDIR(found.st_mode), version, found.st_mode)


def _check_regular(path: str, found: os.stat_result) -> None:
    if stat.S_ISDIR(found.st_mode):
        raise IsADirectoryError(errno.EISDIR, "is a folder")
    kind = special_kind(found.st_mode)
    if kind is not None:
        raise ToolFailed(f"{shown(path)} is {kind}, not a regular file", path=shown(path), kind=kind)


@contextlib.contextmanager
def _inside(resolved: str) -> Iterator[tuple[int, str]]:
    """A descriptor of the folder of a path without links, and the name in it."""
    folder, name = os.path.split(resolved)
    with opened(folder) as fd:
        yield fd, name or "."


def _without_link(found: os.stat_result) -> os.stat_result:
    if stat.S_ISLNK(found.st_mode):
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
    return found


def _read(fd: int, offset: int, max_bytes: int) -> bytes:
    """Up to the end of the file or `max_bytes`. The size is not used: under /proc it is 0."""
    pieces: list[bytes] = []
    left = max_bytes
    while left > 0 and (piece := os.pread(fd, min(left, 1 << 20), offset)):
        pieces.append(piece)
        offset += len(piece)
        left -= len(piece)
    return b"".join(pieces)


class ResolvedPath(str):
    """An absolute path whose links were followed. Whoever uses it follows none: what was judged is what is used."""

    __slots__ = ()


class Roots:
    """A working directory, and the folders that every path must be in. Without folders there is no limit. `hidden` are files that
    nobody may use."""

    def __init__(self, cwd: str | None, roots: Sequence[str], hidden: Sequence[str] = ()) -> None:
        self._cwd, self._hidden = cwd, tuple(hidden)
        self.allowed = tuple(os.path.realpath(os.path.expanduser(root)) for root in roots)

    def resolve(self, path: str) -> ResolvedPath:
        """The absolute path with links followed. Raises Denied outside of the roots, ToolError for an invalid path. A path that
        was resolved before is left as it is."""
        if isinstance(path, ResolvedPath):
            self.check_inside(path, path)
            return path
        literal = self._absolute(path)
        try:
            resolved = os.path.realpath(literal)
        except OSError as error:
            raise os_failure(error, doing="use", path=path) from None
        self.check_inside(path, resolved)
        return ResolvedPath(resolved)

    def resolve_parent(self, path: str) -> ResolvedPath:
        """Like `resolve` without following a link at the last step."""
        literal = self._absolute(path)
        return ResolvedPath(os.path.join(self.resolve(os.path.dirname(literal)), os.path.basename(literal)))

    def _absolute(self, path: str) -> str:
        check_path(path)
        expanded = os.path.expanduser(path)
        if expanded.startswith("/"):
            return expanded
        try:
            cwd = os.getcwd() if self._cwd is None else os.path.abspath(os.path.expanduser(self._cwd))
        except OSError:
            raise ToolFailed("the working directory no longer exists; give an absolute path") from None
        return os.path.join(cwd, expanded)

    def check_inside(self, path: str, resolved: str) -> None:
        """Raise Denied for a resolved path that is outside."""
        if resolved in self._hidden:
            why = "holds a secret that you use without seeing it (see `secrets` in the configuration)"
            raise Denied(f"{shown(path)} {why}")
        inside = [root for root in self.allowed if f"{resolved}/".startswith(f"{root.rstrip('/')}/")]
        if inside or not self.allowed:
            return
        leads = "" if resolved == path else f" (it leads to {shown(resolved)})"
        roots = [shown(root) for root in self.allowed]
        why = f"is outside of the allowed folders{leads}; allowed: {', '.join(roots)}"
        raise Denied(f"{shown(path)} {why}", allowed_roots=roots)


def check_path(path: str) -> None:
    """Raise InvalidArguments for text that cannot be a path at all."""
    if not path:
        raise InvalidArguments("path is empty; give the path of a file or folder")
    if "\0" in path:
        raise InvalidArguments(f"path holds a NUL character, which no file name can: {shown(path)}")
    try:
        os.fsencode(path)
    except UnicodeEncodeError as error:
        why = f"path holds U+{ord(path[error.start]):04X} at position {error.start}, which no file name can"
        raise InvalidArguments(why) from None
