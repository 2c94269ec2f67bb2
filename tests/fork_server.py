"""Start Python processes in a twentieth of the time: fork them from one that has imported the package already.

`start("-m", "handrail", "tools", cwd=..., env=...)` is `python -m handrail tools`: a process of its own, with its own
environment, working directory and streams, which ends as any Python does. Only the import of modules is not repeated. What is
about the start of Python itself (its options, its variables, what is imported when) takes `subprocess`. `host` says which
Python is forked, if it is not this one. `command("server.py")` is a command line for others who start a process.
"""

from __future__ import annotations

import array
import atexit
import contextlib
import hashlib
import json
import os
import select
import shlex
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, Any, NamedTuple

ROOT = Path(__file__).parent.parent
# Variables by which Python itself is set up, before any of its code runs: a fork cannot take these into account.
_FOR_PYTHON = ("PYTHON", "LC_", "LANG")
_LANGUAGE = "C.UTF-8"
_MAX_REQUEST_BYTES = 1 << 20
_START_SECONDS = 60.0
_TEMP = Path(tempfile.gettempdir())

Stream = int | IO[Any] | None


class Host(NamedTuple):
    """A Python to fork from, and what it imports beforehand: all of the package if nothing is named. `source` is where that
    lies if it is not installed."""

    python: str = sys.executable
    modules: tuple[str, ...] = ()
    source: str = str(ROOT / "src")


class Process:
    """What `subprocess.Popen` is, for a process that somebody else started."""

    def __init__(
        self,
        arguments: Sequence[str],
        env: Mapping[str, str],
        *,
        cwd: Path,
        stdin: Stream = None,
        stdout: Stream = None,
        stderr: Stream = None,
        start_new_session: bool = False,
        host: Host = Host(),  # noqa: B008  it cannot change
    ) -> None:
        self.args = [host.python, *arguments]
        self.returncode: int | None = None
        self._waiting = threading.Lock()
        request = {
            "arguments": arguments,
            "cwd": str(cwd),
            "env": dict(env),
            "umask": _umask(),
            "new_session": start_new_session,
        }
        with contextlib.ExitStack() as given:
            inputs = self._end_of(stdin, given, reads=True)
            outputs = self._end_of(stdout, given, reads=False)
            errors = outputs if stderr == subprocess.STDOUT else self._end_of(stderr, given, reads=False)
            self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            given.callback(theirs.close)
            self.stdin, self.stdout = inputs[1], outputs[1]
            self.stderr = None if errors is outputs else errors[1]
            _server(host).order(request, [inputs[0], outputs[0], errors[0], theirs.fileno()])
        answer = self._control.recv(16)
        assert answer, "the fork server ended"
        self.pid = int(answer)

    def _end_of(self, stream: Stream, given: contextlib.ExitStack, *, reads: bool) -> tuple[int, IO[bytes] | None]:
        """The descriptor for the process, and our side of it."""
        if stream == subprocess.PIPE:
            read, write = os.pipe()
            theirs, ours = (read, write) if reads else (write, read)
            given.callback(os.close, theirs)
            return theirs, open(ours, "wb" if reads else "rb")
        if stream == subprocess.DEVNULL:
            nothing = os.open(os.devnull, os.O_RDWR)
            given.callback(os.close, nothing)
            return nothing, None
        if stream is None:
            return (0 if reads else 2), None
        return (stream if isinstance(stream, int) else stream.fileno()), None

    def poll(self) -> int | None:
        return self._try_to_wait(0)

    def wait(self, timeout: float | None = None) -> int:
        if self._try_to_wait(timeout) is None:
            assert timeout is not None
            raise subprocess.TimeoutExpired(self.args, timeout)
        assert self.returncode is not None
        return self.returncode

    def _try_to_wait(self, timeout: float | None) -> int | None:
        with self._waiting:
            if self.returncode is None and self._has_news(timeout):
                answer = self._control.recv(16)
                self._control.close()
                assert answer, "the fork server ended"
                self.returncode = int(answer)
        return self.returncode

    def _has_news(self, timeout: float | None) -> bool:
        poll = select.poll()
        poll.register(self._control, select.POLLIN)
        return bool(poll.poll(None if timeout is None else timeout * 1000))

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def communicate(self, data: bytes = b"", timeout: float | None = None) -> tuple[bytes, bytes]:
        end = None if timeout is None else time.monotonic() + timeout
        said = {stream: bytearray() for stream in (self.stdout, self.stderr) if stream}
        rest = memoryview(data)
        if self.stdin and not rest:
            self.stdin.close()
        elif self.stdin:
            os.set_blocking(self.stdin.fileno(), False)
        reading = set(said)
        while reading or (self.stdin and not self.stdin.closed):
            writing = [self.stdin] if self.stdin and not self.stdin.closed else []
            left = None if end is None else max(0.0, end - time.monotonic())
            readable, writable, _ = select.select(list(reading), writing, [], left)
            if not readable and not writable:
                assert timeout is not None
                raise subprocess.TimeoutExpired(self.args, timeout)
            for stream in readable:
                if piece := os.read(stream.fileno(), 1 << 16):
                    said[stream] += piece
                else:
                    reading.discard(stream)
            for stream in writable:
                try:
                    rest = rest[os.write(stream.fileno(), rest[: select.PIPE_BUF]) :]
                except BrokenPipeError:
                    rest = rest[:0]
                if not rest:
                    stream.close()
        self.wait(None if end is None else max(0.0, end - time.monotonic()))
        out, err = (bytes(said[stream]) if stream else b"" for stream in (self.stdout, self.stderr))
        self._close()
        return out, err

    def _close(self) -> None:
        for stream in (self.stdin, self.stdout, self.stderr):
            if stream:
                with contextlib.suppress(BrokenPipeError):
                    stream.close()

    def __enter__(self) -> Process:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close()
        self.wait()

    def __del__(self) -> None:
        # One that a test gave up on must not end the next test by a warning about its socket.
        control = getattr(self, "_control", None)
        if control is not None:
            control.close()


