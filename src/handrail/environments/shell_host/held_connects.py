"""Connections of watched processes: each waits until the runtime has decided, and is then made on the process's own socket.
What is used is the copy of the address that was checked: the process can change its memory meanwhile. A thread of it can also
put another socket in the place of the one that was looked at, so the watcher uses local sockets of such a process itself as
well. Where the kernel does not let the watcher take the socket, nothing is let through but what goes nowhere."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import socket
import struct
from typing import Any, Callable, Dict, Iterable, Iterator, NamedTuple, Set, Tuple  # noqa: UP035  for Python 3.8

from . import proc
from .held_calls import ALLOW, HeldCall, Hold, Reply
from .journal import CallJournal
from .journal_log import lstat
from .proc import check
from .syscall_filter import ROUTES
from .syscall_names import Memory, Unreadable, masked_socket

CALLS = ("connect", "sendto", "sendmsg", "sendmmsg")
_libc = ctypes.CDLL(None, use_errno=True)
_PIDFD_OPEN, _PIDFD_GETFD, _OPENAT2, _IN_ROOT = 434, 438, 437, 0x10
_SO_DOMAIN = 39
_FAST_OPEN = 0x20000000
_MAX_ADDRESS, _MAX_DATA, _PAGE = 128, 65_536, 4096
_MESSAGE = struct.Struct("QIxxxxQQQQi")  # struct msghdr
_NAME_SERVICES = ("/run/nscd/", "/run/systemd/resolve/", "/run/avahi-daemon/", "/run/unbound")
_MESSAGE_STEP, _MAX_MESSAGES = 64, 64
_INET, _NO_FAMILY, _LOCAL = (socket.AF_INET, socket.AF_INET6), bytes(2), struct.pack("=H", socket.AF_UNIX)
_CONTROL = struct.Struct("Qii")  # struct cmsghdr
_DESCRIPTORS, _RETURNED_ROUTE = (socket.SOL_SOCKET, socket.SCM_RIGHTS), (0, 7)


class Target(NamedTuple):
    """Where a process wants to connect to, and the address as it gave it."""

    raw: bytes
    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    def moved(self, to: str) -> bytes:
        """The address of another IPv4 place, for the same socket."""
        host, _, port = to.rpartition(":")
        packed = socket.inet_aton(host)
        if struct.unpack_from("H", self.raw)[0] == socket.AF_INET:
            return struct.pack("=H", socket.AF_INET) + struct.pack(">H", int(port)) + packed + bytes(8)
        mapped = bytes(10) + b"\xff\xff" + packed
        return struct.pack("=H", socket.AF_INET6) + struct.pack(">HI", int(port), 0) + mapped + bytes(4)


class HeldConnects:
    """Every method raises `Hold`, or returns an error number, or None: the kernel goes on."""

    def __init__(self, memory: Memory, call_of: Callable[[int], CallJournal]) -> None:
        self._memory, self._call_of = memory, call_of
        self._name_servers: Set[int] = set()  # noqa: UP006  ports of the runtime's own, which sockets were led to
        self._own: Dict[int, Tuple[str, str]] = {}  # noqa: UP006  by port: the descriptor that listens there, and its socket

    def connect(self, pid: int, fd: int, address: int, size: int) -> int | None:
        try:
            with taken(pid, fd) as sock:
                is_inet = _is_inet(sock)
                if not is_inet and _is_alone(pid):
                    return None
                kind, may_block = "udp" if sock.type == socket.SOCK_DGRAM else "tcp", os.get_blocking(sock.fileno())
                kept = None if is_inet else socket.socket(fileno=sock.detach())
            raw = self._memory.read(pid, address, min(size, _MAX_ADDRESS))
        except (OSError, Unreadable) as error:
            return _refusal(error)
        target = _host_in(raw) if is_inet else None

        def go_on(to: str = "") -> int | Reply:
            checked = target.moved(to) if target is not None and to else raw
            if to:
                self._name_servers.add(int(to.rpartition(":")[2]))
            with kept or taken(pid, fd) as sock, _address(pid, checked) as name:
                return _reply(_libc.connect(sock.fileno(), name, len(name)))

        if target is not None:
            raise self._hold("connect", pid, target, kind, go_on, is_slow=may_block)
        if is_inet and raw[:2] != _NO_FAMILY:
            return errno.EAFNOSUPPORT
        # The end of a connection, or no host. The kernel would read the family once more, and find that of a host there.
        raise _unasked(go_on, is_slow=not is_inet)

    def send_to(self, pid: int, *arguments: int) -> int | None:
        fd, data, length, flags, address, size = arguments[:6]
        try:
            if flags & _FAST_OPEN or length > _MAX_DATA:  # a connection is made by connect
                return errno.EOPNOTSUPP if flags & _FAST_OPEN else errno.EMSGSIZE
            with taken(pid, fd) as sock:
                is_inet = _is_inet(sock)
                if not is_inet and _is_alone(pid):
                    return None
                kept = None if is_inet else socket.socket(fileno=sock.detach())
            target, text = self._target(pid, address, size), self._read(pid, data, length)
            raw = self._memory.read(pid, address, min(size, _MAX_ADDRESS))
        except (OSError, Unreadable) as error:
            return _refusal(error)
        if kept is not None:

            def go_on(_: str = "") -> int | Reply:
                with kept, _address(pid, raw) as name:
                    return _reply(_libc.sendto(kept.fileno(), text, len(text), flags, name, len(name)))

            raise _unasked(go_on, is_slow=True)
        return errno.EAFNOSUPPORT if target is None else self._hold_message(pid, fd, target, text, flags)

    def send_messages(self, pid: int, fd: int, first: int, flags: int, count: int | None = None) -> int | None:
        if flags & _FAST_OPEN or (count or 1) > _MAX_MESSAGES:
            return errno.EOPNOTSUPP if flags & _FAST_OPEN else errno.EMSGSIZE
        try:
            with taken(pid, fd) as sock:
                is_inet, is_stream = _is_inet(sock), sock.type == socket.SOCK_STREAM
                if (is_stream or not is_inet) and _is_alone(pid):
                    return None
                may_block = os.get_blocking(sock.fileno())
                is_lookup = is_inet and _peer_port(sock) in self._name_servers
                kept = None if is_inet and not is_stream else socket.socket(fileno=sock.detach())
            places = [first + number * _MESSAGE_STEP for number in range(1 if count is None else count)]
            heads = [_MESSAGE.unpack(self._memory.read(pid, place, _MESSAGE.size)) for place in places]
            texts = [self._data(pid, head[2], head[3]) for head in heads]
            controls = [self._read(pid, head[4], head[5]) for head in heads]
            names = [self._read(pid, head[0], min(head[1], _MAX_ADDRESS)) if head[0] else b"" for head in heads]
            named = [self._target(pid, head[0], head[1]) for head in heads if head[0] and head[1]]
        except (OSError, Unreadable, struct.error) as error:
            return _refusal(error)
        if not is_stream and any(len(text) == _MAX_DATA for text in texts):
            return errno.EMSGSIZE
        if named and kept is None:
            is_clear = len(places) == 1 and named[0] is not None
            return self._hold_message(pid, fd, named[0], texts[0], flags) if is_clear and named[0] else errno.EACCES

        def go_on(_: str = "") -> int | Reply:
            """The kernel would look once more whether there is an address."""
            sent = size = 0
            with kept or taken(pid, fd) as sock:
                for number, place in enumerate(places):
                    # A connection has no need of an address.
                    with _address(pid, b"" if is_inet else names[number]) as name:
                        size = _send(pid, sock.fileno(), texts[number], controls[number], flags, name)
                    if size < 0:
                        return Reply(sent) if sent else ctypes.get_errno()
                    if count is not None:
                        with contextlib.suppress(OSError), open(f"/proc/{pid}/mem", "r+b", buffering=0) as file:
                            file.seek(place + _MESSAGE_STEP - 8)
                            file.write(struct.pack("I", size))
                    sent += 1
            return Reply(size if count is None else sent)

        if is_lookup and texts:  # it waits here: at the runtime's name server its program would lose patience
            raise Hold(HeldCall("lookup", "sendmsg", _name_in(texts[0])), go_on, errno.ECONNREFUSED)
        raise _unasked(go_on, is_slow=may_block)

    def _hold_message(self, pid: int, fd: int, target: Target, data: bytes, flags: int) -> int | None:
        def go_on(_: str = "") -> int | Reply:
            with taken(pid, fd) as sock:
                raw = target.raw
                return _reply(_libc.sendto(sock.fileno(), data, len(data), flags, raw, len(raw)))

        raise self._hold("sendto", pid, target, "udp", go_on, is_slow=True)

    def _hold(self, operation: str, pid: int, target: Target, kind: str, go_on: object, *, is_slow: bool) -> Hold:
        held = HeldCall("connect", operation, str(target), detail=kind)
        call, host = self._call_of(pid), target.host
        is_loopback = host.startswith(("127.", "::ffff:127.")) or host in ("::1", "0.0.0.0", "::")
        answer = ALLOW if not call.is_tried and is_loopback and self._is_own(pid, target.port) else ""
        how: dict[str, Any] = {"is_slow": is_slow, "answer": answer, "before": lambda: call.host(str(target))}
        return Hold(held, go_on, errno.EACCES if call.is_tried else errno.ECONNREFUSED, **how)  # type: ignore[arg-type]

    def _is_own(self, pid: int, port: int) -> bool:
        """Whether a process of the same shell listens on the port. The supervisor of a shell is a child of the fork server, which
        is a child of this process."""
        where, sock = self._own.get(port, ("", ""))
        if not where or proc.link(where) != sock:
            line, mine = [pid], os.getpid()
            while line[-1] not in (0, 1, mine):
                stat = proc.stat_of(line[-1])
                line.append(stat.parent if stat is not None else 0)
            shell = line[-3] if len(line) > 2 and line[-1] == mine else pid
            where, sock = self._own[port] = _listener(port, proc.tree(shell))
        return bool(where)

    def _target(self, pid: int, address: int, size: int) -> Target | None:
        """Of a message: there the kernel takes an address without a family for one of IPv4."""
        raw = self._memory.read(pid, address, min(size, _MAX_ADDRESS))
        return _host_in(struct.pack("=H", socket.AF_INET) + raw[2:] if raw[:2] == _NO_FAMILY else raw)

    def _data(self, pid: int, place: int, count: int) -> bytes:
        """Of a long message only the beginning, which is too much for a datagram."""
        data = b""
        for part in struct.iter_unpack("QQ", self._read(pid, place, min(count, 1024) * 16)):
            data += self._read(pid, part[0], min(part[1], _MAX_DATA - len(data)))
        return data

    def _read(self, pid: int, place: int, size: int) -> bytes:
        size = min(size, _MAX_DATA)
        return b"".join(self._memory.read(pid, place + at, min(_PAGE, size - at)) for at in range(0, size, _PAGE))


def _host_in(raw: bytes) -> Target | None:
    """The host and port that an address is of; None if it is of none."""
    family = struct.unpack_from("H", raw)[0] if len(raw) > 1 else 0
    if family not in _INET or len(raw) < (8 if family == socket.AF_INET else 24):
        return None
    host = raw[4:8] if family == socket.AF_INET else raw[8:24]
    return Target(raw, socket.inet_ntop(family, host), struct.unpack_from(">H", raw, 2)[0])


def _unasked(go_on: Callable[..., int | Reply], *, is_slow: bool) -> Hold:
    return Hold(HeldCall("connect", "connect", ""), go_on, errno.EACCES, is_slow=is_slow, answer=ALLOW)


def _is_inet(sock: socket.socket) -> bool:
    return sock.getsockopt(socket.SOL_SOCKET, _SO_DOMAIN) in _INET


def _is_alone(pid: int) -> bool:
    """Whether nobody can change the process's descriptors now. Raises PermissionError if one can, and we cannot act for it."""
    with open(f"/proc/{pid}/status", "rb") as file:
        fields = {name: rest.split() for name, _, rest in (line.partition(b":") for line in file)}
    if int(fields[b"Threads"][0]) > 1 and int(fields[b"Uid"][1]) != os.geteuid():
        raise PermissionError(errno.EACCES, "a process with threads that is somebody else's")
    return int(fields[b"Threads"][0]) == 1


