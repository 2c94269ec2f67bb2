"""The way to a shell that is elsewhere: frames over the stdin and stdout of whatever starts a Python there.

A backend says with a `Transport` how a Python is started: `docker exec -i C python3 ...`, `ssh host "python3 ..."`. The rest of
the far side is sent through its stdin, so that nothing has to be installed there but bash 4.4 and Python 3.8, with /proc.
Where there is no python3 the start fails and says so; a helper that needs none is not built yet.
"""

from __future__ import annotations

import contextlib
import os
import select
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from . import bundle
from .far import wire
from .far.attempt import Command
from .far.connection import Fatal, Lost
from .far.liveshell import Ended
from .far.pump import pack, unpack
from .far.wire import FRAME, Packet

if TYPE_CHECKING:
    from ...types import CancelToken
    from .output import OutputSink

START_SECONDS = 60.0
ANSWER_SECONDS = 60.0
OVERDUE_SECONDS = 15.0
_END_SECONDS = 10.0
_READ_BYTES = 1 << 17
_ERROR_BYTES = 2000


class Transport(NamedTuple):
    """How to start a program there. `argv` gets the program and its arguments, and gives what to run here."""

    argv: Callable[[Sequence[str]], Sequence[str]]
    where: str  # for messages: "the container c1", "the host build.example"
    python: str = "python3"
    env: dict[str, str] | None = None  # of the program that is run here; None is this process's own


class _Waiting:
    """A request on its way, and what has come for it."""

    def __init__(self, sink: OutputSink | None = None) -> None:
        self.sink = sink
        self.pieces: list[bytes] = []
        self.answer: bytes | None = None