def start(*arguments: str, env: Mapping[str, str], **options: Any) -> Process | subprocess.Popen[bytes]:
    """`python` with these arguments: `-m module`, `-c code` or a file, and what these are given. `options` are Popen's."""
    return start_fresh(*arguments, env=env, **options) if _sets_python_up(env) else Process(arguments, env, **options)


def start_fresh(*arguments: str, **options: Any) -> subprocess.Popen[bytes]:
    """The same, from nothing."""
    return subprocess.Popen([sys.executable, *arguments], **options)


def run(
    *arguments: str, env: Mapping[str, str], stdin: str = "", timeout: float | None = None, **options: Any
) -> subprocess.CompletedProcess[str]:
    """Start it and wait for its end."""
    pipe = subprocess.PIPE
    with start(*arguments, env=env, stdin=pipe, stdout=pipe, stderr=pipe, **options) as process:
        try:
            out, err = process.communicate(stdin.encode(), timeout)
        except BaseException:
            process.kill()
            raise
    assert process.returncode is not None
    return subprocess.CompletedProcess(process.args, process.returncode, out.decode(), err.decode())


def command(*arguments: str, host: Host = Host()) -> list[str]:  # noqa: B008  it cannot change
    """What somebody else is to start for `python` with these arguments."""
    return [sys.executable, "-I", "-S", str(ROOT / "tests" / "forked.py"), _server(host).name, *arguments]


def program(file: Path, *arguments: str, host: Host = Host()) -> Path:  # noqa: B008  it cannot change
    """`file` becomes a program that is `python` with these arguments, and its own."""
    file.write_text(f'#!/bin/sh\nexec {shlex.join(command(*arguments, host=host))} "$@"\n')
    file.chmod(0o755)
    return file


def connect(host: Host) -> None:
    """Start its server if nobody has yet."""
    _server(host)


def _sets_python_up(env: Mapping[str, str]) -> bool:
    chosen = {name for name in env if name.startswith(_FOR_PYTHON)} - {"PYTHONPATH"}
    return any(name != "LANG" or env[name] != _LANGUAGE for name in chosen)


def _umask() -> int:
    os.umask(mask := os.umask(0o077))
    return mask


