"""Which addresses the web tools and the browser may reach: public ones, and others that the user allows. A name is resolved
once, and the connection goes to an address that was checked: a redirect or a changed DNS record cannot lead elsewhere. Hosts
that the user writes down, here and for commands, are a name, `*.domain`, an address or a network, each at any port, one port or
a range."""

import asyncio
import contextlib
import ipaddress
import re
import socket
from collections.abc import Awaitable, Callable, Iterable
from typing import NamedTuple
from urllib.parse import urlsplit

from ..errors import ConfigError, Denied, InvalidArguments, ToolFailed

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network
LookUp = Callable[[str, int], Awaitable[list[str]]]
_PORTS = {"http": 80, "https": 443}
_MAX_URL = 8_000
_NAME = re.compile(
    r"(?=.{1,253}\Z)[a-z0-9_](?:[a-z0-9_-]{0,62}[a-z0-9_])?(?:\.[a-z0-9_](?:[a-z0-9_-]{0,62}[a-z0-9_])?)*"
)
_WITH_PORTS = re.compile(r"(?P<host>\[[^\]]*\](?:/\d+)?|[^:]*):(?P<low>\d+)(?:-(?P<high>\d+))?")
# Public by number, but they belong to the machine's own cloud or are reserved.
_NOT_PUBLIC: tuple[Network, ...] = tuple(
    ipaddress.ip_network(text)
    for text in ("168.63.129.16/32", "192.0.0.0/24", "192.88.99.0/24", "64:ff9b:1::/48", "fec0::/10", "100::/64")
)
# IPv6 networks that embed an IPv4 address, and its distance from the right in bits.
_EMBEDDING: tuple[tuple[ipaddress.IPv6Network, int], ...] = (
    (ipaddress.IPv6Network("::/96"), 0),
    (ipaddress.IPv6Network("::ffff:0:0/96"), 0),
    (ipaddress.IPv6Network("::ffff:0:0:0/96"), 0),
    (ipaddress.IPv6Network("64:ff9b::/96"), 0),
    (ipaddress.IPv6Network("2002::/16"), 80),
)


class Target(NamedTuple):
    """Where a request goes."""

    scheme: str
    host: str
    port: int


class Guard:
    """Judges URLs and addresses. `allow` is what `web.allow_private` lists. `look_up` finds the addresses of a host."""

    def __init__(self, allow: Iterable[str] = (), look_up: LookUp | None = None) -> None:
        self._allowed, self._look_up = parse_hosts(allow, "web.allow_private"), look_up or addresses_of

    def check_url(self, url: str) -> Target:
        """The target of the URL. Raises for what no web tool opens: other schemes, credentials, invalid URLs."""
        target = target_of(url)
        literal = literal_address(target.host)
        if literal is not None:
            self._judge(target.host, target.port, [literal])
        return target

    async def addresses(self, host: str, port: int) -> list[str]:
        """The addresses of the host that may be reached now. Raises Denied when there is none."""
        found = [ipaddress.ip_address(text) for text in await self._look_up(host, port)]
        return [str(one) for one in self._judge(host, port, found)]

    def _judge(self, host: str, port: int, addresses: list[Address]) -> list[Address]:
        good = [one for one in addresses if is_public(one) or self._is_allowed(host, port, one)]
        if good:
            return good
        where = str(addresses[0]) if addresses else "nowhere"
        is_at = "" if where == host else f" is at {where}, which"
        raise Denied(
            f"{host}{is_at} is not a public address, and the web tools do not go there. The user can allow it: "
            f"web.allow_private in config.yaml, with `{where}` or `{with_port(host, port)}`. Do not try another way."
        )

    def _is_allowed(self, host: str, port: int, address: Address) -> bool:
        try:
            name = plain_host(host)
        except ValueError:
            name = ""  # only its address can be allowed
        at_port = [one for one in self._allowed if one.low <= port <= one.high]
        return any(one.covers(address) if one.network is not None else one.matches(name, port) for one in at_port)


