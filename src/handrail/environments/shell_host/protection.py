"""Run local commands where the kernel protects what belongs to Handrail.

In a mount namespace of its own, Handrail's folders are read-only or covered, and so are sockets through which another program
would act for a command. Root does this directly, and then gives up what could undo it; everybody else does it in a user namespace
that knows only their own user, where `sudo` gains nothing. If possible there is a process namespace too, in which the fork server
is the first process. Inside of all this there can be no second one: the outer one holds. Without namespaces Landlock protects the
folders.

The fork server enters what is the same for all shells. Each shell then gets mounts of its own, in which its work tree is
writable, and gives up the rights that could undo them. The fork server keeps those: nobody without them can reach into it.

A policy is an object with lists of paths, except for the last ones:

    read_only   cannot be changed                      hidden      are empty
    shown       parts of what is hidden, read-only     writable    parts of what is read-only, not so
    covered     sockets and folders of sockets; a folder is replaced by an empty one that commands can use
    kept        parts of what is covered               pids        whether to use a process namespace
    isolated    folders whose changes go elsewhere, and `private` ones that are empty, as for mounts.isolate; or None
    contained   whether everything else is read-only but the folders of a shell
    network     whether there is one
    is_nested   whether this process was started by a command of another Handrail
    jobs_root   the folder of background processes, hidden, from which the fork server's jobs are removed at its end

The policy of a shell has `read_only` files of its project, sockets that are `covered` now, and `contained` (see
outside_writes.py), with its `writable` folders; or None.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import json
import os
import re
import signal
import socket
import stat
import struct
from typing import Callable, Iterable  # noqa: UP035  Python 3.8 knows no other place

from . import landlock, mounts, proc
from .mounts import NEW_MOUNTS
from .wire import Packet

NAMESPACES, LANDLOCK, OUTER, NOTHING = "namespaces", "landlock", "outer", "nothing"
CONTAINED = "files outside of the work tree"  # among what is missing
_SSH_INCLUDED = "/etc/ssh/ssh_config.d"
_SIOCSIFFLAGS, _IFF_UP = 0x8914, 1
# Terminals of the person, and devices that type.
_CONSOLE = re.compile(r"(?:tty\d+|console|vcsa?u?\d*|uinput)")
_PR_SET_SECCOMP, _PR_CAPBSET_DROP, _MODE_FILTER = 22, 24, 2
_CAPABILITY_VERSION = 0x20080522

# What would let root undo a mount, reach into other processes and the kernel, or read a file past the mounts.
# In this order: dac_read_search (open_by_handle_at), sys_module, sys_rawio, sys_ptrace, sys_admin, mknod, mac_override,
# mac_admin, perfmon, bpf, checkpoint_restore.
_DROPPED_BY_ROOT = (2, 16, 17, 19, 21, 27, 32, 33, 38, 39, 40)
_OF_NETWORK = (12, 13)  # net_admin and net_raw, which could lead an allowed connection elsewhere
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


def enter(policy: Packet, stay_outside: Callable[[int], None]) -> Packet:
    """Protect this process, as well as this system can, and report how: `by`, `pids` and what is `missing`. If anything can
    protect it, this returns in a fork of this process, with a descriptor `alive` that it closes at its end. In this process
    `stay_outside` gets the other end of that."""
    why = ""
    for pids in (True, False) if policy["pids"] else (False,):
        answer = _attempt(lambda pids=pids: _by_namespaces(policy, pids), stay_outside)  # type: ignore[misc]
        if "by" in answer:
            return answer
        why = why or answer["why"]
    if policy["is_nested"]:
        return {"by": OUTER, "pids": False, "missing": [], "why": why}
    answer = _attempt(lambda: _by_landlock(policy), stay_outside)
    nothing = {"by": NOTHING, "pids": False, "missing": [CONTAINED]}
    return {**(answer if "by" in answer else nothing), "why": why}


def enter_alone(policy: Packet) -> str:
    """Protect this process without a fork, and so without a process namespace. Returns by what."""
    try:
        mounts.unshare(_namespaces(policy))
    except OSError:
        if policy["is_nested"]:
            return OUTER
        try:
            _by_landlock(policy)
        except OSError:
            return NOTHING
        return LANDLOCK
    _arrange(policy, [])
    _protect_kernel([])
    _give_up_rights()
    return NAMESPACES


def launch(words: list[str]) -> None:
    """Run one program, a server of tools, in place of this process, so that it keeps the pid; it sees the processes of the
    machine, and cannot signal them. The words are the policy, the program and its arguments."""
    policy, program = json.loads(words[0]), words[1:]
    here = os.getcwd()
    enter_alone(policy)
    os.chdir(here)
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # Python ignores it, and a program would inherit that
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    try:
        os.execvp(program[0], program)
    except OSError as error:
        os.write(2, f"{program[0]} cannot be started: {error.strerror}\n".encode())
        os._exit(127)


class ShellMounts:
    """What a fork server does for each shell that it forks. Made where `enter` has been."""

    def __init__(self, policy: Packet, report: Packet, holds_connects: Callable[[], bool]) -> None:
        self._is_needed, self._holds_connects = report["by"] == NAMESPACES, holds_connects
        self._covered = {place for place in policy["covered"] if os.path.exists(place)}
        self._stage = next((place for place in policy["hidden"] if os.path.isdir(place)), None)
        self._rest = [place for place in (*mounts.places(), *policy["writable"]) if place not in self._covered]
        self._is_contained = policy["contained"] and CONTAINED not in report["missing"]

    def confine(self, shell: Packet) -> bool:
        """Give this process, a new fork, its own mounts, and nothing that could undo them. Whether there are folders among these
        that nobody else sees. Raises OSError."""
        if not self._is_needed:
            return False
        mounts.unshare(mounts.NEW_MOUNTS)
        if self._is_contained:
            mounts.make_rest_read_only(shell["contained"]["writable"], self._rest)
        _protect({*_everywhere(shell["read_only"])}, set(), {}, self._stage)
        new = [place for place in shell["covered"] if place not in self._covered and os.path.exists(place)]
        for place in new:
            mounts.cover(place, writable=True)
        _give_up_rights(holds_connects=self._holds_connects())
        return bool(new)


def _attempt(protect: Callable[[], Packet], stay_outside: Callable[[int], None]) -> Packet:
    """Do it in a fork. Returns there with the report; here only if it failed, with why."""
    proc.become_subreaper()  # of the first process of a process namespace, whose parent does not stay
    alive, theirs = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(alive)
        try:
            report = protect()
            os.write(theirs, json.dumps(report).encode())
        except OSError as error:
            os.write(theirs, json.dumps({"why": error.strerror or str(error)}).encode())
            os._exit(1)
        return {**report, "alive": theirs}
    os.close(theirs)
    answer = json.loads(os.read(alive, 1 << 16) or b'{"why": "it ended"}')
    if "by" not in answer:
        os.close(alive)
        with contextlib.suppress(ChildProcessError):
            while True:
                os.wait()
        return answer  # type: ignore[no-any-return]
    stay_outside(alive)
    os._exit(0)


def _by_namespaces(policy: Packet, pids: bool) -> Packet:
    mounts.unshare(_namespaces(policy) | (mounts.NEW_PIDS if pids else 0))
    if not policy["network"]:
        start_loopback()
    missing: list[str] = []
    _arrange(policy, missing)
    if pids:
        if os.fork():
            os._exit(0)
        mounts.mount("proc", "/proc", "proc", mounts.NO_SUID | mounts.NO_DEVICES | mounts.NO_EXEC)
    _protect_kernel(missing)
    return {"by": NAMESPACES, "pids": pids, "missing": missing}


def _namespaces(policy: Packet) -> int:
    network = 0 if policy["network"] else mounts.NEW_NETWORK
    return network | mounts.NEW_MOUNTS | (0 if os.geteuid() == 0 else mounts.NEW_USERS)


def start_loopback() -> None:
    """The only network that there is: what a command serves can be reached by others of the same profile."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        fcntl.ioctl(sock, _SIOCSIFFLAGS, struct.pack("16sh22x", b"lo", _IFF_UP))


