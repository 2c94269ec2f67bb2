"""Hosts as the user writes them: a name, `*.domain`, an address or a network, each at any port, one port or a range."""

from __future__ import annotations

import ipaddress
import json
import re
from collections.abc import Iterable
from functools import cache
from importlib.resources import files
from typing import NamedTuple

from ..errors import ConfigError
from ..net.url_guard import Address, Network, embedded_ipv4, literal_address

_NAME = re.compile(
    r"(?=.{1,253}\Z)[a-z0-9_](?:[a-z0-9_-]{0,62}[a-z0-9_])?(?:\.[a-z0-9_](?:[a-z0-9_-]{0,62}[a-z0-9_])?)*"
)
_PORTS = re.compile(r"(?P<host>\[[^\]]*\](?:/\d+)?|[^:]*):(?P<low>\d+)(?:-(?P<high>\d+))?")
METADATA = "cloud-metadata"


class HostPattern(NamedTuple):
    """`name` is a name or starts with `*.`; or there is a `network`. `low` and `high` are the ports."""

    text: str
    name: str = ""
    network: Network | None = None
    low: int = 0
    high: int = 65_535

    def matches(self, host: str, port: int) -> bool:
        """`host` as `plain_host` gives it; port 0 is any."""
        if port and not self.low <= port <= self.high:
            return False
        address = literal_address(host)
        if address is not None:
            return self.covers(address)
        return host.endswith(self.name[1:]) if self.name.startswith("*") else host == self.name

    def covers(self, address: Address) -> bool:
        return self.network is not None and any(
            one in self.network for one in {address, embedded_ipv4(address) or address}
        )


def plain_host(text: str) -> str:
    """The one spelling of a host: a name in lower case without the last dot, or an address. Raises ValueError."""
    host = text.strip("[]").partition("%")[0].rstrip(".").lower()
    address = literal_address(host) if host else None
    if address is not None:
        if address.is_unspecified:  # the kernel takes it for loopback
            return "127.0.0.1" if address.version == 4 else "::1"
        inner = embedded_ipv4(address) if int(address) > 1 else None  # `::1` embeds nothing
        return str(inner or address)
    if not host.isascii():
        host = host.encode("idna").decode()
    if not _NAME.fullmatch(host):
        raise ValueError(f"{text[:100]!r} is not the name of a host")
    return host


def parse_hosts(texts: Iterable[str], key: str) -> tuple[HostPattern, ...]:
    """Raises ConfigError for the first that is no host; `key` is where they were written."""
    return tuple(_parsed(text, key) for text in texts)


def shipped(name: str) -> tuple[HostPattern, ...]:
    """A list of hosts that comes with Handrail. Raises ConfigError for an unknown name."""
    lists = host_lists()
    if name not in lists:
        known = ", ".join(each for each in lists if each != METADATA)
        raise ConfigError(f"there is no list {name!r} of hosts; known: {known}", key="network.lists")
    return parse_hosts(lists[name], "network.lists")


@cache
def host_lists() -> dict[str, list[str]]:
    found: dict[str, list[str]] = json.loads((files(__package__) / "host_lists.json").read_text())
    return found


def with_port(host: str, port: int) -> str:
    if not port:
        return host
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _parsed(text: str, key: str) -> HostPattern:
    found = _PORTS.fullmatch(text.strip())
    host, low, high = text.strip(), 0, 65_535
    if found is not None:
        host, low = found["host"], int(found["low"])
        high = int(found["high"] or low)
    try:
        return HostPattern(
            text, "", ipaddress.ip_network(host.replace("[", "").replace("]", ""), strict=False), low, high
        )
    except ValueError:
        pass
    try:
        start = "*." if host.startswith("*.") else ""
        name = plain_host(host.removeprefix("*."))
        address = literal_address(name)
        if low <= high <= 65_535 and not (start and address):
            return HostPattern(
                text, start + name, None if address is None else ipaddress.ip_network(address), low, high
            )
    except (ValueError, UnicodeError):
        pass
    raise ConfigError(
        f"{text!r} is not a host; write a name, *.domain, an address or a network, each with or without :port", key=key
    )
