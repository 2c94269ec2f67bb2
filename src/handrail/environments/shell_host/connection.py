"""The client's line to a keeper and to its bash.

Four descriptors stay open between commands: the keeper's socket, and one end each of GO, DONE and OUT. The rest is opened by
path when it is needed, so that some hundred shells fit into the usual thousand descriptors of a process.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import socket
import time
from typing import Any, Callable, List, NamedTuple  # noqa: UP035  Python 3.8 knows no other place

from . import bash_template, proc, wire
from .wire import Packet

START_SECONDS = 20.0
END_SECONDS = 10.0
ANSWER_SECONDS = 10.0
_UNKNOWN = b"?"  # children of a keeper
_MAX_CHILDREN_BYTES = 1 << 14
_LARGE_TEXT = 1 << 16

AskGuard = Callable[[Packet, List[int]], None]  # noqa: UP006  the same


class Lost(Exception):
    """The keeper is gone, and the shell with it."""


class Fatal(Exception):
    """There can be no shell there; the message says why."""


class Birth(NamedTuple):
    """A new bash has taken the place of another."""

    why: str  # how the other one went: ended, timeout, cancelled
    number: int  # the command that was to be ended in the last two cases
    code: int
    state: str  # what the new one began with: kept, snapshot, clean
    saved: int  # the last command that a snapshot knows of
    is_unread: bool  # the other had not yet read the word to run a command


def connect(ask_guard: AskGuard, shell: str, spec: Packet, state: bytes | None) -> Connection:
    """A new keeper with its bash. `ask_guard` sends a packet with descriptors to the guard."""
    mine, theirs = wire.packet_pair()
    bash_template = Connection(mine, output_pipe())
    try:
        with theirs:
            bash_template.request(ask_guard, shell, theirs.fileno(), spec, state)
        bash_template.wait_until_ready()
    except BaseException:
        bash_template.close()
        raise
    return bash_template


class Connection:
    """`keeper` is the socket to it, `out` the reading end of the output's pipe. All of it is on this machine."""

    def __init__(self, keeper: socket.socket, out: int) -> None:
        self.births: list[Birth] = []
        self.began_with = ""
        self.on_saved: Callable[[bytes], None] = lambda _: None
        self.go = self.done = -1
        self.bash = self.keeper = self._bash_start = 0
        self.text_path = self.stdin_path = self.cwd = ""
        self.birth: Packet = {}  # what the keeper said of the bash that is there
        self._family: tuple[bytes, bytes] | None = None
        self._is_ready = self._has_large_text = False
        self.poll = select.poll()  # all that can happen while a command runs
        self.news = select.poll()  # the same without its output
        self._socket, self.out = keeper, out
        self._socket.setblocking(False)
        for poll in (self.poll, self.news):
            poll.register(self._socket.fileno(), select.POLLIN)
        self.poll.register(self.out, select.POLLIN)

    def fileno(self) -> int:
        return self._socket.fileno()

    def hear(self) -> None:
        """Take in what the keeper has said. Raises Lost or Fatal."""
        while True:
            try:
                packet, fds = wire.receive(self._socket, socket.MSG_DONTWAIT)
            except BlockingIOError:
                return
            except OSError:
                packet, fds = None, []
            if packet is None:
                raise Lost("its keeper was killed")
            try:
                self._on_packet(packet, fds)
            finally:  # what was not taken
                for fd in fds:
                    os.close(fd)

    def tell(self, packet: Packet) -> None:
        with contextlib.suppress(OSError):  # it is gone; whoever listens next finds out
            wire.send(self._socket, packet, (), socket.MSG_DONTWAIT)

    def ask(self, op: str, fds: list[int] | None = None, **details: Any) -> Packet:
        """The answer comes on a socket of its own, so that any thread may ask while another runs a command."""
        mine, theirs = wire.packet_pair()
        with mine:
            try:
                with theirs:
                    wire.send(self._socket, {"op": op, **details}, [theirs.fileno(), *(fds or [])], socket.MSG_DONTWAIT)
                mine.settimeout(ANSWER_SECONDS)
                answer, _ = wire.receive(mine)
            except OSError:
                answer = None
        if answer is None:
            raise Lost("its keeper does not answer")
        return answer

    def renew_out(self, number: int) -> Packet:
        """Leave the output's pipe to the processes that still hold it. The answer is as of `left`."""
        new = output_pipe()
        answer = self.ask("left", [new], number=number)
        self.poll.unregister(self.out)
        os.close(self.out)
        self.out = new
        self.poll.register(new, select.POLLIN)
        return answer

    def write_text(self, content: bytes) -> None:
        """Put a command where bash reads it. What is left there of a longer one comes after what bash reads."""
        fd = os.open(self.text_path, os.O_WRONLY | os.O_CLOEXEC | (os.O_TRUNC if self._has_large_text else 0))
        try:
            self._has_large_text = len(content) > _LARGE_TEXT
            wire.write_all(fd, content)
        finally:
            os.close(fd)

    def is_word_unread(self) -> bool:
        """Whether bash has yet to read that it should run a command."""
        # A pipe can be opened from either end's path, for either direction.
        fd = os.open(f"/proc/self/fd/{self.go}", os.O_RDONLY | os.O_NONBLOCK)
        try:
            words = os.read(fd, 4096)
            return bash_template.RUN in words or bash_template.RUN_ELSEWHERE in words
        except BlockingIOError:
            return False
        finally:
            os.close(fd)

    def has_new_family(self, last_background: bytes) -> bool:
        """Whether bash has started another background process since the last look, or the keeper other children."""
        family = (last_background, self._children())
        is_new, self._family = family != self._family, family
        return is_new or _UNKNOWN in family

    def give(self, words: bytes) -> None:
        """Say what bash is to do. Raises BrokenPipeError when it is gone."""
        os.write(self.go, words)

    def cwd_of_bash(self) -> str:
        return os.readlink(f"/proc/{self.bash}/cwd")

    def kill_keeper(self) -> None:
        """It hangs. The guard sweeps up after it."""
        proc.signal_each([self.keeper], signal.SIGKILL)

    def bury(self) -> None:
        """End what the keeper left when it was killed. The guard does the same, unless it was killed as well."""

        def find() -> list[int]:
            lives = proc.is_alive(self.bash, self._bash_start)
            return [self.bash, *proc.tree(self.bash)] if lives else []

        proc.stop_and_kill(find, lambda: None, seconds=2)
        self.close()

    def close(self) -> None:
        """Leave. The keeper ends all that runs, and this waits until it has."""
        try:
            self._socket.shutdown(socket.SHUT_WR)
            self._socket.settimeout(END_SECONDS)
            while self._drop_packet():
                pass
        except OSError:
            pass  # it was gone already
        self.let_go()

    def let_go(self) -> None:
        """Close our ends without a word to the other."""
        self._socket.close()
        for fd in (self.go, self.done, self.out):
            if fd >= 0:
                os.close(fd)
        self.go = self.done = self.out = -1

    def request(self, ask_guard: AskGuard, shell: str, theirs: int, spec: Packet, state: bytes | None) -> None:
        files = [wire.memory_file("spec", json.dumps(spec).encode())]
        if state is not None:
            files.append(wire.memory_file("state", state))
        try:
            ask_guard({"shell": shell}, [theirs, files[0], self.out, *files[1:]])
        except OSError:
            raise Lost("the guard is gone") from None
        finally:
            for fd in files:
                os.close(fd)

    def _drop_packet(self) -> bool:
        packet, fds = wire.receive(self._socket, socket.MSG_DONTWAIT)
        for fd in fds:
            os.close(fd)
        return packet is not None

    def wait_until_ready(self) -> None:
        end = time.monotonic() + START_SECONDS
        while not self._is_ready:
            left = end - time.monotonic()
            if left <= 0:
                raise Fatal(f"bash did not start within {START_SECONDS:g} s")
            self.news.poll(left * 1000)
            self.hear()

    def _on_packet(self, packet: Packet, fds: list[int]) -> None:
        op = packet["op"]
        if op == "born":
            self._on_birth(packet, fds)
        elif op == "saved":
            self.on_saved(wire.read_whole(fds[0]))
        elif op == "ready":
            self._is_ready = True
        elif op == "fatal":
            raise Fatal(packet["reason"])

    def _on_birth(self, packet: Packet, fds: list[int]) -> None:
        """Takes the first two."""
        go, done = fds[:2]
        del fds[:2]
        ended = packet["ended"]
        if ended is None:
            self.began_with = packet["state"]
        else:
            is_unread = self.is_word_unread()
            self.births.append(Birth(**ended, state=packet["state"], saved=packet["saved"], is_unread=is_unread))
        if self.go >= 0:
            for poll in (self.poll, self.news):
                poll.unregister(self.done)
            os.close(self.go)
            os.close(self.done)
        self.go, self.done, self.bash, self.keeper = go, done, packet["bash"], packet["keeper"]
        self._bash_start = packet["bash_start"]
        os.set_blocking(done, False)
        for poll in (self.poll, self.news):
            poll.register(done, select.POLLIN)
        self.cwd = packet["cwd"]
        self.text_path = f"/proc/{self.keeper}/fd/{packet['text']}"
        self.stdin_path = f"/proc/{self.keeper}/fd/{packet['stdin']}"
        self.birth = packet

    def _children(self) -> bytes:
        """The ids of the keeper's children."""
        try:
            fd = os.open(f"/proc/{self.keeper}/task/{self.keeper}/children", os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:  # a kernel that was built without it, or the keeper has just ended
            return _UNKNOWN
        try:
            return os.read(fd, _MAX_CHILDREN_BYTES)
        finally:
            os.close(fd)


def output_pipe() -> int:
    """The reading end, not blocking. The writing end is opened by path, by bash and while a command runs by us."""
    read, write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    os.fchmod(read, wire.PIPE_MODE)
    os.close(write)
    return read