def _arrange(policy: Packet, missing: list[str]) -> None:
    """Mount everything. What cannot be had besides the folders is `missing`."""
    if policy["isolated"] is not None:
        mounts.isolate(policy["isolated"]["overlays"], policy["isolated"]["private"])
    if policy["contained"] and "/" not in mounts.places():  # in a folder that was made the root, which is no mount
        missing.append(CONTAINED)
    _protect_folders(policy)
    for what, apply in (
        ("sockets", lambda: _cover_sockets(policy)),
        ("disks", _cover_disks) if os.geteuid() == 0 else ("ssh settings", _own_ssh_settings),
        ("terminals", _own_terminals),
        ("/sys", lambda: mounts.make_read_only("/sys")),
    ):
        _or_missing(what, apply, missing)
    if landlock.abi() < landlock.OLDEST_SCOPE_ABI:
        missing.append("signals")


def _protect_kernel(missing: list[str]) -> None:
    for part in ("sys", "sysrq-trigger", "irq", "bus") if os.geteuid() == 0 else ():
        _or_missing(f"/proc/{part}", lambda part=part: mounts.make_read_only(f"/proc/{part}"), missing)  # type: ignore[misc]


def _give_up_rights(*, holds_connects: bool = False) -> None:
    """Also to signal, and to reach through /proc into, processes that are not descendants: another shell has other mounts."""
    with contextlib.suppress(OSError):  # reported as missing
        landlock.keep_signals_inside(holds_connects=holds_connects)
    forbid_mount_namespaces()
    drop_capabilities(also=_OF_NETWORK if holds_connects else ())


