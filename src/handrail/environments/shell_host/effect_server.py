"""The process with the effect watchers: it writes the journal for all shells and background processes of one fork server.

It is the parent of the fork server and runs outside of what protects commands, so that no command can reach the journal, and so
that the kernel lets it look into their memory. It lives as long as something runs that it watches.

Packets come over one socket that all shells inherit, each with an `op`:

    listener   watch this `shell`, or `job` of the shell `owner`; with it come the filter's listener, and the call page of a shell
    left       the call has left processes running: what they change later is still that call's
    forget     the shell is gone for good
    probe      answer one system call of a process that tries out whether all this works here

The client has a socket of its own. It says `end` when a call has ended, with the socket for the answer, and `answer` to a
question about a system call that waits (held_calls.py). Everything else that it sends is for the fork server.
"""

from __future__ import annotations

import contextlib
import errno
import os
import select
import socket
from typing import Any, Callable, Dict, List, Tuple  # noqa: UP035  Python 3.8 knows no other place

from . import proc, syscall_filter, wire
from .deletion_limit import DeletionLimit
from .effect_watcher import EffectWatcher
from .held_calls import Ask, HeldCall, Questions, Release
from .held_connects import taken
from .journal import CallJournal, NotRecorded, Stash
from .journal_log import JournalFailed, LogWriter, processes, writer_name
from .syscall_filter import FilterRefused, Watch
from .wire import CHANGED, CURRENT, ENDED, TRIED, CallPage, Packet

_MAX_CALLS = 16
_MAX_PARENTS = 32
_PROBE = "/handrail-probe"
_PROBED, _PROBED_BUT_SOCKETS = errno.EOWNERDEAD, errno.ENOTRECOVERABLE  # no open of a file fails with these
_CAN_HOLD = b"holds"
_OF_WATCHER = ("private", "contained", "holds_network")  # settings


