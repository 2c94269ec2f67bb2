"""Carries frames: a two-way byte stream to a Python that was started somewhere. `Transport` starts it with a program on this
machine (`docker exec -i C python3 ...`, `ssh host python3 ...`) and talks through its pipes. stream.py does the same with the
stream of an SDK."""

import json
import os
import select
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from ..shell_host import wire
from ..shell_host.connection import Fatal, Lost
from ..shell_host.wire import Packet
from . import bundle
from .link import SANDBOXES, ForkServerClient, fork_servers

END_SECONDS, _LOCK_SECONDS, _SANDBOX_SECONDS = 10.0, 1.0, 20.0
READ_BYTES, _ERROR_BYTES = 1 << 17, 2000


class Channel(Protocol):
    """Any thread may send or close; one at a time receives. `end` is a deadline by `time.monotonic`."""

    @property
    def where(self) -> str:
        """For messages: "the container c1", "the host build.example"."""

    @property
    def client_timeout(self) -> float:
        """The shell host ends after this many seconds without a frame from here; 0 if it notices by itself that we are gone."""

    @property
    def window(self) -> int:
        """The most bytes that may be in transit to here; 0 if a slow reader slows down the sender."""

    def send(self, data: bytes, end: float) -> None:
        """Send all of it, in one piece. Raises Lost, also if there is no room by `end`."""

    def receive(self, end: float | None) -> bytes:
        """Wait for data, and return it. Raises Lost at the stream's end, and if nothing comes by `end`."""

    def failure(self, noise: bytes) -> Exception:
        """The error to raise if the shell host never started. `noise` is what came instead."""

    def close(self) -> None:
        """End the shell host, and wait until it has ended. Closing twice is allowed."""

    def close_inherited(self) -> None:
        """In a forked child: close what was inherited, without ending what is the parent's."""


class Launcher(Protocol):
    """Starts a Python somewhere."""

    def open(self) -> Channel: ...


class Transport(NamedTuple):
    """Launch through a program on this machine, or in a sandbox. `argv` gets the command to run there, and returns the one to run
    here. `sandbox` is the spec of one, as in shell_host/sandbox_server.py."""

    argv: Callable[[Sequence[str]], Sequence[str]]
    where: str
    python: str = "python3"
    env: dict[str, str] | None = None  # of the program that runs here; None: this process's own
    client_timeout: float = 0.0
    explain: Callable[[int, str], None] | None = None  # raises if it knows what an exit code and an error message mean
    sandbox: Packet | None = None

    def open(self, arguments: Sequence[str] = bundle.PYTHON_ARGUMENTS) -> Channel:
        return PipeChannel(self, arguments)


