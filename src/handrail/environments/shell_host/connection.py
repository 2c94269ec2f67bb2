"""The client's connection to a shell supervisor and to its bash.

Four descriptors stay open between commands: the supervisor's socket, and one end each of GO, DONE and OUT. The rest is opened by
path when needed, so that hundreds of shells fit into the usual limit of 1,024 descriptors per process.
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
_DONTWAIT = int(socket.MSG_DONTWAIT)
_UNKNOWN = b"?"  # children of a supervisor
_MAX_CHILDREN_BYTES = 1 << 14
_LARGE_TEXT = 1 << 16
_MAX_STDERR_BYTES = 1 << 20

AskForkServer = Callable[[Packet, List[int]], None]  # noqa: UP006  the same


class Lost(Exception):
    """The supervisor is gone, and the shell with it."""


class Fatal(Exception):
    """No shell can be started there; the message says why."""


class BashRestart(NamedTuple):
    """A new bash has replaced the previous one."""

    why: str  # how the previous one ended: ended, timeout, cancelled
    number: int  # for timeout and cancelled, the command that was to be ended
    code: int
    state: str  # what the new one started with: kept, snapshot, clean
    saved: int  # the last command that the snapshot includes
    is_unread: bool  # the previous one had not yet read the word to run a command


def connect(ask_fork_server: AskForkServer, shell: str, spec: Packet, state: bytes | None, page: int) -> Connection:
    """Start a supervisor with its bash. `ask_fork_server` sends a packet with descriptors to the fork server."""
    mine, theirs = wire.packet_pair()
    made = Connection(mine, output_pipe(), shell, ask_fork_server)
    try:
        with theirs:
            made.request([theirs.fileno(), page], spec, state)
        made.wait_until_ready()
    except BaseException:
        made.close()
        raise
    return made


class Connection:
    """`supervisor` is the socket to it, `out` the reading end of the output pipe. All of it is on this machine."""

    def __init__(self, supervisor: socket.socket, out: int, shell: str, ask_fork_server: AskForkServer) -> None:
        self._shell, self._ask_fork_server = shell, ask_fork_server
        self.restarts: list[BashRestart] = []
        self.began_with = ""
        self.on_saved: Callable[[bytes], None] = lambda _: None
        self.go = self.done = -1
        self.bash = self.supervisor = self._bash_start = 0
        self.text_path = self.stdin_path = self.stderr_path = self.cwd = ""
        self._stderr_here = ""
        self.started: Packet = {}  # what the supervisor reported about the current bash
        # The last command after which the shell is known to have had no functions, aliases and traps.
        self.plain_at = -1
        self._last_children: tuple[bytes, bytes] | None = None
        self._children_at_end = b""  # of the command that has just ended, if they were looked at
        self._is_ready = self._has_large_text = False
        self.poll = select.poll()  # everything that can happen while a command runs
        self.control_poll = select.poll()  # the same without its output
        self._socket, self.out = supervisor, out
        self._socket.setblocking(False)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        for poll in (self.poll, self.control_poll):
            poll.register(self._socket.fileno(), select.POLLIN)
        self.poll.register(self.out, select.POLLIN)

    def fileno(self) -> int:
        return self._socket.fileno()

    def receive(self) -> None:
        """Handle the packets that have arrived. Raises Lost or Fatal."""
        while True:
            try:
                packet, fds = wire.receive(self._socket, _DONTWAIT)
            except BlockingIOError:
                return
            except OSError:
                packet, fds = None, []
            if packet is None:
                raise Lost("its supervisor was killed")
            try:
                self._on_packet(packet, fds)
            finally:  # those that were not taken
                for fd in fds:
                    os.close(fd)

    def notify(self, packet: Packet) -> None:
        with contextlib.suppress(OSError):  # it is gone, which the next `receive` finds out
            wire.send(self._socket, packet, (), socket.MSG_DONTWAIT)

    def ask(self, op: str, fds: list[int] | None = None, **details: Any) -> Packet:
        """The answer comes on its own socket, so that any thread may ask while another runs a command."""

        def send(theirs: int) -> None:
            wire.send(self._socket, {"op": op, **details}, [theirs, *(fds or [])], socket.MSG_DONTWAIT)

        return _answer_to(send, "its supervisor")

    def end_call(self, call: int) -> bool:
        """Ask the effect watcher, which gets what is for the fork server. Whether the call has changed something."""
        packet = {"op": "end", "shell": self._shell, "call": call}
        return bool(_answer_to(lambda theirs: self._ask_fork_server(packet, [theirs]), "the effect watcher")["changed"])

    def ask_left(self, number: int, call: int) -> Packet:
        return self.ask("left", number=number, call=call)

    def renew_out(self, number: int, call: int) -> Packet:
        """Leave the output pipe to the processes that still hold it, and open a new one. Returns the answer to `left`."""
        with contextlib.suppress(BrokenPipeError):  # bash is gone
            self.send_words(bash_template.CLOSE_OUT)
        new = output_pipe()
        answer = self.ask("left", [new], number=number, call=call)
        self.poll.unregister(self.out)
        os.close(self.out)
        self.out = new
        self.poll.register(new, select.POLLIN)
        return answer

    def write_text(self, content: bytes) -> None:
        """Put a command where bash reads it. What is left of a longer one comes after what bash reads."""
        fd = os.open(self.text_path, os.O_WRONLY | os.O_CLOEXEC | (os.O_TRUNC if self._has_large_text else 0))
        try:
            self._has_large_text = len(content) > _LARGE_TEXT
            wire.write_all(fd, content)
        finally:
            os.close(fd)

    def take_stderr(self) -> bytes:
        """What a command has written to its own stderr; of much the end. It is forgotten then."""
        try:
            fd = os.open(self._stderr_here, os.O_RDWR | os.O_CLOEXEC)
        except OSError:  # the supervisor was killed
            return b""
        try:
            size = os.fstat(fd).st_size
            data = os.pread(fd, _MAX_STDERR_BYTES, max(0, size - _MAX_STDERR_BYTES))
            os.ftruncate(fd, 0)
            return data
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

    def has_new_children(self, last_background: bytes) -> bool:
        """Whether since `took_children` bash has started another background process, or its supervisor has got other children."""
        self._children_at_end = self._children_at_end or self._children()
        children = (last_background, self._children_at_end)
        return children != self._last_children or _UNKNOWN in children

    def took_children(self, last_background: bytes) -> None:
        """They are known from here on."""
        self._last_children, self._children_at_end = (last_background, self._children_at_end), b""

    def is_bash_alone(self) -> bool:
        """Whether the supervisor has no other child. What bash has started without waiting for it is not considered."""
        children = self._children()
        is_alone = children == b"%d " % self.bash
        self._children_at_end = children if is_alone else b""
        return is_alone

    def poll_for_more(self, polls: int, milliseconds: float) -> int:
        """Poll until there is more output, and return how many polls are left. Each is short, and longer on a slow machine."""
        poll = select.poll()
        poll.register(self.out, select.POLLIN)
        while polls > 0:
            polls -= 1
            if poll.poll(milliseconds):
                break
        return polls

    def send_words(self, words: bytes) -> None:
        """Tell bash what to do. Raises BrokenPipeError if it is gone."""
        os.write(self.go, words)

    def kill_supervisor(self) -> None:
        """For one that hangs. The fork server cleans up after it."""
        proc.signal_each([self.supervisor], signal.SIGKILL)

    def clean_up(self) -> None:
        """End what a killed supervisor left. The fork server does the same, unless it was killed as well."""

        def find() -> list[int]:
            lives = proc.is_alive(self.bash, self._bash_start)
            return [self.bash, *proc.tree(self.bash)] if lives else []

        proc.stop_and_kill(find, lambda: None, seconds=2)
        self.close()

    def close(self) -> None:
        """Leave. The supervisor ends everything that runs, and this waits until it has."""
        try:
            self._socket.shutdown(socket.SHUT_WR)
            self._socket.settimeout(END_SECONDS)
            while self._drop_packet():
                pass
        except OSError:
            pass  # it was gone already
        self.close_inherited()

    def close_inherited(self) -> None:
        """Close our ends without notifying the other."""
        self._socket.close()
        for fd in (self.go, self.done, self.out):
            if fd >= 0:
                os.close(fd)
        self.go = self.done = self.out = -1

    def request(self, passed: list[int], spec: Packet, state: bytes | None) -> None:
        theirs, page = passed
        files = [wire.memory_file("spec", json.dumps(spec).encode())]
        if state is not None:
            files.append(wire.memory_file("state", state))
        try:
            confinement = spec.get("confinement") or {}
            packet = {"shell": self._shell, "contained": confinement.get("contained")}
            self._ask_fork_server(packet, [theirs, files[0], self.out, page, *files[1:]])
        except OSError:
            raise Lost("the fork server is gone") from None
        finally:
            for fd in files:
                os.close(fd)

    def renewed(self, page: int) -> Connection:
        """A connection to another bash of the same supervisor, which knows nothing of what ran before. This one is closed."""
        made = Connection(self._socket.dup(), output_pipe(), self._shell, self._ask_fork_server)
        try:
            self.close_inherited()
            wire.send(made._socket, {"op": "renew"}, [made.out, page])
            made.wait_until_ready()
        except BaseException:
            made.close()
            raise
        return made

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
            self.control_poll.poll(left * 1000)
            self.receive()

    def _on_packet(self, packet: Packet, fds: list[int]) -> None:
        op = packet["op"]
        if self.go < 0 and op != "fatal" and (op != "started" or packet["ended"] is not None):
            return  # about the bash of an earlier connection
        if op == "started":
            self._on_started(packet, fds)
        elif op == "saved":
            self.on_saved(wire.read_whole(fds[0]))
        elif op == "plain":
            self.plain_at = packet["number"]
        elif op == "ready":
            self._is_ready = True
        elif op == "fatal":
            raise Fatal(packet["reason"])

    def _on_started(self, packet: Packet, fds: list[int]) -> None:
        """Takes the first two descriptors, its ends of GO and DONE."""
        go, done = fds[:2]
        del fds[:2]
        ended = packet["ended"]
        if ended is None:
            self.began_with = packet["state"]
        else:
            is_unread = self.is_word_unread()
            self.restarts.append(
                BashRestart(**ended, state=packet["state"], saved=packet["saved"], is_unread=is_unread)
            )
        if self.go >= 0:
            for poll in (self.poll, self.control_poll):
                poll.unregister(self.done)
            os.close(self.go)
            os.close(self.done)
        self.go, self.done, self._bash_start = go, done, packet["bash_start"]
        inside = packet["pid_namespace"]
        self.supervisor = packet.pop("sender", 0) or proc.pid_here(
            packet["supervisor"], packet["supervisor_start"], inside
        )
        self.bash = proc.pid_here(packet["bash"], self._bash_start, inside, parent=self.supervisor)
        os.set_blocking(done, False)
        for poll in (self.poll, self.control_poll):
            poll.register(done, select.POLLIN)
        self.cwd = packet["cwd"]
        self.text_path = f"/proc/{self.supervisor}/fd/{packet['text']}"
        # bash opens it, for which the supervisor has the number that it has there.
        self.stdin_path = f"/proc/{packet['supervisor']}/fd/{packet['stdin']}"
        self.stderr_path = f"/proc/{packet['supervisor']}/fd/{packet['stderr']}"
        self._stderr_here = f"/proc/{self.supervisor}/fd/{packet['stderr']}"
        self.started = packet

    def _children(self) -> bytes:
        """The ids of the supervisor's children."""
        try:
            fd = os.open(f"/proc/{self.supervisor}/task/{self.supervisor}/children", os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:  # a kernel that was built without it, or the supervisor has just ended
            return _UNKNOWN
        try:
            return os.read(fd, _MAX_CHILDREN_BYTES)
        finally:
            os.close(fd)


def _answer_to(send: Callable[[int], None], who: str) -> Packet:
    mine, theirs = wire.packet_pair()
    with mine:
        try:
            with theirs:
                send(theirs.fileno())
            mine.settimeout(ANSWER_SECONDS)
            answer, _ = wire.receive(mine)
        except OSError:
            answer = None
    if answer is None:
        raise Lost(f"{who} does not answer")
    return answer


def output_pipe() -> int:
    """The reading end, non-blocking. The writing end is opened by path: by bash, and by us while a command runs."""
    read, write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    os.fchmod(read, wire.PIPE_MODE)
    os.close(write)
    return read
