"""The sandbox server: forks sandboxes, each with all namespaces of its own, in which a frame relay is the first process.

A sandbox is a fork of this process, which has everything loaded. Its root is put together from the places of this machine that
it may see, and nothing leads back from there. It has no capabilities, and no program in it can gain any. It ends with its client,
and everything in it with its first process.

A packet from the client comes with a socket for the answer, the stdin, stdout and stderr of the sandbox, and a file with its
spec: `steps` in the order in which they are mounted, each in the words of bubblewrap, `network`, whether there is one, and `cwd`.
The answer has a descriptor of the process. Where there are no namespaces the spec has what Landlock is told, as `landlock`, and
the packet a `temporary` folder.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import gc
import json
import os
import shutil
import signal
import socket

from . import landlock, mounts, proc, protection, wire
from .fork_server import ForkServer, open_pidfd
from .frame_relay import run_frame_relay
from .wire import Packet

_LOADED = b"\0handrail\0loaded  "  # as transport/bundle.py reads it
_OTHERS = 0x2000000 | 0x4000000 | 0x8000000  # cgroup, uts, ipc
_NAMESPACES = mounts.NEW_USERS | mounts.NEW_MOUNTS | mounts.NEW_PIDS | _OTHERS
_PR_SET_NO_NEW_PRIVS = 38
_PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}
_DETACH = 2
_BASE, _NEW, _OLD = "/tmp", "/new", "/old"
_DEVICES = ("null", "zero", "full", "random", "urandom", "tty")
_LINKS = {"fd": "/proc/self/fd", "stdin": "fd/0", "stdout": "fd/1", "stderr": "fd/2", "ptmx": "pts/ptmx"}
# It keeps the interpreter's lock: the fork has no other thread that could give it back.
_python = ctypes.PyDLL(None, use_errno=True)
_libc = ctypes.CDLL(None, use_errno=True)


class SandboxServer(ForkServer):
    def __init__(self, client: socket.socket, owner: int | None) -> None:
        super().__init__(client, owner)
        self._folders: list[str] = []  # temporary ones, which the client removes unless it is killed

    def run(self) -> None:
        super().run()
        for folder in self._folders:
            shutil.rmtree(folder, ignore_errors=True)

    def start(self, packet: Packet, fds: list[int]) -> None:
        user, group = os.geteuid(), os.getegid()
        namespaces = _NAMESPACES | (0 if packet["network"] else mounts.NEW_NETWORK)
        if packet["temporary"]:
            namespaces = 0
            self._folders.append(packet["temporary"])
        try:
            # A fork in new namespaces, in which it is the first process.
            flags = namespaces | signal.SIGCHLD
            pid = proc.check(_python.syscall(protection.clone_number(), flags, None, None, None, None), "no namespaces")
            if pid == 0:
                self._events.close()
                _become_sandbox(fds[1:], user, group)
            self._supervisors[pid] = ""
            fds.append(os.pidfd_open(pid))
        except OSError as error:
            packet = {"why": error.strerror}
        with socket.socket(fileno=fds.pop(0)) as answer, contextlib.suppress(OSError):  # it does not wait any more
            wire.send(answer, packet, fds[4:])
        for fd in fds:
            os.close(fd)


def _become_sandbox(fds: list[int], user: int, group: int) -> None:
    code = 1
    try:
        *streams, file = fds
        spec = json.loads(wire.read_whole(file))  # here, so that no other sandbox has it in its memory
        for number, fd in enumerate(streams):
            os.dup2(fd, number)
        wire.keep_only((0, 1, 2))
        os.setsid()
        gc.disable()  # a collection would write to, and so copy, every page that is shared with the server
        if "landlock" in spec:
            landlock.restrict(**spec["landlock"])
            _serve_client(spec["cwd"])
            return
        mounts.map_user(user, group)
        # In a fork, which changes the root of this process as well: what it writes to memory is not kept.
        if os.fork() == 0:
            _change_root(spec)
        elif os.wait()[1] == 0:
            _serve_client(spec["cwd"])
        code = 0
    except OSError as error:
        os.write(2, f"{error.strerror}\n".encode())
    finally:
        os._exit(code)


def _serve_client(cwd: str) -> None:
    os.chdir(cwd)
    protection.drop_capabilities(all_of_root=True)
    proc.check(_libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no_new_privs")
    os.write(1, _LOADED)
    arguments = json.loads(_take(int(_take(9))))["arguments"]
    proc.set_title("handrail-relay")
    given = {"uncovered": "a sandbox keeps no journal", "refused": "", "journal": ""}
    run_frame_relay(ForkServer(None), {**arguments, **given})


def _take(count: int) -> bytes:
    data = b""
    while len(data) < count:
        piece = os.read(0, count - len(data))
        if not piece:
            os._exit(0)  # the client has left
        data += piece
    return data


def _change_root(spec: Packet) -> None:
    """Make the root what the spec says, for all processes of this namespace."""
    if not spec["network"]:
        protection.start_loopback()
    mounts.make_private()
    mounts.mount("tmpfs", _BASE, "tmpfs", mounts.NO_SUID | mounts.NO_DEVICES)
    for folder in (_NEW, _OLD):
        os.mkdir(_BASE + folder)
    _pivot(_BASE, _BASE + _OLD)
    os.chdir("/")
    for kind, *words in spec["steps"]:
        try:
            _mount(kind, *words)
        except OSError as error:
            if error.errno != errno.EROFS:  # what was to be covered is gone meanwhile, and no place for it can be made
                raise
    proc.check(_libc.umount2(_OLD.encode(), _DETACH), "umount")
    os.chdir(_NEW)
    base = os.open("/", os.O_RDONLY | os.O_DIRECTORY)
    _pivot(".", ".")
    os.fchdir(base)
    proc.check(_libc.umount2(b".", _DETACH), "umount")


def _pivot(root: str, old: str) -> None:
    number = _PIVOT_ROOT[os.uname().machine]
    proc.check(_libc.syscall(number, os.fsencode(root), os.fsencode(old)), "pivot_root")


def _mount(kind: str, *words: str) -> None:
    place = _NEW + words[-1]
    if kind == "--tmpfs":
        os.makedirs(place, exist_ok=True)
        mounts.mount("tmpfs", place, "tmpfs", mounts.NO_SUID | mounts.NO_DEVICES, "mode=0755")
    elif kind == "--symlink":
        os.makedirs(os.path.dirname(place), exist_ok=True)
        os.symlink(words[0], place)
    elif kind == "--dev":
        mounts.mount("tmpfs", place, "tmpfs", mounts.NO_SUID, "mode=0755")
        for name in _DEVICES:
            _make_empty(f"{place}/{name}", is_folder=False)
            mounts.bind(f"{_OLD}/dev/{name}", f"{place}/{name}")
        for name, target in _LINKS.items():
            os.symlink(target, f"{place}/{name}")
        os.mkdir(f"{place}/pts")
        options = "newinstance,ptmxmode=0666,mode=620"
        mounts.mount("devpts", f"{place}/pts", "devpts", mounts.NO_SUID | mounts.NO_EXEC, options)
    elif kind == "--proc":
        mounts.mount("proc", place, "proc", mounts.NO_SUID | mounts.NO_DEVICES | mounts.NO_EXEC)
        for name in ("sys", "sysrq-trigger", "irq", "bus"):
            if os.path.exists(f"{place}/{name}"):
                mounts.make_read_only(f"{place}/{name}")
    elif not kind.endswith("-try") or os.path.exists(_OLD + words[0]):
        source, read_only = _OLD + words[0], mounts.READ_ONLY if kind.startswith("--ro-") else 0
        if not os.path.exists(source):
            raise FileNotFoundError(errno.ENOENT, f"{words[0]} is gone")
        _make_empty(place, is_folder=os.path.isdir(source))
        mounts.bind(source, place)
        mounts.restrict(place, read_only | mounts.NO_SUID | mounts.NO_DEVICES)


def _make_empty(place: str, *, is_folder: bool) -> None:
    if os.path.lexists(place):
        return
    os.makedirs(place if is_folder else os.path.dirname(place), exist_ok=True)
    if not is_folder:
        os.close(os.open(place, os.O_CREAT | os.O_WRONLY, 0o600))


def main(arguments: Packet) -> None:
    """Serve a client on this machine, through its socket."""
    client = socket.socket(fileno=arguments["socket"])
    wire.send(client, {"uncovered": ""})
    SandboxServer(client, open_pidfd(arguments["owner"])).run()