async def addresses_of(host: str, port: int) -> list[str]:
    """Raises ToolFailed for a name that is not known."""
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise ToolFailed(f"{host} is not known: {getattr(error, 'strerror', None) or error}") from None
    # A scope (%eth0) names an interface, not an address.
    return list(dict.fromkeys(str(address[0]).partition("%")[0] for *_, address in found))


def target_of(url: str) -> Target:
    if len(url) > _MAX_URL:
        raise InvalidArguments(f"the URL has {len(url)} characters; the limit is {_MAX_URL}")
    if any(ord(character) < 33 or ord(character) == 127 for character in url.strip()) or "\\" in url.partition("?")[0]:
        raise InvalidArguments(f"the URL holds a space, a backslash or a control character: {url[:200]!r}")
    try:
        parts = urlsplit(url.strip())
        port = parts.port
    except ValueError as error:
        raise InvalidArguments(f"that is not a URL: {error}") from None
    if parts.scheme not in _PORTS:
        given = f"{parts.scheme}:" if parts.scheme else repr(url[:100])
        raise InvalidArguments(f"only http and https URLs can be opened, not {given}; write it in full, with https://")
    if "@" in parts.netloc:
        raise InvalidArguments("the URL carries a user name or password; give the address without it")
    host = parts.hostname or ""
    # Characters that the standard forbids or that parsers read differently.
    if not host or any(character in host for character in " \\^|<>\"'`%") or not host.isprintable():
        raise InvalidArguments(f"the URL has no proper host: {url[:200]!r}")
    return Target(parts.scheme, host, port or _PORTS[parts.scheme])


def is_public(address: Address) -> bool:
    inner = embedded_ipv4(address)
    if inner is not None:
        return is_public(inner)
    if any(address in network for network in _NOT_PUBLIC):
        return False
    return address.is_global and not address.is_multicast and not address.is_reserved


def embedded_ipv4(address: Address) -> ipaddress.IPv4Address | None:
    """The IPv4 address that an IPv6 address embeds and leads to."""
    if isinstance(address, ipaddress.IPv4Address):
        return None
    for network, shift in _EMBEDDING:
        if address in network:
            return ipaddress.IPv4Address((int(address) >> shift) & 0xFFFFFFFF)
    return None


def literal_address(host: str) -> Address | None:
    """The address that a host spells, also in old forms: `127.1`, `0x7f000001`, `017700000001`."""
    try:
        return ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        pass
    try:
        return ipaddress.IPv4Address(socket.inet_aton(host.rstrip(".")))
    except (OSError, UnicodeError):
        return None


def without_login(url: str) -> str:
    """The URL to show: what is before the host may be a password."""
    return re.sub(r"//[^/?#]*@", "//…@", url, count=1)


def with_port(host: str, port: int) -> str:
    """As it is written; port 0 is any."""
    if not port:
        return host
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


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
        meant = {address, embedded_ipv4(address) or address}
        return self.network is not None and any(one in self.network for one in meant)


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


def _parsed(text: str, key: str) -> HostPattern:
    found = _WITH_PORTS.fullmatch(text.strip())
    host, low, high = text.strip(), 0, 65_535
    if found is not None:
        host, low = found["host"], int(found["low"])
        high = int(found["high"] or low)
    if low <= high <= 65_535:
        with contextlib.suppress(ValueError):  # also what cannot be encoded
            return HostPattern(text, *_host_of(host), low, high)
    fix = "write a name, *.domain, an address or a network, each with or without :port"
    raise ConfigError(f"{text!r} is not a host; {fix}", key=key)


def _host_of(text: str) -> tuple[str, Network | None]:
    """A name, or a network. Raises ValueError."""
    with contextlib.suppress(ValueError):
        return "", ipaddress.ip_network(text.replace("[", "").replace("]", ""), strict=False)
    start = "*." if text.startswith("*.") else ""
    name = plain_host(text.removeprefix("*."))
    address = literal_address(name)
    if start and address is not None:
        raise ValueError("an address has no part before it")
    return start + name, None if address is None else ipaddress.ip_network(address)
