"""A link to a shell elsewhere: frames over a channel to a Python that was started there (channel.py). The shell host is sent
through that channel, so that only bash 4.4, Python 3.8 and /proc are needed there. Where a connection would not show its end,
the shell host is told regularly that this process is alive."""

from __future__ import annotations

import contextlib
import os
import struct
import threading
import time
from collections.abc import Callable, Sequence
from functools import partial

from ...types import CancelToken
from ..output import OutputSink
from ..shell_host.command_run import Command, Ended
from ..shell_host.connection import Fatal, Lost
from ..shell_host.held_calls import HeldCall
from ..shell_host.messages import pack, pack_command, unpack, unpack_ended
from ..shell_host.wire import FRAME, Packet
from . import bundle
from .channel import Launcher, Transport
from .link import answer_of
from .tunnel import Tunnel

__all__ = ["Session", "Transport"]

START_SECONDS, ANSWER_SECONDS, OVERDUE_SECONDS = 60.0, 60.0, 15.0
_MAX_NOISE_BYTES = 1 << 20
_KEEP_ALIVES_PER_TIMEOUT = 8


class _Waiting:
    """A request that is under way, and what has arrived for it."""

    def __init__(self, sink: OutputSink | None = None) -> None:
        self.sink = sink
        self.pieces: list[bytes] = []
        self.answer: bytes | None = None
        self.held = 0  # system calls that wait for an answer: the time of the command stands still
        self.held_at = self.held_seconds = 0.0

    def count_hold(self, more: int) -> None:
        now = time.monotonic()
        if self.held:
            self.held_seconds += now - self.held_at
        self.held, self.held_at = self.held + more, now