class Watched:
    """One shell or background process, and the calls whose changes it makes. A shell has one bash after the other."""

    def __init__(self, call: int | None, settings: Packet) -> None:
        """`call` is that of a background process; a shell has one after the other."""
        name, journal = writer_name() + (".job" if call is not None else ""), settings["journal"]
        self._writer, self.stash = LogWriter(journal, name), Stash(journal, name)
        self._fixed, self._settings = call, settings
        self._page: CallPage | None = None
        self._bash = 0
        self._calls: Dict[int, Any] = {0: NotRecorded()}  # noqa: UP006  the same
        self._left: Dict[int, Tuple[int, int]] = {}  # noqa: UP006  call and start time by process
        self._running = -1
        self._of_running: Dict[int, CallJournal] = {}  # noqa: UP006  by process that is known to belong to the running call
        self._is_late = False  # whether a call that has ended was asked for
        self.listeners: List[int] = []  # noqa: UP006  the same

    def watch(
        self, listener: int, page: int | None, bash: int, receive: Callable[[], object], ask: Ask
    ) -> EffectWatcher:
        """`receive` takes packets that have arrived: which processes a call has left must be known before they are asked for."""
        self._bash = bash
        mine = proc.stat_of(bash)
        above = proc.stat_of(mine.parent) if mine is not None else None
        if mine is not None and above is not None:  # its supervisor, which ends all that runs there
            self._writer.made_by(processes([(mine.parent, above.start)]))
        if page is not None:
            if self._page is not None:
                self._page.close()
            self._page = CallPage(page)
        self._receive = receive
        self.listeners.append(listener)
        given = {name: self._settings[name] for name in _OF_WATCHER if name in self._settings}
        watcher = EffectWatcher(listener, self.call_of, self.stash.holds, ask=ask, **given)
        watcher.on_over = self._end_running
        with contextlib.suppress(OSError):  # it has ended already, or lets nobody look
            is_asked = (self._settings.get("contained") or {}).get("asked")  # about each deletion
            mounts = [os.stat(f"/proc/{process}/ns/mnt") for process in (bash, "self")]
            # A shell that is protected otherwise is restricted in a way that cannot be seen from outside.
            if not is_asked and ("private" not in self._settings or not os.path.samestat(*mounts)):
                watcher.take_folders_over(bash)
        return watcher

    def end_late_changes(self) -> None:
        """Processes that an ended call had left have changed something more."""
        if self._is_late:
            self._is_late = False
            for call in self._calls.values():
                if call.is_ended and call.is_incomplete:
                    _end(call)

    def left(self, call: int, supervisor: int) -> None:
        self._drop_dead()
        others = proc.tree(supervisor).items()
        new = {pid: stat.start for pid, stat in others if pid != self._bash and pid not in self._left}
        self._left.update((pid, (call, start)) for pid, start in new.items())
        if new:
            with contextlib.suppress(JournalFailed):  # then its record says that it has ended
                self._journal(call).left(new.items())

    def end(self, call: int) -> bool:
        """Say that the call is complete: every change of it was let through by this process. Whether there was one."""
        found = self._calls.get(call)
        if found is None or not (found.is_incomplete or found.is_ended):
            return False
        found.is_incomplete = True  # also if it had ended before
        _end(found)
        if self._settings.get("durable") == "power":
            self._writer.sync()
        self._drop_dead()
        self._writer.rotate()
        return True

    def _end_running(self, pid: int) -> None:
        """The command of the running call is over, says bash. What it has left says `left` later."""
        if pid != self._bash or self._page is None:
            return
        self._page.ask_for_end(False)
        call = self._page.numbers[CURRENT]
        if self.end(call):
            self._page.numbers[ENDED] = call

    def close(self) -> None:
        """Every process has ended. A background process's call is complete then."""
        if self._fixed is not None:
            self.end(self._fixed)
        self._writer.close()
        if self._page is not None:
            self._page.close()

    def call_of(self, pid: int) -> CallJournal:
        if self._page is not None and self._page.numbers[CURRENT] != self._running:
            self._receive()  # the call before has said what it left before this one began
            self._running, self._of_running = self._page.numbers[CURRENT], {}
        found = self._of_running.get(pid) or self._found(pid)
        if found.is_ended:
            self._is_late = True
        return found

    def _journal(self, number: int) -> CallJournal:
        found = self._calls.get(number)
        if found is None:
            limit = {"max_copy_bytes": self._settings["max_copy"]} if "max_copy" in self._settings else {}
            found = self._calls[number] = CallJournal(self._writer, self.stash, number, **limit)
            found.is_ended = self._page is not None and number != self._page.numbers[CURRENT]
            found.is_tried = self._page is not None and 0 < number == self._page.numbers[TRIED]
            if self._settings.get("asks") and "pause" in self._settings:
                found.limit = DeletionLimit(*self._settings["pause"])
            for old in sorted(self._calls)[1:-_MAX_CALLS]:
                if not self._calls[old].is_incomplete and old != self._running:
                    del self._calls[old]
        return found

    def _found(self, pid: int) -> CallJournal:
        call = self._left_by(pid) if self._left and pid != self._bash else self._fixed
        if call is not None or self._page is None:
            return self._journal(call or 0)
        if self._page.numbers[CHANGED] != self._running:
            self._page.numbers[CHANGED] = self._running
            self._page.ask_for_end(True)
        return self._of_running.setdefault(pid, self._journal(self._running))

    def _left_by(self, pid: int) -> int | None:
        """The call that has left the process of this thread, or one above it."""
        try:
            pid = proc.leader_of(pid)
        except OSError:  # gone, or hidden: an error here would let its change through unseen
            return None
        for _ in range(_MAX_PARENTS):
            stat = proc.stat_of(pid)
            call, start = self._left.get(pid, (0, 0))
            if stat is None or stat.start == start:
                return call or None
            if stat.parent in (0, 1, self._bash):
                return None
            pid = stat.parent
        return None

    def _drop_dead(self) -> None:
        self._left = {pid: found for pid, found in self._left.items() if proc.is_alive(pid, found[1])}