@contextlib.contextmanager
def _address(pid: int, raw: bytes) -> Iterator[bytes]:
    """The address by which this process reaches what the other means. Only the kernel knows which local names without a file are
    of the same shell."""
    if raw[:2] != _LOCAL:
        yield raw
        return
    path = os.path.join(os.readlink(f"/proc/{pid}/cwd"), os.fsdecode(raw[2:].split(b"\0")[0]))
    if raw[2:3] in (b"", b"\0"):
        raise ConnectionRefusedError(errno.ECONNREFUSED, "a name without a file")
    how = struct.pack("QQQ", os.O_PATH | os.O_CLOEXEC, 0, _IN_ROOT)
    with proc.closing(os.open(f"/proc/{pid}/root", os.O_PATH)) as root:
        found = check(_libc.syscall(_OPENAT2, root, os.fsencode(path), how, len(how)), "openat2")
    with proc.closing(found) as fd:
        yield _LOCAL + f"/proc/self/fd/{fd}\0".encode()


def taken(pid: int, fd: int) -> socket.socket:
    """A copy of a process's socket. Raises OSError."""
    copy = _copied(pid, fd)
    try:
        return socket.socket(fileno=copy)
    except OSError:  # it is none
        os.close(copy)
        raise


def _copied(pid: int, fd: int) -> int:
    # A thread has the descriptors of its process.
    with proc.closing(check(_libc.syscall(_PIDFD_OPEN, proc.leader_of(pid), 0), "pidfd_open")) as process:
        return check(_libc.syscall(_PIDFD_GETFD, process, ctypes.c_int(fd), 0), "pidfd_getfd")


