"""Hold a process under Landlock: it can write to some places only, and read all but some. The kernel does it, with no helper.

A sandbox uses it where there are no namespaces. So does the fork server of local shells, and `keep_signals_inside` always.

What it cannot do, where namespaces can: names of hidden files can be listed, modes and times of other files can be changed, local
sockets of other programs and UDP can be reached, and the processes of the machine can be seen (but not signalled or traced).
"""

from __future__ import annotations

import ctypes
import errno
import os
import stat
import struct

from . import proc

# Before 3 any file could be emptied, and before 4 nothing could be said about the network.
OLDEST_ABI, OLDEST_NETWORK_ABI, OLDEST_SCOPE_ABI = 3, 4, 6

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_PATH_BENEATH = 1
_PR_CAPBSET_DROP, _PR_SET_NO_NEW_PRIVS = 24, 38
_CAPABILITIES = 64

_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_TRUNCATE, _IOCTL_DEVICE = 1 << 14, 1 << 15
_OF_FILES = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL_DEVICE
_READ = _EXECUTE | _READ_FILE | _READ_DIR
_TCP, _CONNECT_TCP = 0b11, 0b10
_SIGNALS_AND_ABSTRACT_SOCKETS = 0b11
_RIGHTS_BY_ABI = {3: (1 << 15) - 1, 5: (1 << 16) - 1}

# What every program expects to be writable.
_DEVICES = ("null", "zero", "full", "random", "urandom", "tty", "ptmx", "pts")
_libc = ctypes.CDLL(None, use_errno=True)


def abi() -> int:
    """The Landlock version of this kernel; 0 for none."""
    return max(0, int(_libc.syscall(_CREATE_RULESET, None, 0, 1)))


def restrict(*, writable: list[str], readable: list[str], hidden: list[str], network: bool) -> None:
    """Restrict this process and its descendants permanently. Root keeps no capability in what is executed next. `readable` lies
    in hidden places; what is hidden inside of it, or of what is writable, stays hidden. No new name can be made directly in a
    writable folder above a hidden one."""
    rights = _RIGHTS_BY_ABI[5 if abi() >= 5 else 3]
    rules = _ruleset(rights, 0 if network else _TCP, _SIGNALS_AND_ABSTRACT_SOCKETS)
    _allow(rules, "/", _READ_DIR)
    secret = {os.path.realpath(place) for place in hidden if os.path.exists(place)}
    for top in ("/", *map(os.path.realpath, readable)):
        for place in _without(top, secret):
            _allow(rules, place, _READ)
    for name in _DEVICES:
        _allow(rules, os.path.join("/dev", name), rights & (_OF_FILES | _READ_DIR))
    for top in map(os.path.realpath, writable):
        for place in _without(top, secret - {top}):
            _allow(rules, place, rights)
    # Root could otherwise still read the memory of other processes.
    for capability in range(_CAPABILITIES):
        _libc.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0)
    _libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    _enforce(rules)


def protect(*, read_only: list[str], hidden: list[str]) -> None:
    """Leave this process and its descendants everything but writing to some places, and reading others. The price: no new name
    can be made directly in a folder above one of these places, because a rule covers everything below a folder, and none can
    take something out again. Names of hidden files can be listed."""
    if abi() < OLDEST_ABI:
        raise OSError(errno.ENOSYS, "Landlock is missing or too old")
    secret, held = ({os.path.realpath(place) for place in places} for places in (hidden, read_only))
    rights = _RIGHTS_BY_ABI[5 if abi() >= 5 else 3]
    rules = _ruleset(rights, 0, _SIGNALS_AND_ABSTRACT_SOCKETS)
    _allow(rules, "/", _READ_DIR)
    for place in _without("/", secret | held):
        _allow(rules, place, rights)
    for place in (part for top in held for part in _without(top, secret)):
        _allow(rules, place, _READ)
    _libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    _enforce(rules)


def keep_signals_inside(*, holds_connects: bool) -> None:
    """This process and its descendants signal, and connect by abstract sockets to, only each other. Needs CAP_SYS_ADMIN. With
    `holds_connects` only a process outside can connect their TCP sockets."""
    if abi() < OLDEST_SCOPE_ABI:
        raise OSError(errno.ENOSYS, "this kernel's Landlock cannot restrict signals")
    _enforce(_ruleset(0, _CONNECT_TCP if holds_connects else 0, _SIGNALS_AND_ABSTRACT_SOCKETS))


def _ruleset(files: int, network: int, scope: int) -> int:
    version = abi()
    size = 24 if version >= OLDEST_SCOPE_ABI else 16 if version >= OLDEST_NETWORK_ABI else 8
    return _call(_CREATE_RULESET, struct.pack("QQQ", files, network, scope)[:size], size, 0)


def _enforce(rules: int) -> None:
    with proc.closing(rules):
        _call(_RESTRICT_SELF, rules, 0)


def _without(folder: str, hidden: set[str]) -> list[str]:
    """Places that together are all of `folder` but what is hidden. Links are left out: where they lead to counts."""
    if folder in hidden:
        return []
    inside = folder.rstrip("/") + "/"
    if not any(place.startswith(inside) for place in hidden):
        return [folder]
    try:
        with os.scandir(folder) as entries:
            paths = [entry.path for entry in entries if not entry.is_symlink()]
    except OSError:
        return []
    return [place for path in paths for place in _without(path, hidden)]


def _allow(rules: int, place: str, rights: int) -> None:
    try:
        fd = os.open(place, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return  # a missing path needs no rule
    with proc.closing(fd):
        rights &= -1 if stat.S_ISDIR(os.fstat(fd).st_mode) else _OF_FILES
        _call(_ADD_RULE, rules, _PATH_BENEATH, struct.pack("=Qi", rights, fd), 0)


def _call(number: int, *arguments: object) -> int:
    found = int(_libc.syscall(number, *arguments))
    if found < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return found