class EffectServer:
    """`sockets` come from the shells and from the client, and lead to the fork server. `until` is a descriptor that is closed
    when the fork server has ended; background processes may go on.

    `settings` are the folder of the `journal`, and optionally `max_copy` (bytes), `durable` ("power"), `private`, places
    where commands have mounts of their own, `asks`, whether the client answers questions, `pause`, the files and megabytes that a
    call may delete before somebody is asked, and `holds_network`, whether connections wait for an answer. The client says of each
    shell what is outside of its work tree (outside_writes.py).
    """

    def __init__(
        self, sockets: tuple[socket.socket, socket.socket, socket.socket], until: int, settings: Packet
    ) -> None:
        self._socket, self._client, self._fork_server = sockets
        self._settings = settings
        self._watched: Dict[str, Watched] = {}  # noqa: UP006  by shell or job
        self._contained: Dict[str, Packet | None] = {}  # noqa: UP006  by shell: what is outside of its work tree
        self._poll = select.poll()  # epoll would not wake this process on the CPU of the one that waits
        self._handlers: Dict[int, Callable[[int], Any]] = {}  # noqa: UP006  the same
        self._until = until
        self._is_wanted = True
        self._questions = Questions(self._send_to_client if settings.get("asks") else None)
        self._on(self._socket.fileno(), self._receive_all)
        self._on(self._client.fileno(), self._on_client)
        self._on(until, self._leave)

    def run(self, at_end: Callable[[bool], object]) -> None:
        """Serve until the fork server and everything below it have ended.

        `at_end` is called when the fork server has, with whether something else goes on.
        """
        while self._is_wanted or self._watched:
            for fd, event in self._poll.poll():
                handler = self._handlers.get(fd)
                if handler is not None:
                    handler(event)
            if not self._is_wanted and self._until >= 0:
                self._until = -1
                self._receive_all()
                for key in [key for key, one in self._watched.items() if not one.listeners]:
                    self._watched.pop(key).close()
                at_end(bool(self._watched))

    def _on(self, fd: int, handler: Callable[[int], Any]) -> None:
        self._handlers[fd] = handler
        self._poll.register(fd, select.POLLIN)

    def _off(self, fd: int) -> None:
        self._poll.unregister(fd)
        del self._handlers[fd]

    def _send_to_client(self, packet: Packet) -> None:
        wire.send(self._client, packet, (), socket.MSG_DONTWAIT)

    def _leave(self, _: int) -> None:
        self._is_wanted = False
        self._questions.deny_all()
        self._off(self._until)
        if self._client.fileno() in self._handlers:
            self._off(self._client.fileno())

    def _on_client(self, _: int) -> None:
        try:
            packet, fds = wire.receive(self._client)
        except OSError:
            packet, fds = None, []
        if packet is None:
            self._off(self._client.fileno())
            self._fork_server.close()  # it ends as well
            self._questions.deny_all()
            return
        if packet.get("op") == "answer":
            self._questions.answered(packet)
        elif packet.get("op") == "end":
            self._receive_all()  # what the call has left was said before
            found = self._watched.get(packet["shell"])
            # The kind of socket is given, else it would be asked for each part of that.
            asker = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET, 0, fds.pop(0))
            with asker, contextlib.suppress(OSError):  # who asked is gone
                wire.send(asker, {"changed": found is not None and found.end(packet["call"])})
        else:
            self._contained[packet["shell"]] = packet.pop("contained", None)
            with contextlib.suppress(OSError):  # it is gone: the client finds its socket closed
                wire.send(self._fork_server, packet, fds)
        for fd in fds:
            os.close(fd)

    def _receive_all(self, _: int = 0) -> None:
        while True:
            try:
                packet, fds = wire.receive(self._socket)
            except BlockingIOError:
                return
            except (OSError, ValueError):
                packet, fds = None, []
            if packet is None:  # every shell has ended
                self._off(self._socket.fileno())
                return
            sender = packet.get("sender", 0)
            if packet.get("op") in ("listener", "probe"):
                self._watch(packet, fds, sender)
                continue
            self._notice(packet, sender)
            for fd in fds:
                os.close(fd)

    def _notice(self, packet: Packet, sender: int) -> None:
        found = self._watched.get(packet["shell"])
        if packet["op"] == "left" and found is not None:
            found.left(packet["call"], sender)
        elif packet["op"] == "forget":
            self._contained.pop(packet["shell"], None)
            if found is not None and not found.listeners:
                self._watched.pop(packet["shell"]).close()

    def _watch(self, packet: Packet, fds: list[int], sender: int) -> None:
        listener = fds[0]
        if packet["op"] == "probe":
            error = _PROBED
            try:
                taken(sender, packet["socket"]).close()
            except OSError:
                error = _PROBED_BUT_SOCKETS
                if self._settings.get("holds_network") == "auto":
                    self._settings["holds_network"] = ""
            probe = EffectWatcher(listener, lambda _: NotRecorded(), _PROBE.__eq__, kept_out_error=error)  # type: ignore[arg-type, return-value]
            self._serve_with(probe, lambda: None, lambda: None)
            return
        key, call = packet.get("shell") or packet["job"], packet.get("call")
        found = self._watched.get(key)
        if found is None:
            contained = self._contained.get(packet.get("shell") or packet["owner"])
            found = self._watched[key] = Watched(call, {**self._settings, "contained": contained})
        watched = found

        def gone() -> None:
            watched.listeners.remove(listener)
            if call is not None or (self._until < 0 and not watched.listeners):
                self._watched.pop(key).close()

        def ask(held: HeldCall, release: Release) -> None:
            self._questions.ask(held, release, packet.get("shell") or packet["owner"])

        page = fds[1] if len(fds) > 1 else None
        watcher = watched.watch(listener, page, sender, self._receive_all, ask)
        self._serve_with(watcher, watched.end_late_changes, gone)

    def _serve_with(self, watcher: EffectWatcher, after: Callable[[], None], gone: Callable[[], None]) -> None:
        def serve(event: int) -> None:
            is_alive = watcher.serve(event)
            after()
            if not is_alive:
                self._off(watcher.listener)
                watcher.close()
                gone()

        self._on(watcher.listener, serve)