def _peer_port(sock: socket.socket) -> int:
    try:
        return int(sock.getpeername()[1])
    except OSError:  # it is not connected
        return 0


def _send(pid: int, fd: int, text: bytes, control: bytes, flags: int, name: bytes) -> int:
    """A message of the process: -1 for a failure, which errno has. Raises PermissionError for one with a route of its own."""
    parts = [ctypes.create_string_buffer(each, len(each)) for each in (text, control, name)]
    text_at, control_at, name_at = (ctypes.addressof(part) if len(part) else 0 for part in parts)
    vector = ctypes.create_string_buffer(struct.pack("QQ", text_at, len(text)))
    head = _MESSAGE.pack(name_at, len(name), ctypes.addressof(vector), 1, control_at, len(control), 0)
    at, own = 0, []
    try:
        while at + _CONTROL.size <= len(control):
            size, *kind = _CONTROL.unpack_from(control, at)
            if tuple(kind) in (*ROUTES, _RETURNED_ROUTE):
                raise PermissionError(errno.EACCES, "a route of its own")
            end = min(at + size, len(control)) - 3 if tuple(kind) == _DESCRIPTORS else 0
            for place in range(at + _CONTROL.size, end, 4):
                own.append(_copied(pid, struct.unpack_from("i", control, place)[0]))
                struct.pack_into("i", parts[1], place, own[-1])
            at += max(size + 7 & ~7, _CONTROL.size)
        return int(_libc.sendmsg(fd, head + bytes(4), flags))
    finally:
        for each in own:
            os.close(each)


