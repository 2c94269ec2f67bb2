"""Carries frames between a client that is elsewhere and the live shell that is here.

A frame is kind, number, length, body. messages.py knows what bodies hold; some are an object with data behind it.

    from the client   R run a command                             K abandon the command
                      Q ask: object with `op`, data               B it lives, and has received so many bytes
                      E it leaves
    to the client     H hello: object                             O output of the command
                      D it has ended                              A answer: object, data
                      S the state, for another shell to go on with
                      F there can be no shell, or none any more: object

stdin at its end means the same. Where a connection would not tell, `silence` seconds without a word mean it too;
and where nothing holds up one who sends faster than the client reads, at most `window` bytes are sent that it has not received.
"""

from __future__ import annotations

import os
import select
import signal
import socket
import struct
from typing import Callable  # noqa: UP035  Python 3.8 knows no other place

from . import jobs, wire
from .connection import Fatal, Lost, connect
from .live_shell import LiveShell
from .messages import pack, pack_ended, pack_state, unpack, unpack_command, unpack_state
from .operations import Ops
from .state import of_another
from .wire import FRAME, Packet

CHUNK_BYTES = 1 << 16


class Gone(Exception):
    """The client is gone."""


class Pump:
    def __init__(self, shell: Callable[[], LiveShell], jobs_root: str, *, silence: float, window: int) -> None:
        self._make_shell, self._jobs_root = shell, jobs_root
        self._silence, self._window = silence, window
        self._sent = self._received = 0  # by us, and by the client
        self._input = bytearray()
        self._held = b""  # frames that are still to be sent
        self._runs: list[tuple[int, bytes]] = []
        self._current = (0, 0)  # the client's number of the command that runs, and the shell's
        self._cancelled: set[int] = set()
        os.set_blocking(1, False)
        # What poll() said of it may be old: a reader that was held up has read it meanwhile.
        os.set_blocking(0, False)

    def serve(self) -> None:
        """Until the client is gone."""
        try:
            self._shell = self._make_shell()
        except (Fatal, Lost) as error:
            self._send(b"F", 0, pack({"reason": str(error)}))
            return
        self._ops = Ops(self._shell, self._jobs_root or jobs.default_folder())
        self._shell.on_saved = self._on_saved
        self._shell.others[0] = self._on_input
        self._send(b"H", 0, pack({"cwd": self._shell.line.cwd, "state": self._shell.line.began_with}))
        signal.signal(signal.SIGALRM, self._on_silence)
        try:
            self._expect_a_word()
            while True:
                self._serve_once()
        except Gone:
            self._shell.close()
        except (Fatal, Lost) as error:
            self._send(b"F", 0, pack({"reason": str(error)}))

    def _serve_once(self) -> None:
        self._take_frames()
        if self._runs:
            self._run(*self._runs.pop(0))
            return
        line = self._shell.line.fileno()
        poll = select.poll()
        poll.register(0, select.POLLIN)
        poll.register(line, select.POLLIN)
        ready = [fd for fd, _ in poll.poll()]
        if 0 in ready:
            self._on_input()
        elif line in ready:
            self._shell.hear_while_idle()

    def _run(self, number: int, body: bytes) -> None:
        def begin(inner: int) -> None:
            self._current = (number, inner)
            if number in self._cancelled:
                self._shell.kill(inner, "cancelled")

        def read(fd: int) -> int:
            data = os.read(fd, CHUNK_BYTES)
            if data:
                self._held += FRAME.pack(b"O", number, len(data)) + data
            # What is read when the command has ended goes with the news of its end: one packet of a network, not two.
            if self._held and (self._shell.is_running or len(self._held) > CHUNK_BYTES):
                self._flush()
                self._take_frames()  # what came in meanwhile
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
        self._expect_a_word()

    def _expect_a_word(self) -> None:
        if self._silence > 0:
            signal.setitimer(signal.ITIMER_REAL, self._silence)

    def _on_silence(self, *_: object) -> None:
        poll = select.poll()
        poll.register(0, select.POLLIN)
        if poll.poll(0):  # a word that was not read yet
            self._expect_a_word()
        else:
            os._exit(0)  # the guard ends the rest

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
        elif kind == b"E":
            raise Gone

    def _answer(self, number: int, details: Packet, data: bytes) -> None:
        op = details.pop("op")
        content = b""
        try:
            answer, content = self._ops.call(op, details, data)
        except OSError as error:
            answer = {"errno": error.errno or 5, "reason": error.strerror or str(error)}
        except Lost as error:
            answer = {"errno": 5, "reason": str(error)}
        self._send(b"A", number, pack(answer, content))

    def _on_saved(self, state: bytes) -> None:
        packed = pack_state(state)
        if packed is not None:
            self._send(b"S", 0, packed)

    def _send(self, kind: bytes, number: int, body: bytes) -> None:
        self._held += FRAME.pack(kind, number, len(body)) + body
        self._flush()

    def _flush(self) -> None:
        """A client that does not read holds this up, but is still heard: it may cancel. The keeper minds the time limit."""
        content, self._held = self._held, b""
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
        if any(fd == 0 for fd, _ in poll.poll()):
            self._take_input_only()

    def _take_input_only(self) -> None:
        """While a frame is half sent, only what sends none may be done: note a cancel or a receipt, keep the rest."""
        self._read_input()
        at = 0
        while len(self._input) >= at + FRAME.size:
            kind, number, length = FRAME.unpack_from(self._input, at)
            at += FRAME.size + length
            if len(self._input) >= at and (kind == b"B" or (kind == b"K" and number not in self._cancelled)):
                self._on_frame(kind, number, bytes(self._input[at - length : at]))


def run_pump(guard: socket.socket, arguments: Packet) -> None:
    """The pump is the guard's only client."""
    # Without a directory given it is the one that this was started in.
    cwd = os.path.abspath(os.path.expanduser(arguments["cwd"]))
    spec = {"env": arguments["env"], "cwd": cwd, "is_remote": True}
    state = of_another(unpack_state(arguments["state"])) if arguments["state"] else None

    def ask_guard(packet: Packet, fds: list[int]) -> None:
        wire.send(guard, packet, fds)

    def shell() -> LiveShell:
        if arguments["must_have_cwd"] and state is None and not os.path.isdir(cwd):
            raise Fatal(f"the working directory {cwd} does not exist; make it, or give another")
        return LiveShell(lambda begin: connect(ask_guard, "shell", spec, begin), state)

    Pump(shell, arguments["jobs_root"], silence=arguments["silence"], window=arguments["window"]).serve()
