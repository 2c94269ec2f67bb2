"""The frame relay: carries frames between a client elsewhere and the live shell here.

A frame is kind, number, length, body. messages.py encodes the bodies; some are an object followed by data.

    from the client   R run a command                        K abandon the command
                      Q request: object with `op`, data      B keep-alive: how many bytes it has received
                      E it leaves                            Y the answer about a system call that waits
    to the client     H hello: object                        O output of the command
                      D the command has ended                A answer: object, data
                      S the state, for a later shell to continue from
                      W a system call of the command waits: object (held_calls.py), numbered for the answer
                      F no shell can be started, or the shell is gone: object

The end of stdin means that the client has left. Where a connection would not show that, `client_timeout` seconds without a frame
mean it too; and where nothing slows down a sender that is faster than the client, at most `window` unconfirmed bytes are sent.
"""

from __future__ import annotations

import os
import select
import signal
import socket
import struct
from typing import Callable  # noqa: UP035  Python 3.8 knows no other place

from . import jobs, wire, work_tree
from .bash import of_another
from .connection import Fatal, Lost, connect
from .fork_server import ForkServer
from .held_calls import DENY, STOP, HeldCall
from .live_shell import LiveShell
from .messages import pack, pack_ended, pack_state, unpack, unpack_command, unpack_state
from .operations import Operations
from .wire import FRAME, Packet

CHUNK_BYTES = 1 << 16


class Gone(Exception):
    """The client is gone."""


class FrameRelay:
    def __init__(self, shell: Callable[[], LiveShell], server: ForkServer | socket.socket, arguments: Packet) -> None:
        self._server = server
        self._held: dict[int, tuple[int, Callable[[], None]]] = {}  # the call of what waits, and how its time goes on
        self._make_shell, self._jobs_root, self._journal = shell, arguments["jobs_root"], arguments["journal"]
        self._uncovered = arguments["uncovered"]
        self._client_timeout, self._window = arguments["client_timeout"], arguments["window"]
        self._sent = self._received = 0  # bytes: by us, and by the client
        self._input = bytearray()
        self._unsent = b""  # frames that are still to be sent
        self._runs: list[tuple[int, bytes]] = []
        self._current = (0, 0)  # the client's number of the command that runs, and the shell's
        self._cancelled: set[int] = set()
        os.set_blocking(1, False)
        # poll() may be out of date: a reader that was held up has read it meanwhile.
        os.set_blocking(0, False)

    def serve(self) -> None:
        try:
            self._shell = self._make_shell()
        except (Fatal, Lost) as error:
            self._send(b"F", 0, pack({"reason": str(error)}))
            return
        self._ops = Operations(self._shell, self._jobs_root or jobs.default_folder(), self._journal)
        self._shell.on_saved = self._on_saved
        server = self._server
        if isinstance(server, ForkServer):
            self._shell.others = {0: self._on_input, **dict.fromkeys(server.descriptors, server.attend)}
        else:
            self._shell.others = {0: self._on_input, server.fileno(): lambda: self._on_held(server)}
        connection = self._shell.connection
        hello = {"cwd": connection.cwd, "state": connection.began_with, "uncovered": self._uncovered}
        self._send(b"H", 0, pack(hello))
        signal.signal(signal.SIGALRM, self._on_client_timeout)
        try:
            self._restart_client_timer()
            while True:
                self._take_frames()
                if self._runs:
                    self._run(*self._runs.pop(0))
                    continue
                poll = select.poll()
                for fd in (*self._shell.others, self._shell.connection.fileno()):
                    poll.register(fd, select.POLLIN)
                ready = poll.poll()[0][0]
                self._shell.others.get(ready, self._shell.receive_while_idle)()
        except Gone:
            self._shell.close()
            self._ops.close()
        except (Fatal, Lost) as error:
            self._send(b"F", 0, pack({"reason": str(error)}))

    def _run(self, number: int, body: bytes) -> None:
        def begin(inner: int) -> None:
            self._current = (number, inner)
            if number in self._cancelled:
                self._shell.kill(inner, "cancelled")

        def read(fd: int) -> int:
            data = os.read(fd, CHUNK_BYTES)
            if data:
                self._unsent += FRAME.pack(b"O", number, len(data)) + data
            # What is read after the command's end is sent together with the end: one network packet instead of two.
            if self._unsent and (self._shell.is_running or len(self._unsent) > CHUNK_BYTES):
                self._flush()
                self._take_frames()  # what has arrived meanwhile
            return len(data)

        ended = self._shell.run(unpack_command(body), read, may_block=True, on_begin=begin)
        self._current = (0, 0)
        self._cancelled.clear()
        self._send(b"D", number, pack_ended(ended))

    def _on_input(self) -> None:
        self._read_input()
        self._take_frames()

    def _read_input(self) -> None:
        try:
            data = os.read(0, CHUNK_BYTES)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            raise Gone
        self._input += data
        self._restart_client_timer()

    def _restart_client_timer(self) -> None:
        if self._client_timeout > 0:
            signal.setitimer(signal.ITIMER_REAL, self._client_timeout)

    def _on_client_timeout(self, *_: object) -> None:
        poll = select.poll()
        poll.register(0, select.POLLIN)
        if poll.poll(0):  # a frame that was not read yet
            self._restart_client_timer()
        else:
            os._exit(0)  # the fork server ends the rest

    def _take_frames(self) -> None:
        while len(self._input) >= FRAME.size:
            kind, number, length = FRAME.unpack_from(self._input)
            if len(self._input) < FRAME.size + length:
                return
            body = bytes(self._input[FRAME.size : FRAME.size + length])
            del self._input[: FRAME.size + length]
            self._on_frame(kind, number, body)

    def _on_frame(self, kind: bytes, number: int, body: bytes) -> None:
        if kind == b"R":
            self._runs.append((number, body))
        elif kind == b"K":
            self._cancelled.add(number)
            if self._current[0] == number:
                self._shell.kill(self._current[1], "cancelled")
        elif kind == b"Q":
            self._answer(number, *unpack(body))
        elif kind == b"B":
            self._received = max(self._received, *struct.unpack(">Q", body))
        elif kind == b"Y":
            self._release(number, body.decode())
        elif kind == b"E":
            raise Gone

    def _answer(self, number: int, details: Packet, data: bytes) -> None:
        op, content = details.pop("op"), b""
        try:
            answer, content = self._ops.call(op, details, data)
        except (OSError, Lost) as error:
            reason = getattr(error, "strerror", None) or str(error)
            answer = {"errno": getattr(error, "errno", None) or 5, "reason": reason}
        self._send(b"A", number, pack(answer, content))

    def _on_held(self, server: socket.socket) -> None:
        """A system call waits. The client reads while a command runs; at other times nobody can be asked."""
        packet, _ = wire.receive(server)
        if packet is None:
            raise Lost("the fork server is gone")
        number, about = packet["held"], HeldCall(*packet["about"])
        self._held[number] = (about.call, self._shell.hold(about.call))
        if self._current[0]:
            self._send(b"W", self._current[0], pack(packet))
        else:
            self._release(number, DENY)

    def _release(self, number: int, answer: str) -> None:
        call, go_on = self._held.pop(number, (0, None))
        if go_on is not None and not isinstance(self._server, ForkServer):
            go_on()
            if answer == STOP:
                self._shell.stop(call)
            wire.send(self._server, {"op": "answer", "held": number, "answer": answer})

    def _on_saved(self, state: bytes) -> None:
        packed = pack_state(state)
        if packed is not None:
            self._send(b"S", 0, packed)

    def _send(self, kind: bytes, number: int, body: bytes) -> None:
        self._unsent += FRAME.pack(kind, number, len(body)) + body
        self._flush()

    def _flush(self) -> None:
        """A client that does not read holds this up, but can still cancel. The supervisor enforces the timeout."""
        content, self._unsent = self._unsent, b""
        view = memoryview(content)
        while view:
            room = self._window - (self._sent - self._received) if self._window else len(view)
            try:
                count = os.write(1, view[:room]) if room > 0 else 0
            except BlockingIOError:
                count = 0
            except OSError:
                raise Gone from None
            view, self._sent = view[count:], self._sent + count
            if count == 0:
                self._wait_for_room(must_write=room > 0)

    def _wait_for_room(self, *, must_write: bool) -> None:
        poll = select.poll()
        poll.register(0, select.POLLIN)
        if must_write:
            poll.register(1, select.POLLOUT)
        if not any(fd == 0 for fd, _ in poll.poll()):
            return
        # While a frame is half sent, handle only frames that send nothing: a cancel or a confirmation. Keep the rest.
        self._read_input()
        at = 0
        while len(self._input) >= at + FRAME.size:
            kind, number, length = FRAME.unpack_from(self._input, at)
            at += FRAME.size + length
            if len(self._input) >= at and (kind == b"B" or (kind == b"K" and number not in self._cancelled)):
                self._on_frame(kind, number, bytes(self._input[at - length : at]))


