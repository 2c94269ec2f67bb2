"""Where a server listens: parsed from text, and opened before it is announced."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator
from typing import NamedTuple

from ..errors import ConfigError


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
        raise ConfigError(
            f"cannot listen at {address.host}:{address.port}: {error.strerror or error}; choose another with --http"
        ) from None
    with made:
        # Connections inherit it. asyncio sets it only on sockets with an explicit protocol, and without it every answer would
        # wait 40 ms for an acknowledgement.
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        yield made, address._replace(port=made.getsockname()[1])
