"""Look after the script: a process of its own, so that what the script printed is not lost however it ends.

It speaks with the runtime in frames (see `FRAME`), over a Unix socket where that can be reached, and else over its own
standard input and output:

    O  output of the script             R  the answer to a call, by the number of its line
    C  a call, by the number of its line
    S  so many bytes of output were left out
    X  how the script ended

A thread of the script, or a process that it forked, gets a line of its own for its calls by sending one end of a socket pair.
"""

from __future__ import annotations

import _socket as socket  # the same without the modules around it, which take longer to load than a short script runs
import os
import select
import struct

from .script import INT, LENGTH, become_script

TYPE_CHECKING = False  # importing `typing` takes long too
if TYPE_CHECKING:
    from collections.abc import Callable

    from .script import Packet

FRAME = struct.Struct(">cII")  # kind, number, bytes that follow
_PIECE_BYTES = 1 << 16
_TAIL_BYTES = 1 << 16
_POLL_MILLISECONDS = 20
_LOGGED_BYTES = 8 << 20


def main(hello: Packet) -> None:
    host = Host(hello)
    control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    output, script_output = os.pipe()
    script = os.fork()
    if script == 0:
        host.let_go()
        control.close()
        os.close(output)
        become_script(hello, theirs, script_output)
        return
    theirs.close()
    os.close(script_output)
    os.set_blocking(output, False)
    os._exit(Supervisor(host, control, output, hello).supervise(script))


