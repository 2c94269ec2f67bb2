"""Run the server: one per store, on this machine only unless configured otherwise, and without traces when it ends."""

from __future__ import annotations

import contextlib
import ctypes
import json
import logging
import os
import secrets
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ..base.own_process import has_exited, pid_of, runtime_id, self_command
from ..config.paths import config_path, make_private, state_dir
from ..config.store import read_config
from ..errors import ConfigError, HandrailError
from .access_control import LOOPBACK, Guard, allowed_hosts

if TYPE_CHECKING:
    from uvicorn import Server

    from .shared_state import Served

log = logging.getLogger(__name__)
TOKEN_VARIABLE = "HANDRAIL_SERVE_TOKEN"
_LOCK, _WHO = "serve.lock", "serve.who"
_GRACE_SECONDS, _END_SECONDS = 5, 10
_PR_SET_PDEATHSIG = 1
# Where systemd puts the files that `LoadCredential=` names.
_CREDENTIALS = "CREDENTIALS_DIRECTORY"
_MIN_TOKEN_CHARS = 16


class Address(NamedTuple):
    host: str
    port: int

    @property
    def url(self) -> str:
        host = "127.0.0.1" if self.host in ("0.0.0.0", "::") else self.host
        return f"http://[{host}]:{self.port}" if ":" in host else f"http://{host}:{self.port}"


def parse_address(text: str) -> Address:
    """`8765`, `127.0.0.1:8765` or `[::1]:8765`. A port alone means this machine only."""
    host, _, port = text.rpartition(":")
    if not port.isdigit() or int(port) > 65535:
        raise ConfigError(f"{text!r} is not HOST:PORT, such as 127.0.0.1:8765")
    return Address(host.strip("[]") or "127.0.0.1", int(port))


@contextlib.contextmanager
def listening(address: Address) -> Iterator[tuple[socket.socket, Address]]:
    """The listening socket and its address; port 0 means any. Raises ConfigError for an address in use."""
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    try:
        made = socket.create_server((address.host, address.port), family=family)
    except OSError as error:
        why = f"{error.strerror or error}; choose another with --http"
        raise ConfigError(f"cannot listen at {address.host}:{address.port}: {why}") from None
    with made:
        # Connections inherit it. asyncio sets it only on sockets with an explicit protocol, and without it every answer would
        # wait 40 ms for an acknowledgement.
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        yield made, address._replace(port=made.getsockname()[1])


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
    make_private(folder)
    lock = filelock.FileLock(folder / _LOCK)
    try:
        lock.acquire(timeout=0)
    except filelock.Timeout:
        known = running_server()
        where, how = f" at {known['url']} (process {known['pid']})" if known else "", "or set HANDRAIL_HOME for another"
        raise ServerRunning(f"a server is already running{where}; stop that one first, {how}") from None
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
    if address.host not in LOOPBACK and not has_token:
        how = "make one with `handrail serve token new NAME --role operate`, or set HANDRAIL_SERVE_TOKEN"
        raise ConfigError(f"{address.host} can be reached from other machines, and there is no token yet; {how}")


def server(served: Served, address: Address, *, hosts: tuple[str, ...] = ()) -> Server:
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


def keep_serving(make: Callable[[], Server], listener: socket.socket, *, with_jobs: bool) -> None:
    """Serve until stopped. `make` makes the server from the current configuration; SIGHUP calls it again.

    The listening socket stays open meanwhile: who connects waits. A SIGHUP during that is not lost, nor does it end anything.
    """
    reload_wanted = False
    running: Server | None = None

    def reload(*_: object) -> None:
        nonlocal reload_wanted
        try:
            read_config(config_path())
        except ConfigError as error:
            log.warning("the configuration is not loaded again, as it cannot be used: %s", error)
            return
        reload_wanted = True
        if running is not None:
            running.should_exit = True

    signal.signal(signal.SIGHUP, reload)
    # uvicorn ends gracefully and then raises the signal again, which must not interrupt our clean-up.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    while True:
        reload_wanted = False
        running = make()
        with scheduler() if with_jobs else contextlib.nullcontext():
            if not reload_wanted:
                running.run([listener.dup()])  # uvicorn closes what it is given
        if not reload_wanted:
            return


def given_token(variable: str = TOKEN_VARIABLE, *, descriptor: int | None = None) -> str:
    """The token that this start was given: by a file descriptor, as a credential of systemd, or in the environment, out of
    which it is taken, so that no child process has it. Empty if there is none. Raises ConfigError for one that is too short."""
    token = os.environ.pop(variable, "")
    folder = os.environ.get(_CREDENTIALS, "")
    try:
        if descriptor is not None:
            with open(descriptor, encoding="utf-8") as file:
                token, where = file.read().strip(), f"--token-fd {descriptor}"
        elif folder and (credential := Path(folder, variable.lower())).exists():
            token, where = credential.read_text("utf-8").strip(), str(credential)
        else:
            where = variable
    except (OSError, ValueError) as error:
        raise ConfigError(f"the token cannot be read: {error}") from None
    if (token or where != variable) and len(token) < _MIN_TOKEN_CHARS:
        fresh = secrets.token_urlsafe(24)
        raise ConfigError(f"is too short; give at least {_MIN_TOKEN_CHARS} characters, such as {fresh}", key=where)
    return token


@contextlib.contextmanager
def scheduler() -> Iterator[None]:
    """While this is open, due jobs run; by another scheduler if one is already running."""
    quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])  # Python loses a Ctrl-C that comes while it forks
    try:
        process = subprocess.Popen(self_command("cron", "run"), preexec_fn=_end_with_parent, **quiet)  # type: ignore[call-overload]
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
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
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