def _or_missing(what: str, apply: Callable[[], object], missing: list[str]) -> None:
    try:
        apply()
    except FileNotFoundError:
        pass
    except OSError:
        missing.append(what)


def _protect_folders(policy: Packet) -> None:
    hidden, read_only = {*_everywhere(policy["hidden"])}, {*_everywhere(policy["read_only"])}
    existing = filter(os.path.exists, (*policy["shown"], *policy["writable"]))
    opened = {path: os.open(path, os.O_PATH) for path in existing}
    _protect(read_only, hidden, opened, next((place for place in sorted(hidden) if os.path.isdir(place)), None))
    for path in policy["writable"]:
        if path in opened and not any(path.startswith(place + "/") for place in hidden):
            mounts.bind(f"/proc/self/fd/{opened[path]}", path)
    for fd in opened.values():
        os.close(fd)


def _protect(read_only: set[str], hidden: set[str], opened: dict[str, int], stage: str | None) -> None:
    """Outer ones first, so that an inner one is not uncovered. `stage` is a folder that is hidden."""
    if stage is not None:
        mounts.pin(_above({*hidden, *read_only}), stage)
    for place in sorted({*hidden, *read_only}, key=lambda path: path.split("/")):
        if place not in hidden:
            mounts.make_read_only(place)
        elif os.path.isdir(place):
            mounts.cover(place, writable=True)
            for part in (path for path in opened if path.startswith(place + "/")):  # is shown again
                os.makedirs(part, exist_ok=True)
                mounts.bind(f"/proc/self/fd/{opened[part]}", part)
            mounts.make_read_only(place)
        else:
            mounts.cover(place)


def _everywhere(places: list[str]) -> list[str]:
    """The places that exist, and every other path of them."""
    return [path for place in places if os.path.exists(place) for path in (place, *mounts.also_at(place))]


def _above(places: set[str]) -> list[str]:
    """The directories above the places that this user could rename."""
    found: set[str] = set()
    for place in places:
        folder = os.path.dirname(place)
        while folder != "/":
            if os.access(os.path.dirname(folder), os.W_OK):
                found.add(folder)
            folder = os.path.dirname(folder)
    return sorted(found)


def _cover_sockets(policy: Packet) -> None:
    covered = sorted({place for place in policy["covered"] if os.path.exists(place)}, key=lambda path: path.split("/"))
    kept = {path: os.open(path, os.O_PATH) for path in policy["kept"] if os.path.exists(path)}
    for place in covered:
        if os.path.exists(place):  # unless an outer one was covered
            mounts.cover(place, writable=True)
    for path, fd in kept.items():
        if any(path.startswith(place + "/") for place in covered):
            os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
            if stat.S_ISDIR(os.fstat(fd).st_mode):
                os.makedirs(path, exist_ok=True)
            else:
                os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600))
            mounts.bind(f"/proc/self/fd/{fd}", path)
        os.close(fd)


