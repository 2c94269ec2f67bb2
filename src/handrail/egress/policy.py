"""Decide about a host: allowed, denied, or to be asked about."""

import json
from collections.abc import Sequence
from enum import Enum
from functools import cache
from importlib.resources import files
from typing import NamedTuple, cast

from ..errors import ConfigError
from ..net.url_guard import HostPattern, literal_address, parse_hosts, plain_host, with_port
from ..settings.services import NetworkConfig

METADATA = "cloud-metadata"


class Verdict(Enum):
    """What is to be done with a connection."""

    ALLOW = "allow"
    DENY = "deny"
    ASK = "ask"


class HostRuling(NamedTuple):
    """`listed` is the shipped list that has the host, which the user could turn on."""

    verdict: Verdict
    why: str = ""
    listed: str = ""


_ALLOWED = HostRuling(Verdict.ALLOW)


class HostPolicy:
    """The configured one; hosts of keys are allowed too. Unless it `asks`, hosts that are not listed are allowed."""

    def __init__(self, config: NetworkConfig, of_keys: Sequence[HostPattern] = (), *, asks: bool) -> None:
        self._asks = asks
        self._allow = (*parse_hosts(config.allow, "network.allow"), *of_keys)
        self._deny = parse_hosts(config.deny, "network.deny")
        self._metadata = shipped(METADATA)
        self.lists = {name: shipped(name) for name in host_lists() if name != METADATA}
        self._enabled = [pattern for name in config.lists for pattern in shipped(name)]
        self._fixed = {plain_host(name) for name in config.resolve}

    def decide(self, host: str, port: int) -> HostRuling:
        """For a name or an address, as it was asked for, before it is looked up."""
        where = with_port(host, port)
        if denied := _first(self._deny, host, port):
            return HostRuling(Verdict.DENY, f"network.deny has {denied.text!r}, so nothing connects to {where}")
        if _first(self._allow, host, port):
            return _ALLOWED
        if _first(self._metadata, host, port):
            why = "gives out the credentials of the machine (cloud metadata); network.allow can name it"
            return HostRuling(Verdict.DENY, f"{where} {why}")
        if not self._asks or _first(self._enabled, host, port):
            return _ALLOWED
        listed = next((name for name, hosts in self.lists.items() if _first(hosts, host, port)), "")
        literal = literal_address(host)
        if literal is not None and literal.is_loopback:
            return HostRuling(Verdict.ASK, f"connects to {where}, a service of this machine itself")
        what = "an address without a name" if literal is not None else "not among your allowed hosts"
        return HostRuling(Verdict.ASK, f"connects to {where}, which is {what}", listed)

    def decide_address(self, host: str, port: int, address: str) -> HostRuling:
        """For an address of a name that is allowed: a name must not lead to what is denied, nor to this machine itself."""
        found = self.decide(address, port)
        literal = literal_address(address)
        is_inner = literal is not None and (literal.is_loopback or literal.is_link_local or literal.is_unspecified)
        if found.verdict is Verdict.DENY:
            return HostRuling(Verdict.DENY, f"{host} leads to {address}: {found.why}")
        if found.verdict is Verdict.ASK and is_inner and host not in self._fixed:
            return HostRuling(Verdict.ASK, f"{found.why}, by the name {host}")
        return _ALLOWED


def _first(patterns: Sequence[HostPattern], host: str, port: int) -> HostPattern | None:
    return next((pattern for pattern in patterns if pattern.matches(host, port)), None)


@cache
def shipped(name: str) -> tuple[HostPattern, ...]:
    """A list of hosts that comes with Handrail. Raises ConfigError for an unknown name."""
    lists = host_lists()
    if name not in lists:
        known = ", ".join(each for each in lists if each != METADATA)
        raise ConfigError(f"there is no list {name!r} of hosts; known: {known}", key="network.lists")
    return parse_hosts(lists[name], "network.lists")


@cache
def host_lists() -> dict[str, list[str]]:
    return cast("dict[str, list[str]]", json.loads((files(__package__) / "host_lists.json").read_text()))
