"""The process with the effect watchers: it writes the journal for all shells and background processes of one fork server.

It is the parent of the fork server and runs outside of what protects commands, so that no command can reach the journal, and so
that the kernel lets it look into their memory. It lives as long as something runs that it watches.

Packets come over one socket that all shells inherit, each with an `op`:

    listener   watch this shell or background process; with it come the filter's listener and the call page
    left       the call has left processes running: what they change later is still that call's
    end        the call has ended; with it comes the socket for the answer
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import socket
import struct
from typing import Any, Callable, Dict, List, Tuple  # noqa: UP035  Python 3.8 knows no other place

from . import proc, wire
from .call_page import CallPage
from .effect_watcher import EffectWatcher
from .journal import CallJournal
from .journal_log import LogWriter
from .stash import Stash
from .wire import Packet

_MAX_CALLS = 16
_MAX_PARENTS = 32
_CREDENTIALS = struct.Struct("3i")
Received = Tuple[Packet, List[int], int]  # noqa: UP006  the same


class Watched:
    """One shell or background process. Its first process, `pid`, is the bash that runs the commands."""

    def __init__(self, packet: Packet, fds: list[int], pid: int, journal: str, writer: str) -> None:
        self.shell, self._pid = packet["shell"], pid
        self._page = CallPage(fds[1])
        os.close(fds[1])
        self._fixed: int | None = packet.get("call")  # a background process has one call
        self._writer, self.stash = LogWriter(journal, writer), Stash(journal, writer)
        self._calls: dict[int, CallJournal] = {}
        self._owners: dict[int, int] = {}  # call by process
        self.watcher = EffectWatcher(fds[0], self._call_of, self.stash.holds)

    def serve(self) -> bool:
        """False when nothing is left to watch."""
        is_alive = self.watcher.serve()
        for call in self._calls.values():
            if call.is_ended and call.is_incomplete:  # a process that it had left has changed something more
                call.end()
        return is_alive

    def left(self, call: int, supervisor: int) -> None:
        for pid in proc.tree(supervisor):
            if pid != self._pid:
                self._owners.setdefault(pid, call)

    def end(self, call: int) -> Packet:
        """Say that the call is complete: every change of it was let through by this process."""
        found = self._calls.get(call)
        if found is None:
            return {"counts": None}
        found.end()
        self._owners = {pid: of for pid, of in self._owners.items() if of != call or os.path.exists(f"/proc/{pid}")}
        self._writer.rotate()
        return {"counts": found.counts.as_dict()}

    def close(self) -> None:
        """Every process has ended. A background process's call is complete then."""
        if self._fixed is not None:
            self.end(self._fixed)
        self.watcher.close()
        self._writer.close()
        self._page.close()

    def _call_of(self, pid: int) -> CallJournal:
        number = self._number_of(pid)
        found = self._calls.get(number)
        if found is None:
            found = self._calls[number] = CallJournal(self._writer, self.stash, number)
            while len(self._calls) > _MAX_CALLS:
                del self._calls[min(self._calls)]
        self._page.changed = number
        return found

    def _number_of(self, pid: int) -> int:
        if self._fixed is not None:
            return self._fixed
        if pid == self._pid:
            return self._page.current
        number = self._owners.get(pid)
        if number is None:
            number = self._owners[pid] = self._inherited(pid)
        return number

    def _inherited(self, pid: int) -> int:
        """The call of the nearest known process above, or the one that runs."""
        for _ in range(_MAX_PARENTS):
            stat = proc.stat_of(pid)
            if stat is None or stat.parent in (0, 1, self._pid):
                break
            pid = stat.parent
            if pid in self._owners:
                return self._owners[pid]
        return self._page.current


class EffectServer:
    """`until` is a descriptor that is closed when the fork server and everything below it have ended."""

    def __init__(self, sock: socket.socket, journal: str, until: int) -> None:
        self._socket, self._journal = sock, journal
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        mine = proc.stat_of(os.getpid())
        self._name = f"{os.getpid()}.{mine.start if mine is not None else 0}"
        self._count = 0
        self._watched: Dict[int, Watched] = {}  # noqa: UP006  by listener
        self._poll = select.epoll()
        self._handlers: Dict[int, Callable[[], Any]] = {}  # noqa: UP006  the same
        self._is_wanted = True
        self._on(sock.fileno(), self._on_packet)
        self._on(until, self._leave)

    def run(self) -> None:
        while self._is_wanted:
            for fd, _ in self._poll.poll():
                handler = self._handlers.get(fd)
                if handler is not None:
                    handler()

    def _on(self, fd: int, handler: Callable[[], Any]) -> None:
        self._handlers[fd] = handler
        self._poll.register(fd, select.EPOLLIN)

    def _leave(self) -> None:
        self._is_wanted = False

    def _on_packet(self) -> None:
        try:
            packet, fds, sender = _receive(self._socket)
        except (OSError, ValueError):
            return
        op = packet.get("op")
        if op == "listener" and len(fds) == 2:
            self._watch(packet, fds, sender)
            return
        of_shell = [one for one in self._watched.values() if one.shell == packet.get("shell")]
        if op == "left":
            for one in of_shell:
                one.left(packet["call"], sender)
        elif op == "end" and fds:
            answers = [one.end(packet["call"]) for one in of_shell]
            found = next((answer for answer in answers if answer["counts"] is not None), {"counts": None})
            with socket.socket(fileno=fds.pop(0)) as asker, contextlib.suppress(OSError):  # who asked is gone
                wire.send(asker, found)
        for fd in fds:
            os.close(fd)

    def _watch(self, packet: Packet, fds: list[int], pid: int) -> None:
        self._count += 1
        watched = self._watched[fds[0]] = Watched(packet, fds, pid, self._journal, f"{self._name}.{self._count}")

        def serve() -> None:
            if not watched.serve():
                self._poll.unregister(watched.watcher.listener)
                del self._handlers[watched.watcher.listener], self._watched[watched.watcher.listener]
                watched.close()

        self._on(fds[0], serve)


def _receive(sock: socket.socket) -> Received:
    """A packet, its descriptors, and the process that sent it, by its number here."""
    room = socket.CMSG_SPACE(_CREDENTIALS.size) + socket.CMSG_SPACE(8 * 4)
    data, ancillary, _, _ = sock.recvmsg(wire.PACKET_BYTES, room, socket.MSG_CMSG_CLOEXEC)
    fds: list[int] = []
    sender = 0
    for level, kind, content in ancillary:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            fds += struct.unpack(f"{len(content) // 4}i", content[: len(content) // 4 * 4])
        elif level == socket.SOL_SOCKET and kind == socket.SCM_CREDENTIALS:
            sender = _CREDENTIALS.unpack(content)[0]
    return json.loads(data), fds, sender