class _Server:
    """A connection to the process that all are forked from. The workers of a run share it: what it imports takes seconds, and
    hundreds of megabytes. It ends when the last of them has."""

    def __init__(self, host: Host) -> None:
        self._orders = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._orders.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _MAX_REQUEST_BYTES)
        run = os.environ.get("PYTEST_XDIST_TESTRUNUID", str(os.getpid()))
        number = hashlib.sha256(repr((run, host, ROOT)).encode()).hexdigest()[:32]
        # Not an abstract address: what is protected by Landlock cannot reach those.
        self.name = str(_TEMP / f"handrail-tests-{number}")
        end = time.monotonic() + _START_SECONDS
        while not self._is_connected():
            assert time.monotonic() < end, f"the fork server of {self.name} was killed"
            with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as entrance:
                try:
                    entrance.bind(self.name)
                except OSError:
                    time.sleep(0.01)  # somebody else does this now
                else:
                    os.chmod(self.name, 0o777)  # some tests are another user
                    entrance.listen(64)
                    self._start(host, entrance)

    def _is_connected(self) -> bool:
        try:
            self._orders.connect(self.name)
        except (FileNotFoundError, ConnectionRefusedError):
            return False
        return True

    def _start(self, host: Host, entrance: socket.socket) -> None:
        subprocess.run(
            [host.python, "-m", "tests.fork_server", str(entrance.fileno()), *host.modules],
            check=True,
            cwd=ROOT,
            env={"PATH": os.environ["PATH"], "LANG": _LANGUAGE, "PYTHONPATH": host.source},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            pass_fds=[entrance.fileno()],
        )

    def order(self, request: dict[str, Any], descriptors: list[int]) -> None:
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", descriptors))]
        self._orders.sendmsg([json.dumps(request).encode()], rights)

    def close(self) -> None:
        self._orders.close()


_running: dict[Host, _Server] = {}  # for all tests of this process
_starting = threading.Lock()


def _server(host: Host) -> _Server:
    with _starting:
        if host not in _running:
            _running[host] = _Server(host)
            atexit.register(_running[host].close)
    return _running[host]


def _preload(modules: Sequence[str]) -> None:
    import importlib

    if not modules:
        _preload_package()
    for module in modules:
        importlib.import_module(module)
    assert threading.active_count() == 1, "a thread does not survive a fork"


def _preload_package() -> None:
    """Everything that a command could import, and the scan for built-in tools."""
    import importlib
    import pkgutil

    import handrail
    from handrail.core.builtin import builtin_tools

    with tempfile.TemporaryDirectory() as folder:
        os.environ["HANDRAIL_HOME"] = folder
        builtin_tools()
        del os.environ["HANDRAIL_HOME"]
    for module in pkgutil.walk_packages(handrail.__path__, "handrail."):
        # The adapters import frameworks, each of which is installed in an environment of its own.
        if module.name.endswith(".__main__") or module.name.startswith("handrail.adapters."):
            continue
        try:
            importlib.import_module(module.name)
        except ModuleNotFoundError as error:
            if str(error.name).startswith("handrail"):  # anything else is a package of an extra that is not installed
                raise
    for name in ("openai", "mcp", "mcp.server", "uvicorn", "starlette.applications"):
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    tempfile.tempdir = None


def _serve(entrance: socket.socket) -> dict[str, Any]:
    """Fork as told. Returns in each new process, with what it is to be."""
    tellers = {(first := entrance.accept()[0]).fileno(): first}
    children: dict[int, tuple[int, socket.socket]] = {}  # by the descriptor that tells of the end
    tied: dict[int, int] = {}  # the pids of those who end with who ordered them, by the descriptor that tells of that
    while tellers:
        for ready in select.select([entrance.fileno(), *tellers, *children, *tied], [], [])[0]:
            if ready in tied:
                os.kill(tied.pop(ready), signal.SIGKILL)
            elif ready in children:
                pid, control = children.pop(ready)
                os.close(ready)
                tied.pop(control.fileno(), None)
                _tell_end(pid, control)
            elif ready == entrance.fileno():
                new = entrance.accept()[0]
                tellers[new.fileno()] = new
            elif (order := _receive(tellers[ready])) is None:
                tellers.pop(ready).close()
            else:
                request, streams, control = order
                pid = os.fork()
                if pid == 0:
                    ours = [entrance, control, *tellers.values(), *(other for _, other in children.values())]
                    _take(streams, [*map(socket.socket.detach, ours), *children])
                    return request
                for descriptor in streams:
                    os.close(descriptor)
                with contextlib.suppress(OSError):  # who ordered it may be gone
                    control.sendall(str(pid).encode())
                children[os.pidfd_open(pid)] = (pid, control)
                if request.get("is_tied"):
                    tied[control.fileno()] = pid
    os.unlink(entrance.getsockname())
    os._exit(0)  # those who could give orders are gone


