"""Run the server: one per store, on this machine only unless configured otherwise, and without traces when it ends."""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import secrets
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ..base.runtime_id import has_exited, pid_of, runtime_id
from ..config.paths import state_dir
from ..errors import ConfigError, HandrailError
from .access_control import LOOPBACK, Guard, allowed_hosts
from .address import Address, listening

if TYPE_CHECKING:
    import uvicorn

    from .shared_state import Served


TOKEN_VARIABLE = "HANDRAIL_SERVE_TOKEN"
_LOCK, _WHO = "serve.lock", "serve.who"
_GRACE_SECONDS = 5


class ServerRunning(HandrailError):
    """Another server uses the same store."""


@contextlib.contextmanager
def as_the_server(wanted: Address) -> Iterator[tuple[socket.socket, Address]]:
    """Become the only server of this store. Yields the listening socket and its address.

    The system releases the lock when the process ends, in whatever way. Raises ServerRunning, and ConfigError for an address
    that is taken.
    """
    import filelock

    folder = state_dir()
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    lock = filelock.FileLock(folder / _LOCK)
    try:
        lock.acquire(timeout=0)
    except filelock.Timeout:
        known = running_server()
        where = f" at {known['url']} (process {known['pid']})" if known else ""
        raise ServerRunning(
            f"a server is already running{where}; stop that one first, or set HANDRAIL_HOME for another"
        ) from None
    try:
        with listening(wanted) as (listener, address):
            (folder / _WHO).write_text(json.dumps({"owner": runtime_id(), "url": address.url}))
            yield listener, address
    finally:
        (folder / _WHO).unlink(missing_ok=True)
        lock.release()


def running_server() -> dict[str, Any] | None:
    """The address and process of this store's server; None if there is none."""
    try:
        known = json.loads((state_dir() / _WHO).read_text())
        return None if has_exited(known["owner"]) else {"url": known["url"], "pid": pid_of(known["owner"])}
    except (OSError, ValueError, KeyError, TypeError, IndexError):
        return None


def check_bind(address: Address, *, has_token: bool) -> None:
    """Raises ConfigError for an address that other machines can reach, if there is no token."""
    if address.host in LOOPBACK or has_token:
        return
    raise ConfigError(
        f"{address.host} can be reached from other machines, and there is no token yet; make one with "
        "`handrail serve token new NAME --role operate`, or set HANDRAIL_SERVE_TOKEN"
    )


def first_link(served: Served, address: Address) -> str:
    """A login link for the user who started the server."""
    return f"{address.url}/login?code={served.keys.new_link(served.keys.operator)}"


def server(served: Served, address: Address, *, hosts: tuple[str, ...] = ()) -> uvicorn.Server:
    import uvicorn

    from .app import build
    from .connection_limits import BacklogServer, max_connections, protocol

    guard = Guard(served.keys, allowed_hosts(address.host, address.port, hosts))
    limit = max_connections()
    config = uvicorn.Config(
        build(served, guard),
        host=address.host,
        port=address.port,
        http=protocol(limit),
        backlog=max(8, limit // 8),  # asyncio accepts up to this many at once, several times before others are closed
        ws="none",
        log_level="warning",
        access_log=False,
        server_header=False,
        # With extra host names we are behind a proxy, whose headers name the client. Others could forge them.
        proxy_headers=bool(hosts),
        timeout_graceful_shutdown=_GRACE_SECONDS,
        h11_max_incomplete_event_size=64 * 1024,
    )
    return BacklogServer(config)


def keep_serving(
    running: uvicorn.Server, served: Served, listener: socket.socket, *, token: str, with_jobs: bool
) -> None:
    """Serve until stopped. SIGHUP restarts with the current configuration."""
    restart = False

    def reload(*_: object) -> None:
        nonlocal restart
        restart = running.should_exit = True

    signal.signal(signal.SIGHUP, reload)
    # uvicorn ends gracefully and then raises the signal again, which must not interrupt our clean-up.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    with scheduler() if with_jobs else contextlib.nullcontext():
        running.run([listener])
    if restart:
        served.app.close()
        os.environ.update({TOKEN_VARIABLE: token} if token else {})
        os.execv(sys.executable, [sys.executable, "-m", "handrail", *sys.argv[1:]])


def token_from_environment(variable: str = TOKEN_VARIABLE) -> str:
    """Remove it from the environment, so that no child process has it or finds it in `/proc`."""
    _wipe_variable(variable)
    token = os.environ.pop(variable, "")
    if token and len(token) < 16:
        raise ConfigError(
            "is too short; give at least 16 characters, such as " + secrets.token_urlsafe(24),
            key=variable,
        )
    return token


def _wipe_variable(name: str) -> None:
    """Overwrite the system's copy of this process's environment. Python's own copy stays."""
    with contextlib.suppress(OSError, AttributeError):
        find = ctypes.CDLL(None).getenv
        find.restype = ctypes.c_void_p
        address = find(name.encode())
        if address:
            ctypes.memset(address, 0, len(os.environb.get(name.encode(), b"")))


_PR_SET_PDEATHSIG = 1
_END_SECONDS = 10


@contextlib.contextmanager
def scheduler() -> Iterator[None]:
    """While this is open, due jobs run; by another scheduler if one is already running."""
    command = [sys.executable, "-m", "handrail", "cron", "run"]
    quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    process = subprocess.Popen(command, preexec_fn=_end_with_parent, **quiet)  # type: ignore[call-overload]
    try:
        yield
    finally:
        process.terminate()
        try:
            process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _end_with_parent() -> None:
    """Also if the server is killed."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