def _own_ssh_settings() -> None:
    """ssh refuses included settings that are neither root's nor the user's, and root is unknown in a user namespace."""
    with contextlib.suppress(FileNotFoundError):
        found = {}
        for name in os.listdir(_SSH_INCLUDED):
            with contextlib.suppress(OSError), open(os.path.join(_SSH_INCLUDED, name), "rb") as file:
                found[name] = file.read()
        if found:
            mounts.cover(_SSH_INCLUDED, writable=True)
        for name, content in found.items():
            with open(os.path.join(_SSH_INCLUDED, name), "wb") as file:
                file.write(content)


def _own_terminals() -> None:
    """Terminals that commands open are theirs alone; those of the person are out of reach."""
    for path in mounts.devices(lambda name, _: _CONSOLE.fullmatch(name)):
        if os.access(path, os.W_OK):
            mounts.cover(path)
    mounts.mount("devpts", "/dev/pts", "devpts", mounts.NO_SUID | mounts.NO_EXEC, "newinstance,ptmxmode=0666,mode=620")
    if not os.path.islink("/dev/ptmx"):
        mounts.bind("/dev/pts/ptmx", "/dev/ptmx")


def _cover_disks() -> None:
    """Root could write to a file system below its mounts."""
    for path in mounts.devices(lambda _, mode: stat.S_ISBLK(mode)):
        mounts.cover(path)


def _by_landlock(policy: Packet) -> Packet:
    read_only, hidden = (list(filter(os.path.exists, policy[name])) for name in ("read_only", "hidden"))
    landlock.protect(read_only=read_only, hidden=hidden)
    with contextlib.suppress(OSError):  # it has none to drop
        drop_capabilities()
    missing = ["sockets", "terminals", "renaming folders above", "modes and times of files"]
    return {"by": LANDLOCK, "pids": False, "missing": missing}


def clone_number() -> int:
    """The number of the system call for programs of this machine."""
    return _CALLS[os.uname().machine][0][1]


def drop_capabilities(*, all_of_root: bool = False, also: Iterable[int] = ()) -> None:
    """This process gets what its programs will have: root loses the dangerous ones or all, all others lose all. It must not
    have more than they: bash could not open this process's descriptors then."""
    is_root = os.geteuid() == 0 and not all_of_root
    dropped = frozenset((*_DROPPED_BY_ROOT, *also) if is_root else _ALL)
    for number in dropped:
        _libc.prctl(_PR_CAPBSET_DROP, number, 0, 0, 0)  # it fails for numbers that this kernel does not have
    header = struct.pack("Ii", _CAPABILITY_VERSION, 0)
    data = ctypes.create_string_buffer(24)
    proc.check(_libc.capget(header, data), "capget")
    effective, permitted, _, effective_high, permitted_high, _ = struct.unpack("6I", data.raw)
    low = sum(1 << number for number in _ALL[:32] if number not in dropped)
    high = sum(1 << number - 32 for number in _ALL[32:] if number not in dropped)
    left = (effective & low, permitted & low, 0, effective_high & high, permitted_high & high, 0)
    proc.check(_libc.capset(header, struct.pack("6I", *left)), "capset")


def forbid_mount_namespaces() -> None:
    """In a mount namespace of its own a program could take away what keeps directories from being renamed. User namespaces
    without one, as browsers use them for their sandbox, stay possible. Needs CAP_SYS_ADMIN."""
    calls = _CALLS.get(os.uname().machine)
    if calls is None:
        raise OSError(errno.ENOSYS, f"there is no system call filter for {os.uname().machine}")
    program = b"".join(_rules(*call) for call in calls) + _step(_RETURN, _ALLOW)
    code = ctypes.create_string_buffer(program)
    header = struct.pack("HxxxxxxP", len(program) // 8, ctypes.addressof(code))
    proc.check(_libc.prctl(_PR_SET_SECCOMP, _MODE_FILTER, header, 0, 0), "seccomp")


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