def run_frame_relay(server: ForkServer | socket.socket, arguments: Packet) -> None:
    """Serve as the only client of a fork server, which is behind a socket or in this process."""
    # Without a given directory it is the one that this process was started in.
    cwd = os.path.abspath(os.path.expanduser(arguments["cwd"]))
    spec = {"env": arguments["env"], "cwd": cwd, "is_remote": True}
    if arguments["contained"] is not None:
        contained = work_tree.contained(cwd, arguments["contained"], [arguments["journal"] or jobs.default_folder()])
        spec["confinement"] = {"read_only": [], "covered": [], "contained": contained}
    elif arguments["asked_mounts"]:
        mounts = [os.path.realpath(place) for place in arguments["asked_mounts"]]
        spec["confinement"] = {"contained": {"writable": [], "quiet": [], "sealed": [], "asked": mounts}}
    state = of_another(unpack_state(arguments["state"])) if arguments["state"] else None

    def ask_fork_server(packet: Packet, fds: list[int]) -> None:
        if isinstance(server, ForkServer):
            server.start(packet, [os.dup(fd) for fd in fds])
        else:
            wire.send(server, packet, fds)

    def shell() -> LiveShell:
        if arguments["refused"]:
            raise Fatal(arguments["refused"])
        if arguments["must_have_cwd"] and state is None and not os.path.isdir(cwd):
            raise Fatal(f"the working directory {cwd} does not exist; create it, or set another")
        return LiveShell(lambda begin, page: connect(ask_fork_server, "shell", spec, begin, page), state)

    FrameRelay(shell, server, arguments).serve()
