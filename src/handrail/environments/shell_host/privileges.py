"""What a process gives up for good: capabilities, and the right to make mount namespaces."""

from __future__ import annotations

import ctypes
import errno
import os
import struct

from .mounts import NEW_MOUNTS, check

_PR_SET_SECCOMP, _PR_CAPBSET_DROP, _MODE_FILTER = 22, 24, 2
_CAPABILITY_VERSION = 0x20080522

# What would let root undo a mount, reach into other processes and the kernel, or read a file past the mounts.
_DROPPED_BY_ROOT = {
    "dac_read_search": 2,  # open_by_handle_at
    "sys_module": 16,
    "sys_rawio": 17,
    "sys_ptrace": 19,
    "sys_admin": 21,
    "mknod": 27,
    "mac_override": 32,
    "mac_admin": 33,
    "perfmon": 38,
    "bpf": 39,
    "checkpoint_restore": 40,
}
_ALL = range(64)

_ALLOW, _ERROR = 0x7FFF0000, 0x00050000
_LOAD, _EQUAL, _AND, _HAS_BIT, _RETURN = 0x20, 0x15, 0x54, 0x45, 0x06
_NUMBER, _ARCHITECTURE, _FIRST_ARGUMENT = 0, 4, 16
_X32 = 0x40000000
_CLONE3 = 435  # the same everywhere
# By machine: each architecture that its programs may be of, with the numbers of clone and unshare.
_CALLS = {
    "x86_64": ((0xC000003E, 56, 272), (0x40000003, 120, 310)),
    "aarch64": ((0xC00000B7, 220, 97), (0x40000028, 120, 337)),
}

_libc = ctypes.CDLL(None, use_errno=True)


def drop_capabilities() -> None:
    """This process gets what its programs will have: root loses the dangerous ones, all others lose all.

    It must not have more than they: bash could not open this process's descriptors then.
    """
    dropped = frozenset(_DROPPED_BY_ROOT.values() if os.geteuid() == 0 else _ALL)
    for number in dropped:
        _libc.prctl(_PR_CAPBSET_DROP, number, 0, 0, 0)  # it fails for numbers that this kernel does not have
    header = struct.pack("Ii", _CAPABILITY_VERSION, 0)
    data = ctypes.create_string_buffer(24)
    check(_libc.capget(header, data), "capget")
    effective, permitted, _, effective_high, permitted_high, _ = struct.unpack("6I", data.raw)
    low = sum(1 << number for number in _ALL[:32] if number not in dropped)
    high = sum(1 << number - 32 for number in _ALL[32:] if number not in dropped)
    left = (effective & low, permitted & low, 0, effective_high & high, permitted_high & high, 0)
    check(_libc.capset(header, struct.pack("6I", *left)), "capset")


def forbid_mount_namespaces() -> None:
    """In a mount namespace of its own a program could take away what keeps directories from being renamed.

    User namespaces without one, as browsers use them for their sandbox, stay possible. Needs CAP_SYS_ADMIN.
    """
    calls = _CALLS.get(os.uname().machine)
    if calls is None:
        raise OSError(errno.ENOSYS, f"there is no system call filter for {os.uname().machine}")
    program = b"".join(_rules(*call) for call in calls) + _step(_RETURN, _ALLOW)
    code = ctypes.create_string_buffer(program)
    header = struct.pack("HxxxxxxP", len(program) // 8, ctypes.addressof(code))
    check(_libc.prctl(_PR_SET_SECCOMP, _MODE_FILTER, header, 0, 0), "seccomp")


def _rules(architecture: int, clone: int, unshare: int) -> bytes:
    """For programs of one architecture; for others they jump to what follows."""
    return b"".join(
        (
            _step(_LOAD, _ARCHITECTURE),
            _step(_EQUAL, architecture, 0, 10),
            _step(_LOAD, _NUMBER),
            _step(_AND, ~_X32 & 0xFFFFFFFF),
            _step(_EQUAL, _CLONE3, 4, 0),  # its flags are in memory, out of reach; libraries fall back to clone
            _step(_EQUAL, clone, 1, 0),
            _step(_EQUAL, unshare, 0, 4),
            _step(_LOAD, _FIRST_ARGUMENT),
            _step(_HAS_BIT, NEW_MOUNTS, 1, 2),
            _step(_RETURN, _ERROR | errno.ENOSYS),
            _step(_RETURN, _ERROR | errno.EPERM),
            _step(_RETURN, _ALLOW),
        )
    )


def _step(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("HBBI", code, if_true, if_false, value)