class Session:
    """A `Link` without a thread of its own: whoever waits for an answer reads, and passes on what is for others."""

    def __init__(  # noqa: PLR0913  one per option of a shell elsewhere
        self,
        launcher: Launcher,
        *,
        env: dict[str, str],
        cwd: str,
        jobs_root: str = "",
        state: bytes | None = None,
        must_have_cwd: bool = False,
        effects: Packet | None = None,
        contained: list[str] | None = None,
        asked_mounts: Sequence[str] = (),
        on_held: Callable[[HeldCall], str] | None = None,
        way_out: Callable[[Transport], Tunnel] | None = None,
    ) -> None:
        """Without a `state` the shell starts in `cwd`, or in the nearest folder above that exists unless `must_have_cwd`.
        `on_held` answers when a system call of a command waits (shell_host/held_calls.py). With `contained`, a list of caches,
        those that write outside of the work tree do, and with `asked_mounts` those that write below these. `way_out` opens the
        tunnel to a proxy that commands are told of."""
        self.state, self._on_held = state, on_held
        effects = {**effects, "asks": True} if effects is not None and on_held is not None else effects
        self._number = self._running = 0
        self._waiting: dict[int, _Waiting] = {}
        self._changed = threading.Condition()
        self._is_read = False  # whether some thread reads
        self._lost: Exception | None = None
        self._buffer = bytearray()
        self._received = self._confirmed = 0
        self._open_tunnel: Callable[[], Tunnel] | None = None
        if way_out is not None and isinstance(launcher, Transport):
            self._open_tunnel = partial(way_out, launcher)
        self._tunnel = self._open_tunnel() if self._open_tunnel is not None else None
        try:
            self._channel = launcher.open()
        except BaseException:
            if self._tunnel is not None:
                self._tunnel.close()
            raise
        self._where = self._channel.where
        try:
            hello = self._greet(
                env=env,
                cwd=cwd,
                jobs_root=jobs_root,
                state=state.hex() if state else "",
                must_have_cwd=must_have_cwd,
                effects=effects,
                contained=contained,
                asked_mounts=list(asked_mounts),
            )
            self.cwd: str = hello["cwd"]
            self.uncovered: str = hello["uncovered"]
            limits = {name: value for name, value in (effects or {}).items() if name in ("keep_days", "keep_bytes")}
            if len(limits) == 2 and not self.uncovered:  # the journal lies there, and is seen only while connected
                with contextlib.suppress(OSError):  # it can wait
                    self.call("call_effects", operation="prune_if_due", arguments=limits)
        except BaseException:
            self.close()
            raise
        if self._channel.client_timeout > 0:
            keep_alive.add(self._confirm, every=self._channel.client_timeout / _KEEP_ALIVES_PER_TIMEOUT)

    def run(self, command: Command, sink: OutputSink, cancel: CancelToken | None) -> Ended:
        if self._tunnel is not None and self._open_tunnel is not None and not self._tunnel.is_alive:  # it was killed
            self._tunnel.close()
            self._tunnel = self._open_tunnel()
        waiting = _Waiting(sink)
        number = self._running = self._ask(b"R", pack_command(command), waiting)
        forget = cancel.on_cancel(lambda: self._cancel(number)) if cancel is not None else None
        try:
            limit = None if command.timeout is None else command.timeout + OVERDUE_SECONDS
            answer = self._await(number, waiting, limit)
        except BaseException:
            self._cancel(number)
            raise
        finally:
            self._running = 0
            if forget is not None:
                forget()
        return unpack_ended(answer)

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

    def close_inherited(self) -> None:
        self._channel.close_inherited()
        if self._tunnel is not None:
            self._tunnel.close_inherited()

    def close(self) -> None:
        keep_alive.remove(self._confirm)
        with contextlib.suppress(Lost):  # a stream may have no end that the shell host would see
            self._channel.send(FRAME.pack(b"E", 0, 0), time.monotonic())
        self._channel.close()
        if self._tunnel is not None:
            self._tunnel.close()

    def _greet(self, **arguments: object) -> Packet:
        waiting = self._waiting[0] = _Waiting()
        limits = {"client_timeout": self._channel.client_timeout, "window": self._channel.window}
        try:
            can = self._read_ready()
            compiled, is_loaded = can == bundle.COMPILED_FOR, can == bundle.LOADED
            self._write(bundle.bundle(role="remote", compiled=compiled, is_loaded=is_loaded, **limits, **arguments))
            answer, _ = unpack(self._await(0, waiting, START_SECONDS))
        except Lost:
            raise self._channel.failure(bytes(self._buffer)) from None
        if "reason" in answer:
            raise Fatal(f"in {self._where}: {answer['reason']}")
        return answer

    def _read_ready(self) -> bytes:
        """What compiled code the shell host can run. What start-up files print before it starts is skipped."""
        end = time.monotonic() + START_SECONDS
        word = len(bundle.COMPILED_FOR)
        while (found := self._buffer.find(bundle.READY)) < 0 or len(self._buffer) < found + len(bundle.READY) + word:
            if len(self._buffer) > _MAX_NOISE_BYTES:
                raise Fatal(f"{self._where} prints too much before a command can run: check the start-up files there")
            self._buffer += self._channel.receive(end)
        del self._buffer[: found + len(bundle.READY)]
        compiled_for = bytes(self._buffer[:word])
        del self._buffer[:word]
        return compiled_for

    def _ask(self, kind: bytes, body: bytes, waiting: _Waiting) -> int:
        with self._changed:
            if self._lost is not None:
                raise self._lost
            self._number += 1
            number = self._number
            self._waiting[number] = waiting
        self._write(FRAME.pack(kind, number, len(body)) + body)
        return number

    def _cancel(self, number: int) -> None:
        with contextlib.suppress(Lost):  # whoever waits for the answer finds out
            self._write(FRAME.pack(b"K", number, 0))

    def _write(self, data: bytes) -> None:
        self._channel.send(data, time.monotonic() + START_SECONDS)

    def _confirm(self) -> None:
        """Send a keep-alive with the number of bytes received."""
        received = self._received
        with contextlib.suppress(Lost):  # a full stream shows as much, and whoever waits finds out the rest
            self._channel.send(FRAME.pack(b"B", 0, 8) + struct.pack(">Q", received), time.monotonic())
            self._confirmed = received

    def _await(self, number: int, waiting: _Waiting, seconds: float | None) -> bytes:
        began = time.monotonic()
        try:
            while True:
                with self._changed:
                    while waiting.answer is None and not waiting.pieces and self._is_read:
                        self._changed.wait()
                    pieces, waiting.pieces = waiting.pieces, []
                    answer = waiting.answer
                    must_read = not pieces and answer is None
                    if self._lost is not None and must_read:
                        raise self._lost
                    self._is_read = self._is_read or must_read
                if waiting.sink is not None:
                    for piece in pieces:
                        waiting.sink.feed(piece)
                if answer is not None:
                    return answer
                if must_read:
                    is_limited = seconds is not None and not waiting.held
                    self._read(began + (seconds or 0.0) + waiting.held_seconds if is_limited else None)
        finally:
            with self._changed:
                self._waiting.pop(number, None)

    def _read(self, end: float | None) -> None:
        """Read once, as the only reader."""
        try:
            data = self._channel.receive(end)
            self._received += len(data)
            self._buffer += data
            at = 0
            while len(self._buffer) - at >= FRAME.size:
                kind, number, length = FRAME.unpack_from(self._buffer, at)
                if len(self._buffer) - at < FRAME.size + length:
                    break
                at += FRAME.size + length
                self._on_frame(kind, number, bytes(memoryview(self._buffer)[at - length : at]))
            del self._buffer[:at]
            if self._channel.window and self._received - self._confirmed > self._channel.window // 4:
                self._confirm()
        except Lost as lost:
            self._lost = lost
        finally:
            with self._changed:
                self._is_read = False
                self._changed.notify_all()

    def _on_frame(self, kind: bytes, number: int, body: bytes) -> None:
        if kind == b"S":
            self.state = body
            return
        if kind == b"F" and 0 not in self._waiting:
            raise Lost(f"in {self._where}: {unpack(body)[0]['reason']}")
        waiting = self._waiting.get(number)
        if waiting is None:
            return  # nobody waits for it any longer
        with self._changed:
            if kind == b"W":
                waiting.count_hold(1)
                threading.Thread(target=self._answer_held, args=(waiting, unpack(body)[0]), daemon=True).start()
            elif kind == b"O":
                waiting.pieces.append(body)
            else:
                waiting.answer = body

    def _answer_held(self, waiting: _Waiting, packet: Packet) -> None:
        answer = answer_of(self._on_held, packet)
        with self._changed:
            waiting.count_hold(-1)
        with contextlib.suppress(Lost):  # and with it what waited
            self._write(FRAME.pack(b"Y", packet["held"], len(answer)) + answer.encode())


class KeepAlive:
    """One thread for all sessions; there is none while no session needs it."""

    def __init__(self) -> None:
        self._reset()

    def _reset(self) -> None:
        self._process = os.getpid()
        self._changed = threading.Condition()
        self._senders: dict[Callable[[], None], float] = {}
        self._thread: threading.Thread | None = None

    def add(self, send: Callable[[], None], *, every: float) -> None:
        """Call `send` about every so many seconds. It must not take long."""
        if self._process != os.getpid():  # after a fork the thread and its sessions are the parent's
            self._reset()
        with self._changed:
            self._senders[send] = every
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="handrail-keep-alive", daemon=True)
                self._thread.start()
            elif every <= min(self._senders.values()):
                self._changed.notify()

    def remove(self, send: Callable[[], None]) -> None:
        if self._process == os.getpid():
            with self._changed:
                self._senders.pop(send, None)
                if not self._senders:
                    self._changed.notify()

    def _run(self) -> None:
        while True:
            with self._changed:
                if self._senders:
                    self._changed.wait(min(self._senders.values()))
                senders = list(self._senders)
                if not senders:
                    self._thread = None
                    return
            for send in senders:
                send()


keep_alive = KeepAlive()
