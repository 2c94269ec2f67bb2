"""Folders that `rm -rf` is about to delete: the effect watcher moves them to the stash whole, when `rm` is about to open them.
To report each of thousands of files takes longer than to delete it. `rm` finds the folder gone, which `-f` allows. A folder is
taken only if `rm` would have deleted all of it, so far as can be told. Whatever is doubtful is left to `rm`, whose system calls
are reported one by one."""

from __future__ import annotations

import ctypes
import os
import stat
import struct
from typing import Callable, Iterator, NamedTuple  # noqa: UP035  Python 3.8 knows no other place

from . import proc
from .journal import CallJournal
from .journal_log import parent_of
from .syscall_names import Elsewhere, Names, Unreadable

_PROGRAMS = ("/bin/rm", "/usr/bin/rm")
_MIN_FILES = 100  # fewer are reported as fast
_MAX_DEPTH = 128
_LONG_OPTIONS = {"--recursive": "r", "--force": "f", "--preserve-root": ""}
_CWD = 0xFFFFFF9C
_IGNORE_MODES = 1 << 1 | 1 << 3  # the capabilities DAC_OVERRIDE and FOWNER
_RIGHTS = (b"Uid:", b"Gid:", b"Groups:", b"CapEff:", b"Seccomp_filters:")
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_statx = ctypes.CDLL(None, use_errno=True).syscall
_statx.argtypes = [ctypes.c_long, ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_uint, ctypes.c_void_p]
_STATX = {"x86_64": 332, "aarch64": 291}.get(os.uname().machine, -1)
_BASIC, _NO_FOLLOW, _EMPTY_PATH = 0x7FF, 0x100, 0x1000
# struct statx: attributes, mode, size, which attributes are known, modification time.
_FOUND = struct.Struct("<8xQ12xH2x8xQ8xQ48xqI")
_IMMUTABLE, _APPEND_ONLY, _MOUNT_ROOT = 0x10, 0x20, 0x2000


class Doubtful(Exception):
    """`rm` might leave something of it."""


class Found(NamedTuple):
    """What is needed of a file to count its deletion."""

    st_mode: int
    st_size: int
    st_mtime_ns: int