class Session:
    """A `Link`. Whoever waits for an answer reads what comes, and passes on what is for others: no thread of its own."""

    def __init__(
        self, transport: Transport, *, env: dict[str, str], cwd: str, jobs_root: str = "", state: bytes | None = None
    ) -> None:
        self._where = transport.where
        self.state = state
        self._number = self._running = 0
        self._waiting: dict[int, _Waiting] = {}
        self._news = threading.Condition()
        self._writing = threading.Lock()
        self._is_read = False
        self._lost: Exception | None = None
        self._buffer = bytearray()
        self._errors = os.memfd_create("errors")
        arguments = ("-I", "-S", "-c", bundle.BOOT)
        try:
            self._process = subprocess.Popen(
                [*transport.argv([transport.python, *arguments])],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._errors,
                env=transport.env,
                bufsize=0,
                start_new_session=True,
            )
        except OSError as error:
            os.close(self._errors)
            raise Fatal(f"{error.filename} cannot be run here: {error.strerror}; install it") from None
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._in, self._out = self._process.stdin.fileno(), self._process.stdout.fileno()
        os.set_blocking(self._in, False)
        try:
            hello = self._greet(env=env, cwd=cwd, jobs_root=jobs_root, state=state.hex() if state else "")
        except BaseException:
            self.close()
            raise
        self.cwd: str = hello["cwd"]

    def run(self, command: Command, sink: OutputSink, cancel: CancelToken | None) -> Ended:
        details: Packet = {
            "text_bytes": len(command.text),
            "has_stdin": command.stdin is not None,
            "cwd": command.cwd.decode("utf-8", "surrogateescape"),
            "timeout": command.timeout,
        }
        waiting = _Waiting(sink)
        number = self._running = self._ask(b"R", pack(details, command.text + (command.stdin or b"")), waiting)
        forget = cancel.on_cancel(lambda: self._cancel(number)) if cancel is not None else None
        try:
            limit = None if command.timeout is None else command.timeout + OVERDUE_SECONDS
            answer, _ = unpack(self._await(number, waiting, limit))
        except BaseException:
            self._cancel(number)
            raise
        finally:
            self._running = 0
            if forget is not None:
                forget()
        return Ended(**answer)

    def call(self, op: str, data: bytes = b"", **details: object) -> tuple[Packet, bytes]:
        waiting = _Waiting()
        number = self._ask(b"Q", pack({"op": op, **details}, data), waiting)
        answer, content = unpack(self._await(number, waiting, ANSWER_SECONDS))
        if "errno" in answer:
            raise OSError(answer["errno"], answer["reason"])
        return answer, content

    def interrupt(self) -> None:
        if self._running:
            self._cancel(self._running)

    def let_go(self) -> None:
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()

    def close(self) -> None:
        self.let_go()
        try:
            self._process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if self._errors >= 0:
            os.close(self._errors)
            self._errors = -1

    # Frames

    def _greet(self, **arguments: object) -> Packet:
        waiting = self._waiting[0] = _Waiting()
        try:
            self._write(bundle.bundle(role="remote", **arguments))
            answer, _ = unpack(self._await(0, waiting, START_SECONDS))
        except Lost:
            raise Fatal(self._why_not()) from None
        if "reason" in answer:
            raise Fatal(f"in {self._where}: {answer['reason']}")
        return answer

    def _ask(self, kind: bytes, body: bytes, waiting: _Waiting) -> int:
        with self._news:
            if self._lost is not None:
                raise self._lost
            self._number += 1
            number = self._number
            self._waiting[number] = waiting
        self._write(FRAME.pack(kind, number, len(body)) + body)
        return number

    def _cancel(self, number: int) -> None:
        with contextlib.suppress(Lost):  # whoever waits finds out
            self._write(FRAME.pack(b"K", number, 0))

    def _write(self, data: bytes) -> None:
        """The far side always reads: one that does not is gone, whatever the connection says."""
        view, end = memoryview(data), time.monotonic() + START_SECONDS
        try:
            with self._writing:
                while view:
                    try:
                        view = view[os.write(self._in, view) :]
                    except BlockingIOError:
                        self._wait_for_room(end)
        except (OSError, ValueError):
            raise Lost(f"the connection to {self._where} is gone") from None

    def _wait_for_room(self, end: float) -> None:
        poll = select.poll()
        poll.register(self._in, select.POLLOUT)
        if not poll.poll(max(0.0, end - time.monotonic()) * 1000):
            raise Lost(f"{self._where} does not answer")

    def _await(self, number: int, waiting: _Waiting, seconds: float | None) -> bytes:
        end = None if seconds is None else time.monotonic() + seconds
        try:
            while True:
                with self._news:
                    while waiting.answer is None and not waiting.pieces and self._is_read:
                        self._news.wait()
                    pieces, waiting.pieces = waiting.pieces, []
                    must_read = not pieces and waiting.answer is None
                    if self._lost is not None and must_read:
                        raise self._lost
                    self._is_read = self._is_read or must_read
                for piece in pieces:
                    self._feed(waiting, piece)
                if must_read:
                    self._read(end)
                elif waiting.answer is not None and not pieces:
                    return waiting.answer
        finally:
            with self._news:
                self._waiting.pop(number, None)

    def _read(self, end: float | None) -> None:
        """Be the one who reads, for one piece of what comes."""
        try:
            poll = select.poll()
            poll.register(self._out, select.POLLIN)
            left = None if end is None else max(0.0, end - time.monotonic()) * 1000
            if not poll.poll(left):
                raise Lost(f"{self._where} does not answer")
            data = os.read(self._out, _READ_BYTES)
            if not data:
                raise Lost(f"the connection to {self._where} ended")
            self._buffer += data
            self._take_frames()
        except (Lost, OSError, ValueError) as error:
            lost = error if isinstance(error, Lost) else Lost(f"the connection to {self._where} is gone")
            self._lost = lost
        finally:
            with self._news:
                self._is_read = False
                self._news.notify_all()

    def _take_frames(self) -> None:
        at = 0
        while len(self._buffer) - at >= FRAME.size:
            kind, number, length = FRAME.unpack_from(self._buffer, at)
            if len(self._buffer) - at < FRAME.size + length:
                break
            at += FRAME.size
            body = bytes(memoryview(self._buffer)[at : at + length])
            at += length
            self._on_frame(kind, number, body)
        del self._buffer[:at]

    def _on_frame(self, kind: bytes, number: int, body: bytes) -> None:
        if kind == b"S":
            self.state = body
            return
        if kind == b"F" and 0 not in self._waiting:
            raise Lost(f"in {self._where}: {unpack(body)[0]['reason']}")
        waiting = self._waiting.get(number)
        if waiting is None:
            return  # nobody waits for it any more
        with self._news:
            if kind == b"O":
                waiting.pieces.append(body)
            else:
                waiting.answer = body

    def _feed(self, waiting: _Waiting, piece: bytes) -> None:
        if waiting.sink is not None:
            waiting.sink.feed(piece)

    def _why_not(self) -> str:
        """What the far end said before it went away."""
        try:
            code = self._process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            return f"{self._where} did not answer within {START_SECONDS:g} s"
        said = wire.read_whole(self._errors)[-_ERROR_BYTES:].decode("utf-8", "replace").strip()
        if code == 127 or "executable file not found" in said:
            return f"python3 was not found in {self._where}; install Python 3.8 or newer there ({said})"
        return f"{self._where} ended with code {code}: {said or 'it said nothing'}"