def _receive(teller: socket.socket) -> tuple[dict[str, Any], list[int], socket.socket] | None:
    """What is wanted, its streams, and where to tell of its end. None if nothing more will be."""
    line, descriptors, _, _ = socket.recv_fds(teller, _MAX_REQUEST_BYTES, 4)
    return (json.loads(line), descriptors[:3], socket.socket(fileno=descriptors[3])) if line else None


def _take(streams: list[int], others: list[int]) -> None:
    """In a new process: these are its streams, and it has nothing else of its parent's."""
    for number, descriptor in enumerate(streams):
        os.dup2(descriptor, number)
    for descriptor in {*streams, *others} - {0, 1, 2}:
        os.close(descriptor)


def _tell_end(pid: int, control: socket.socket) -> None:
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    with control, contextlib.suppress(OSError):
        control.sendall(str(status).encode())


def _become(request: dict[str, Any]) -> None:
    """What Python does between its start and the first line of a program."""
    if request["new_session"]:
        os.setsid()
    os.umask(request["umask"])
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["env"])
    time.tzset()
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        before = getattr(sys, name)
        mode, buffering = ("w", 1 if number == 2 else -1) if number else ("r", -1)
        stream = open(number, mode, buffering, before.encoding, before.errors, closefd=False)  # noqa: SIM115  open as long as the process
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)
    where = [folder for folder in request["env"].get("PYTHONPATH", "").split(os.pathsep) if folder]
    kind = request["arguments"][0]
    first = {"-m": os.getcwd(), "-c": ""}.get(kind, str(Path(kind).parent))
    sys.path[:1] = [first, *where]
    if any(Path(folder, "sitecustomize.py").exists() for folder in where):
        sys.modules.pop("sitecustomize", None)
        __import__("sitecustomize")


def _run(arguments: list[str]) -> None:
    import runpy

    if arguments[0] == "-m":
        sys.argv = arguments[1:]
        runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
    elif arguments[0] == "-c":
        sys.argv = ["-c", *arguments[2:]]
        sys.modules["__main__"].__dict__.update(__name__="__main__", __file__=None)
        exec(compile(arguments[1], "<string>", "exec"), sys.modules["__main__"].__dict__)
    else:
        sys.argv = arguments
        runpy.run_path(arguments[0], run_name="__main__")


def main() -> None:
    import gc

    if os.fork():
        os._exit(0)  # the other one is nobody's child: tests look at their own
    entrance = socket.socket(fileno=int(sys.argv[1]))
    _preload(sys.argv[2:])
    gc.collect()
    gc.freeze()  # what all share is not copied by a collection in one of them
    request = _serve(entrance)
    code = 1
    try:
        _become(request)
        _run(request["arguments"])
        code = 0
    except SystemExit as ended:
        code = _code_of(ended)
    except BaseException:
        sys.excepthook(*sys.exc_info())
    _end(code)


def _code_of(ended: SystemExit) -> int:
    if ended.code is None or isinstance(ended.code, int):
        return ended.code or 0
    print(ended.code, file=sys.stderr)
    return 1


def _end(code: int) -> None:
    """As Python ends, but for taking its modules apart: that would copy all of the memory that the processes share."""
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    try:
        if not sys.stdout.closed:
            sys.stdout.flush()
    except OSError as error:
        print(f"Exception ignored in: {sys.stdout!r}\nOSError: {error}", file=sys.stderr)
        code = 120  # Python's own for output that it could not write
    with contextlib.suppress(OSError, ValueError):
        sys.stderr.flush()
    os._exit(code & 0xFF)


if __name__ == "__main__":
    main()
