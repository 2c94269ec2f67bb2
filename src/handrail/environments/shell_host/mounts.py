"""Mounts of this process's own namespace: read-only folders, empty covers, and directories that cannot be renamed."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import struct
from typing import Callable, Iterator  # noqa: UP035  Python 3.8 knows no other place

from . import proc

NEW_MOUNTS, NEW_USERS, NEW_PIDS, NEW_NETWORK = 0x20000, 0x10000000, 0x20000000, 0x40000000
READ_ONLY, NO_SUID, NO_DEVICES, NO_EXEC = 1, 2, 4, 8
_REMOUNT, _BIND, _RECURSIVE, _PRIVATE = 1 << 5, 1 << 12, 1 << 14, 1 << 18
_MOUNT_SETATTR, _AT_RECURSIVE, _AT_FDCWD = 442, 0x8000, -100
_KEPT_FLAGS = 0x400 | 0xF  # relatime, and what may not be taken away from a mount of the parent namespace
_libc = ctypes.CDLL(None, use_errno=True)


def unshare(flags: int) -> None:
    """Move this process to new namespaces. In a new user namespace it keeps its user and group, and knows no others."""
    user, group = os.geteuid(), os.getegid()
    proc.check(_libc.unshare(flags), "unshare")
    if flags & NEW_USERS:
        map_user(user, group)
    if flags & NEW_MOUNTS:
        make_private()


def map_user(user: int, group: int) -> None:
    """In a new user namespace: be the same user and group as outside."""
    maps = {"setgroups": "deny", "uid_map": f"{user} {user} 1", "gid_map": f"{group} {group} 1"}
    for name, content in maps.items():
        with open(f"/proc/self/{name}", "w") as file:
            file.write(content)


def make_private() -> None:
    """Nobody else sees what is mounted here, and nothing that others mount is seen here."""
    mount(None, "/", None, _RECURSIVE | _PRIVATE)


def mount(source: str | None, target: str, kind: str | None, flags: int = 0, data: str = "") -> None:
    words = [None if word is None else os.fsencode(word) for word in (source, target, kind)]
    proc.check(_libc.mount(*words, ctypes.c_ulong(flags), data.encode() or None), f"mount on {target}")


def bind(source: str, target: str) -> None:
    mount(source, target, None, _BIND | _RECURSIVE)


def make_read_only(place: str) -> None:
    """Bind `place` to itself, read-only with everything mounted in it."""
    bind(place, place)
    _set_read_only(place, _AT_RECURSIVE)


def places() -> list[str]:
    """Where something is mounted, without /proc and what is in it and in /dev."""
    found = dict.fromkeys(row[2] for row in _mount_table())
    return [place for place in found if not _is_in(place, "/proc") and not place.startswith("/dev/")]


def make_rest_read_only(writable: list[str], rest: list[str]) -> None:
    """The mounts of `rest` are read-only but in these folders, unless a link leads to one. Raises OSError if / is not read-only
    then."""
    for place in writable:
        with contextlib.suppress(FileNotFoundError), proc.opened_without_links(place) as fd:
            bind(f"/proc/self/fd/{fd}", f"/proc/self/fd/{fd}")
    for place in rest:
        if not any(_is_in(place, folder) for folder in writable):
            with contextlib.suppress(OSError):  # this user cannot reach it, or another mount covers it
                _set_read_only(place, 0)
    if not os.statvfs("/").f_flag & os.ST_RDONLY:
        raise OSError(errno.EPERM, "the rest of the system stays writable")


def restrict(place: str, attributes: int, flags: int = _AT_RECURSIVE) -> None:
    """Add attributes to a mount, unless the flags are 0 with everything mounted in it. Needs Linux 5.12."""
    wanted = struct.pack("QQQQ", attributes, 0, 0, 0)
    result = _libc.syscall(_MOUNT_SETATTR, _AT_FDCWD, os.fsencode(place), flags, wanted, len(wanted))
    proc.check(result, f"mount on {place}")


def _set_read_only(place: str, flags: int) -> None:
    """`flags` is _AT_RECURSIVE to include everything mounted in it."""
    with contextlib.suppress(OSError):
        restrict(place, READ_ONLY, flags)
        return
    kept = os.statvfs(place).f_flag & _KEPT_FLAGS  # a kernel before 5.12: this mount alone
    mount(None, place, None, _REMOUNT | _BIND | READ_ONLY | kept)


def cover(place: str, *, writable: bool = False) -> None:
    """Put an empty folder over a folder, or /dev/null over anything else."""
    if not os.path.isdir(place):
        bind("/dev/null", place)
        return
    flags = NO_SUID | NO_DEVICES | (0 if writable else READ_ONLY)
    mount("tmpfs", place, "tmpfs", flags, "mode=0700" if writable else "mode=0500,size=64k")


def isolate(overlays: list[tuple[str, str, str]], private: list[str]) -> None:
    """Let what is changed in folders go elsewhere: each has the folder, where its changes go, and one that the kernel works in.
    The `private` folders are new and empty. All may lie in each other."""
    flags = os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC
    opened = [[os.open(path, flags) for path in overlay] for overlay in overlays]
    for place in private:
        cover(place, writable=True)
    for (folder, *_), fds in zip(overlays, opened):  # noqa: B905  Python 3.8 knows no strict
        os.makedirs(folder, exist_ok=True)
        options = zip(("lowerdir", "upperdir", "workdir"), fds)  # noqa: B905  the same
        data = ",".join(f"{name}=/proc/self/fd/{fd}" for name, fd in options)
        mount("overlay", folder, "overlay", NO_SUID | NO_DEVICES, f"{data},userxattr,volatile")
        for fd in fds:
            os.close(fd)


def pin(folders: list[str], stage: str) -> None:
    """Nobody in this mount namespace can rename or remove these directories, which otherwise stay as they are. The kernel
    refuses that for every directory that something is mounted on, whichever way leads to it. So each is bound to `stage`, and
    something is mounted on it there. `stage` is a folder that is covered afterwards."""
    for folder in folders:
        try:
            mount(folder, stage, None, _BIND)
        except OSError:  # a user namespace may not show what lies below a mount of the parent namespace
            bind(folder, stage)
        cover(stage)


def also_at(place: str) -> list[str]:
    """Other paths of the same file or folder, through other mounts of its file system."""
    table = list(_mount_table())
    inside = [row for row in table if _is_in(place, row[2])]
    if not inside:
        return []
    device, root, at = max(inside, key=lambda row: len(row[2]))  # of several at one place the last is on top
    own = os.path.normpath(os.path.join(root, os.path.relpath(place, at)))
    found = []
    for other, its_root, its_place in table:
        if other != device or its_place == at:
            continue
        if _is_in(own, its_root):
            found.append(os.path.normpath(os.path.join(its_place, os.path.relpath(own, its_root))))
        elif _is_in(its_root, own):
            found.append(its_place)
    return [path for path in found if not os.path.lexists(place) or _is_below(path, place)]


def _mount_table() -> Iterator[tuple[str, str, str]]:
    with open("/proc/self/mountinfo", "rb") as file:
        for line in file:
            words = [word.decode("unicode_escape").encode("latin-1") for word in line.split()[2:5]]
            device, root, place = map(os.fsdecode, words)
            yield device, root, place


def _is_below(path: str, place: str) -> bool:
    """Whether a mount shows a part of `place`: on the same device, and a folder or file that `place` has."""
    with contextlib.suppress(OSError):
        return os.stat(path).st_dev == os.stat(place).st_dev
    return False


def _is_in(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def devices(of_kind: Callable[[str, int], object]) -> Iterator[str]:
    """The files of /dev whose name and mode `of_kind` accepts."""
    with contextlib.suppress(OSError), os.scandir("/dev") as entries:
        for entry in entries:
            with contextlib.suppress(OSError):
                if of_kind(entry.name, entry.stat(follow_symlinks=False).st_mode):
                    yield entry.path