class Host:
    """The way to the runtime. Its first bytes are the token, by which the runtime knows who speaks."""

    def __init__(self, hello: Packet) -> None:
        self._in, self._out = os.dup(0), os.dup(1)
        self._socket: socket.socket | None = None
        null = os.open(os.devnull, os.O_RDWR)
        for fd in (0, 1, 2):
            os.dup2(null, fd)
        os.close(null)
        if hello["socket"]:
            line = socket.socket(socket.AF_UNIX)
            try:
                line.connect(hello["socket"])
            except OSError:  # in a container or a sandbox that path is nothing
                line.close()
            else:
                self._socket = line
                os.close(self._in)
                os.close(self._out)
                self._in = self._out = line.fileno()
        self._buffer = b""
        self.send(hello["token"].encode())

    @property
    def has_socket(self) -> bool:
        return self._socket is not None

    def fileno(self) -> int:
        return self._in

    def send(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            view = view[os.write(self._out, view) :]

    def frames(self) -> list[tuple[bytes, int, bytes]]:
        """Those that have come whole. Raises EOFError when the runtime has gone."""
        data = os.read(self._in, 1 << 20)
        if not data:
            raise EOFError
        self._buffer += data
        found = []
        while len(self._buffer) >= FRAME.size:
            kind, number, length = FRAME.unpack_from(self._buffer)
            if len(self._buffer) < FRAME.size + length:
                break
            found.append((kind, number, self._buffer[FRAME.size : FRAME.size + length]))
            self._buffer = self._buffer[FRAME.size + length :]
        return found

    def let_go(self) -> None:
        if self._socket is not None:
            self._socket.close()
        else:
            os.close(self._in)
            os.close(self._out)


class Supervisor:
    """Carries the script's output and calls to the runtime, and the answers back, until the script has ended."""

    def __init__(self, host: Host, control: socket.socket, output: int, hello: Packet) -> None:
        self._host, self._control, self._output = host, control, output
        self._most_output, self._most_call = hello["max_output_bytes"], hello["max_call_bytes"]
        if not host.has_socket:  # a log forgets what nobody has read in time
            self._most_output = min(self._most_output, _LOGGED_BYTES)
        self._sent = self._left_out = self._lines = 0
        self._tail = b""
        self._waiting: dict[int, Callable[[], object]] = {}
        self._line_of: dict[int, Line] = {}
        self._poll = select.poll()
        self._watch(host.fileno(), self._on_host)
        self._watch(control.fileno(), self._on_control)
        self._watch(output, self._on_output)

    def supervise(self, script: int) -> int:
        pause = None if self._watch_process(script) else _POLL_MILLISECONDS
        while True:
            ended, status = os.waitpid(script, os.WNOHANG)
            if ended:
                return self._end(status)
            for fd, _ in self._poll.poll(pause):
                if (handle := self._waiting.get(fd)) is not None:
                    handle()

    def _watch_process(self, script: int) -> bool:
        """Whether its end wakes us: Python 3.8 and old kernels know no way."""
        try:
            self._watch(os.pidfd_open(script), lambda: None)
        except (AttributeError, OSError):
            return False
        return True

    def _watch(self, fd: int, handle: Callable[[], object]) -> None:
        self._waiting[fd] = handle
        self._poll.register(fd, select.POLLIN)

    def _unwatch(self, fd: int) -> None:
        self._poll.unregister(fd)
        del self._waiting[fd]

    def _send(self, kind: bytes, number: int, data: bytes) -> None:
        self._host.send(FRAME.pack(kind, number, len(data)) + data)

    def _on_output(self) -> bool:
        """Whether there was some."""
        try:
            data = os.read(self._output, _PIECE_BYTES)
        except BlockingIOError:
            return False
        if not data:  # the script closed it
            self._unwatch(self._output)
            return False
        if self._sent < self._most_output:
            self._sent += len(data)
            self._send(b"O", 0, data)
        else:
            self._left_out += len(data)
            self._tail = (self._tail + data)[-_TAIL_BYTES:]
        return True

    def _on_control(self) -> None:
        """Somebody wants a line."""
        room = socket.CMSG_SPACE(INT.size)
        message, ancillary, _, _ = self._control.recvmsg(1, room)
        if not message:
            self._unwatch(self._control.fileno())
        for level, kind, content in ancillary:
            if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                (fd,) = INT.unpack(content[: INT.size])
                self._lines += 1
                line = self._line_of[self._lines] = Line(socket.socket(fileno=fd), self._lines, self._most_call)
                self._watch(fd, lambda line=line: self._on_line(line))  # type: ignore[misc]

    def _on_line(self, line: Line) -> None:
        if (calls := line.calls()) is None:
            self._unwatch(line.fileno())
            del self._line_of[line.number]
            line.close()
            return
        for call in calls:
            self._send(b"C", line.number, call)

    def _on_host(self) -> None:
        try:
            frames = self._host.frames()
        except (EOFError, OSError):
            os._exit(1)  # the runtime is gone, and whoever minds this process ends the script
        for kind, number, data in frames:
            line = self._line_of.get(number)
            if kind == b"R" and line is not None:
                line.answer(data)

    def _end(self, status: int) -> int:
        while self._output in self._waiting and self._on_output():
            pass
        if self._left_out:
            self._send(b"S", 0, b"%d" % (self._left_out - len(self._tail)))
            self._send(b"O", 0, self._tail)
        code = 128 + os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)
        self._send(b"X", 0, b"%d" % code)
        return code


class Line:
    """One thread's way to call tools, seen from the process that looks after the script."""

    def __init__(self, end: socket.socket, number: int, most_bytes: int) -> None:
        self._end, self.number, self._most = end, number, most_bytes
        self._buffer = b""

    def fileno(self) -> int:
        return self._end.fileno()

    def close(self) -> None:
        self._end.close()

    def calls(self) -> list[bytes] | None:
        """Those that have come whole; None when the line has ended, or made no sense."""
        try:
            data = self._end.recv(_PIECE_BYTES)
        except OSError:
            return None
        self._buffer += data
        calls = []
        while data and len(self._buffer) >= LENGTH.size:
            (length,) = LENGTH.unpack_from(self._buffer)
            if length > self._most:
                return None
            if len(self._buffer) < LENGTH.size + length:
                break
            calls.append(self._buffer[LENGTH.size : LENGTH.size + length])
            self._buffer = self._buffer[LENGTH.size + length :]
        return calls if data else None

    def answer(self, data: bytes) -> None:
        try:  # noqa: SIM105  loading `contextlib` takes long
            self._end.sendall(LENGTH.pack(len(data)) + data)
        except OSError:
            pass  # nobody waits for it any more