def pair() -> tuple[socket.socket, socket.socket]:
    """The watcher's end, and the one that shells inherit."""
    mine, theirs = wire.packet_pair()
    mine.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
    mine.setblocking(False)
    return mine, theirs


def probe(sock: socket.socket) -> tuple[str, bool]:
    """Why what processes change cannot be watched here; empty if it can. And whether their connections can be held. `sock` leads
    to a watcher."""
    reason, theirs = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            syscall_filter.install_and_send(Watch(sock, {"op": "probe", "socket": socket.socket().detach()}))
            os.open(_PROBE, os.O_WRONLY)
        except FilterRefused as error:
            os.write(theirs, f"the kernel refuses it: {error}".encode())
        except OSError as error:
            if error.errno == _PROBED:
                os.write(theirs, _CAN_HOLD)
            elif error.errno != _PROBED_BUT_SOCKETS:
                os.write(theirs, f"the watcher cannot see what a process does: {error.strerror}".encode())
        finally:
            os._exit(0)
    os.close(theirs)
    with open(reason, "rb") as file:
        why = file.read().decode()
    os.waitpid(pid, 0)
    return ("", True) if why == _CAN_HOLD.decode() else (why, False)


def _end(call: CallJournal) -> None:
    with contextlib.suppress(JournalFailed):  # the disk is full: tried again later
        call.end()
