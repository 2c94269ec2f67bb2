"""Run the server: one a store, on this machine alone unless it was said otherwise, and gone without a trace when it ends."""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import secrets
import signal
import socket
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ..base.runtime_id import has_exited, pid_of, runtime_id
from ..config.paths import state_dir
from ..errors import ConfigError, HandrailError
from .access_control import LOOPBACK, Guard, allowed_hosts
from .address import Address, listening
from .roles import Role, Who

if TYPE_CHECKING:
    import uvicorn

    from .shared_state import Served

TOKEN_VARIABLE = "HANDRAIL_SERVE_TOKEN"
_LOCK, _WHO = "serve.lock", "serve.who"
_GRACE_SECONDS = 5


class ServerRuns(HandrailError):
    """Another server uses the same store."""


@contextlib.contextmanager
def as_the_server(wanted: Address) -> Iterator[tuple[socket.socket, Address]]:
    """Be the one server of this store: its open door, and where that is.

    The system lets go of the lock when the process ends, in whatever way. Raises ServerRuns, and ConfigError for an address
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
        raise ServerRuns(
            f"a server runs already{where}; stop that one first, or set HANDRAIL_HOME for another"
        ) from None
    try:
        with listening(wanted) as (door, address):
            (folder / _WHO).write_text(json.dumps({"owner": runtime_id(), "url": address.url}))
            yield door, address
    finally:
        (folder / _WHO).unlink(missing_ok=True)
        lock.release()


def running_server() -> dict[str, Any] | None:
    """Where the server of this store is; None when there is none."""
    try:
        known = json.loads((state_dir() / _WHO).read_text())
        return None if has_exited(known["owner"]) else {"url": known["url"], "pid": pid_of(known["owner"])}
    except (OSError, ValueError, KeyError, TypeError, IndexError):
        return None


def check_bind(address: Address, *, has_token: bool) -> None:
    """Raises ConfigError for an address that others reach, when nothing would hold them off."""
    if address.host in LOOPBACK or has_token:
        return
    raise ConfigError(
        f"{address.host} can be reached from other machines, and there is no token yet; make one with "
        "`handrail serve token new NAME --role operate`, or set HANDRAIL_SERVE_TOKEN"
    )


def first_link(served: Served, address: Address) -> str:
    """A link that lets the person who started the server in."""
    return f"{address.url}/login?code={served.keys.new_link(Who('operator', Role.OPERATE))}"


def server(served: Served, address: Address, *, hosts: tuple[str, ...] = ()) -> uvicorn.Server:
    import uvicorn

    from .app import build
    from .connection_limits import PatientServer, most_connections, protocol

    guard = Guard(served.keys, allowed_hosts(address.host, address.port, hosts))
    most = most_connections()
    config = uvicorn.Config(
        build(served, guard),
        host=address.host,
        port=address.port,
        http=protocol(most),
        backlog=max(8, most // 8),  # asyncio lets in so many at once, some times over before others are out
        ws="none",
        log_level="warning",
        access_log=False,
        server_header=False,
        # Who is called by another name stands behind a proxy, which says for whom it asks. Others could say anything.
        proxy_headers=bool(hosts),
        timeout_graceful_shutdown=_GRACE_SECONDS,
        h11_max_incomplete_event_size=64 * 1024,
    )
    return PatientServer(config)


def keep_serving(running: uvicorn.Server, served: Served, door: socket.socket, *, token: str, with_jobs: bool) -> None:
    """Until somebody ends it. SIGHUP begins anew with the configuration as it is then."""
    from .scheduler_process import scheduler

    again = False

    def reload(*_: object) -> None:
        nonlocal again
        again = running.should_exit = True

    signal.signal(signal.SIGHUP, reload)
    # uvicorn ends gracefully and then raises the signal again, which must not cut our own goodbyes short.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    with scheduler() if with_jobs else contextlib.nullcontext():
        running.run([door])
    if again:
        served.app.close()
        os.environ.update({TOKEN_VARIABLE: token} if token else {})
        os.execv(sys.executable, [sys.executable, "-m", "handrail", *sys.argv[1:]])


def token_from_environment(variable: str = TOKEN_VARIABLE) -> str:
    """Taken out of the environment, so that nothing that is started from here has it, nor finds it in `/proc`."""
    _wipe_variable(variable)
    token = os.environ.pop(variable, "")
    if token and len(token) < 16:
        raise ConfigError(
            "is too short; give at least 16 characters, such as " + secrets.token_urlsafe(24),
            key=variable,
        )
    return token


def _wipe_variable(name: str) -> None:
    """Where the system keeps what this process was started with. Python's own copy stays."""
    with contextlib.suppress(OSError, AttributeError):
        find = ctypes.CDLL(None).getenv
        find.restype = ctypes.c_void_p
        place = find(name.encode())
        if place:
            ctypes.memset(place, 0, len(os.environb.get(name.encode(), b"")))