def _reply(result: int) -> int | Reply:
    return Reply(result) if result >= 0 else ctypes.get_errno()


def _refusal(error: Exception) -> int:
    """What cannot be looked at is not let through. A bad descriptor or pointer fails as it would."""
    number = error.errno if isinstance(error, OSError) else None
    return number if number in (errno.EBADF, errno.ENOTSOCK, errno.EFAULT) else errno.EACCES


def _listener(port: int, pids: Iterable[int]) -> tuple[str, str]:
    """The descriptor of one of the processes that listens on the port, and its socket; empty for none."""
    wanted = set()
    for table, state in (("tcp", "0A"), ("tcp6", "0A"), ("udp", "07"), ("udp6", "07")):
        lines = proc.content(f"/proc/net/{table}").decode().splitlines()[1:]
        rows = [row for row in map(str.split, lines) if row[3] == state and int(row[1].rpartition(":")[2], 16) == port]
        wanted |= {f"socket:[{row[9]}]" for row in rows}
    for pid in pids if wanted else ():
        with contextlib.suppress(OSError):  # it has ended
            for fd in os.listdir(f"/proc/{pid}/fd"):
                where = f"/proc/{pid}/fd/{fd}"
                if (sock := proc.link(where)) in wanted:
                    return where, sock
    return "", ""


def _name_in(query: bytes) -> str:
    """The name that a question to a name server is about."""
    labels, at = [], 12
    while at < len(query) and query[at]:
        labels.append(query[at + 1 : at + 1 + query[at]].decode("latin-1"))
        at += 1 + query[at]
    return ".".join(labels)


def contact(
    pid: int, fd: int, raw: bytes, call_of: Callable[[int], CallJournal], covered: tuple[str, ...], *, is_held: bool
) -> None:
    """Write down which host a process contacts, unless that `is_held` and may be refused. While its call is tried that waits, as
    do services of this machine: what one does is none of the call's own changes. `covered` are places of sockets that commands
    cannot reach: after a yes the process's socket `fd` is connected to what really is there."""
    if len(raw) < 2:
        return
    family, target = struct.unpack_from("H", raw)[0], _host_in(raw)
    if target is not None:
        name, call = str(target), call_of(pid)
        if call.is_tried and not is_held:
            raise Hold(HeldCall("connect", "connect", name), lambda: call.host(name), errno.EACCES)
        if not is_held:
            call.host(name)
    elif family == socket.AF_UNIX and (masked := masked_socket(pid, raw, covered)):
        if masked.startswith(_NAME_SERVICES):
            return  # not there: every lookup tries them first, and is asked about when it goes another way
        real = struct.pack("=H", socket.AF_UNIX) + os.fsencode(masked) + b"\0"

        def go_on() -> int | Reply:
            with taken(pid, fd) as sock:
                return _reply(_libc.connect(sock.fileno(), real, len(real)))

        raise Hold(HeldCall("masked socket", "connect", masked), go_on, errno.ECONNREFUSED, is_slow=True)
    elif family == socket.AF_UNIX and call_of(pid).is_tried and raw[2:3] not in (b"", b"\0"):
        path = os.path.join(os.path.realpath(f"/proc/{pid}/cwd"), os.fsdecode(raw[2:].split(b"\0")[0]))
        if "/nscd/" not in path and lstat(path) is not None:
            raise Hold(HeldCall("connect", "connect", path), lambda: None, errno.EACCES)