class PipeChannel:
    """The stdin and stdout of a program that runs on this machine and stands in for the shell host."""

    window = 0

    def __init__(self, transport: Transport, arguments: Sequence[str] = bundle.PYTHON_ARGUMENTS) -> None:
        self.where, self.client_timeout = transport.where, transport.client_timeout
        self._explain = transport.explain
        self._errors = os.memfd_create("errors")
        try:
            self._process = self._start(transport, arguments)
        except BaseException:
            os.close(self._errors)
            raise
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        self._stdin, self._stdout = stdin, stdout
        os.set_blocking(stdin.fileno(), False)
        self._incoming = select.poll()
        self._incoming.register(stdout.fileno(), select.POLLIN)
        # Held while a pipe is used: the number of a descriptor that is closed meanwhile could already be reused.
        self._sending, self._receiving = threading.Lock(), threading.Lock()

    def _start(self, transport: Transport, arguments: Sequence[str]) -> "subprocess.Popen[bytes] | Sandbox":
        if transport.sandbox is not None:
            return Sandbox(transport.sandbox, self._errors)
        try:
            return subprocess.Popen(
                [*transport.argv([transport.python, *arguments])],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._errors,
                env=transport.env,
                bufsize=0,
                start_new_session=True,
            )
        except OSError as error:
            raise Fatal(f"{error.filename} cannot be run here: {error.strerror}; install it") from None

    def send(self, data: bytes, end: float) -> None:
        view = memoryview(data)
        if not self._sending.acquire(timeout=max(0.0, end - time.monotonic())):
            raise Lost(f"{self.where} does not answer")
        try:
            while view:
                try:
                    view = view[os.write(self._stdin.fileno(), view) :]
                except BlockingIOError:
                    # The shell host always reads: one that does not is gone, whatever the connection says.
                    poll = select.poll()
                    poll.register(self._stdin.fileno(), select.POLLOUT)
                    if not poll.poll(max(0.0, end - time.monotonic()) * 1000):
                        raise Lost(f"{self.where} does not answer") from None
        except (OSError, ValueError):  # ValueError: it was closed
            raise Lost(f"the connection to {self.where} is gone") from None
        finally:
            self._sending.release()

    def receive(self, end: float | None) -> bytes:
        with self._receiving:
            if self._stdout.closed:
                raise Lost(f"the connection to {self.where} was closed")
            if not self._incoming.poll(None if end is None else max(0.0, end - time.monotonic()) * 1000):
                raise Lost(f"{self.where} does not answer")
            data = os.read(self._stdout.fileno(), READ_BYTES)
        if not data:
            raise Lost(f"the connection to {self.where} ended")
        return data

    def failure(self, noise: bytes) -> Exception:
        try:
            code = self._process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            return Fatal(f"{self.where} did not answer in time")
        shown = (text[-_ERROR_BYTES:].decode("utf-8", "replace") for text in (wire.read_whole(self._errors), noise))
        message = next(filter(None, map(str.strip, shown)), "")
        if self._explain is not None:
            self._explain(code, message)
        if code == 127 or "executable file not found" in message:
            return Fatal(f"python3 was not found in {self.where}; install Python 3.8 or newer there ({message})")
        return Fatal(f"{self.where} ended with code {code}: {message or 'it printed nothing'}")

    def close(self) -> None:
        if self._sending.acquire(timeout=_LOCK_SECONDS):
            self._stdin.close()
            self._sending.release()
        else:
            self._process.kill()  # which ends the wait of whoever sends
        try:
            self._process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if self._receiving.acquire(timeout=_LOCK_SECONDS):  # the end of the process is the end of its output
            self.close_inherited()
            self._receiving.release()
        if self._errors >= 0:
            os.close(self._errors)
            self._errors = -1

    def close_inherited(self) -> None:
        self._stdin.close()
        self._stdout.close()


class Sandbox:
    """As a subprocess.Popen with its stdin and stdout. `errors` is the descriptor of its stderr."""

    def __init__(self, spec: Packet, errors: int) -> None:
        self._temporary = spec.get("temporary", "")
        (input_, stdin), (stdout, output) = os.pipe(), os.pipe()
        self.stdin, self.stdout = os.fdopen(stdin, "wb", 0), os.fdopen(stdout, "rb", 0)
        try:
            streams = [input_, output, errors]
            self._server, self._process = fork_servers.use(lambda server: _started(server, spec, streams), SANDBOXES)
        except BaseException:
            shutil.rmtree(self._temporary, ignore_errors=True)
            self.stdin.close()
            self.stdout.close()
            raise
        finally:
            os.close(input_)
            os.close(output)

    def wait(self, timeout: float | None = None) -> int:
        """Until it and everything in the sandbox has ended. Its code is not known."""
        if self._process >= 0:
            poll = select.poll()
            poll.register(self._process, select.POLLIN)
            if not poll.poll(None if timeout is None else timeout * 1000):
                raise subprocess.TimeoutExpired("the sandbox", timeout or 0.0)
            os.close(self._process)
            self._process = -1
            shutil.rmtree(self._temporary, ignore_errors=True)
            fork_servers.release(self._server)
        return 0

    def kill(self) -> None:
        if self._process >= 0:
            signal.pidfd_send_signal(self._process, signal.SIGKILL)


def _started(server: ForkServerClient, spec: Packet, streams: list[int]) -> int:
    """Ask for it. Returns the descriptor of the process."""
    mine, theirs = wire.packet_pair()
    file = wire.memory_file("spec", json.dumps(spec).encode())
    try:
        with mine, fork_servers.starting:
            with theirs:
                asked = {name: spec.get(name) for name in ("network", "temporary")}
                server.ask(asked, [theirs.fileno(), *streams, file])
            mine.settimeout(_SANDBOX_SECONDS)
            packet, fds = wire.receive(mine)
    except OSError:
        packet, fds = None, []
    finally:
        os.close(file)
    if packet is None:
        raise Lost("the process that forks sandboxes does not answer")
    if not fds:
        raise Fatal(f"no sandbox can be started: {packet['why']}")
    return fds[0]