class Takeover:
    """For the processes under one filter, which `shell` has installed. One with other rights than that is left alone."""

    def __init__(self, shell: int, names: Names, is_kept_out: Callable[[str], bool]) -> None:
        self._names, self._is_kept_out = names, is_kept_out
        self._rights = _rights(shell)
        self._buffer = (ctypes.c_char * 256)()
        self._address = ctypes.addressof(self._buffer)
        user, capabilities = int(self._rights[0].split()[4]), int(self._rights[3].split()[1], 16)
        self._checks_modes = user != 0 or capabilities & _IGNORE_MODES != _IGNORE_MODES
        self._is_ours = user == os.geteuid()  # else we may do more

    def before(self, pid: int, name: int, call_of: Callable[[int], CallJournal]) -> None:
        """The process is about to open the folder whose name is at this place of its memory, to read what is in it."""
        try:
            if self._is_ours and _is_plain(pid) and _rights(pid) == self._rights:
                self._take(pid, self._names.path(pid, _CWD, name), call_of)
        except (Doubtful, Elsewhere, Unreadable, OSError, ValueError):
            pass  # `rm` tells what is wrong

    def _take(self, pid: int, path: str | None, call_of: Callable[[int], CallJournal]) -> None:
        if path is None:
            return
        parent, name = parent_of(path), os.path.basename(path)
        # The same folder twice: as the process sees it, and as we do, who have no mounts that could stop us.
        their_parent = os.open(f"/proc/{pid}/root{parent}", os.O_PATH | _FOLDER)
        with proc.closing(their_parent) as theirs, proc.closing(os.open(parent, os.O_PATH | _FOLDER)) as ours:
            is_same = os.path.samestat(os.fstat(ours), os.fstat(theirs))
            if not is_same or os.readlink(f"/proc/self/fd/{ours}") != parent:
                raise Doubtful
            if os.statvfs(theirs).f_flag & os.ST_RDONLY:
                raise Doubtful
            found = os.stat(name, dir_fd=theirs, follow_symlinks=False)
            if not stat.S_ISDIR(found.st_mode):
                return
            files = list(self._below(theirs, name, path, 0))
            # A process whose working directory is moved would go on working in it.
            working = (proc.link(f"/proc/{other}/cwd") for other in proc.newest_first())
            if len(files) < _MIN_FILES or any(cwd == path or cwd.startswith(path + "/") for cwd in working):
                return
            call = call_of(pid)
            if call.limit is not None and not call.is_new(path) and not call.limit.allows(files, pid):
                raise Doubtful
            kept = call.move_away(path, found)
            if kept:  # else it is on behalf of no call
                os.rename(name, kept, src_dir_fd=ours)
                self._names.forget()

    def _below(self, parent: int, name: str, path: str, depth: int) -> Iterator[tuple[str, Found]]:
        """Everything in a folder, and itself."""
        folder = os.open(name, _FOLDER, dir_fd=parent)
        try:
            about = self._look(folder, b"")
            if depth > _MAX_DEPTH or self._is_kept_out(path + "/"):
                raise Doubtful
            with os.scandir(folder) as inside:
                for entry in inside:
                    if entry.is_dir(follow_symlinks=False):
                        yield from self._below(folder, entry.name, f"{path}/{entry.name}", depth + 1)
                    else:
                        yield f"{path}/{entry.name}", self._look(folder, os.fsencode(entry.name))
            if self._checks_modes:
                found = os.fstat(folder)
                is_foreign = bool(found.st_mode & stat.S_ISVTX) and found.st_uid != os.geteuid()
                if is_foreign or not os.access(f"/proc/self/fd/{folder}", os.R_OK | os.W_OK | os.X_OK):
                    raise Doubtful
            yield path, about
        finally:
            os.close(folder)

    def _look(self, folder: int, name: bytes) -> Found:
        flags = _NO_FOLLOW if name else _EMPTY_PATH
        if _statx(_STATX, folder, name, flags, _BASIC, self._address) < 0:
            raise Doubtful
        attributes, mode, size, known, seconds, nanoseconds = _FOUND.unpack_from(self._buffer)
        if attributes & (_IMMUTABLE | _APPEND_ONLY | _MOUNT_ROOT) or not known & _MOUNT_ROOT:
            raise Doubtful
        return Found(mode, size, seconds * 10**9 + nanoseconds)


def _is_plain(pid: int) -> bool:
    """Whether the process is an `rm -rf` that tells nothing, and no library changes what it does."""
    if os.readlink(f"/proc/{pid}/exe") not in _PROGRAMS:
        return False
    options: set[str] = set()
    operands = is_over = False
    for word in _strings(pid, "cmdline")[1:]:
        if word.startswith("-") and not is_over and not operands:
            is_over = word == "--"
            options.update(_LONG_OPTIONS.get(word, "" if is_over else word[1:]))
        elif word.startswith("-"):
            return False
        else:
            operands = True
    is_recursive = options <= set("rRfd") and "f" in options and bool(options & set("rR"))
    return is_recursive and not any(variable.startswith("LD_") for variable in _strings(pid, "environ"))


def _strings(pid: int, name: str) -> list[str]:
    with open(f"/proc/{pid}/{name}", errors="surrogateescape") as file:
        return file.read().split("\0")[:-1]


def _rights(pid: int) -> list[bytes]:
    """What a process may do and sees, as far as the kernel tells. Landlock it does not tell."""
    with open(f"/proc/{pid}/status", "rb") as file:
        found = [line for line in file if line.startswith(_RIGHTS)]
    for name in ("mnt", "user"):
        found.append(b"%d" % os.stat(f"/proc/{pid}/ns/{name}").st_ino)
    found.append(os.fsencode(os.readlink(f"/proc/{pid}/root")))
    found.append(proc.content(f"/proc/{pid}/attr/current"))  # of a security module, if there is one
    return found
