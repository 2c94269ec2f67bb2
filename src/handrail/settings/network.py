"""The settings of what commands may reach, and of the keys that they use without seeing them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from .options import Section, named, option


class NetworkConfig(Section):
    """Which hosts commands may reach. A host is a name, `*.domain`, an address or a network, each also with a port."""

    contain: Literal["auto", "off", "on"] = option(
        "auto",
        "on: commands on this machine reach the hosts that are allowed here, and ask about each other one. auto: in the profile "
        "contained, where the kernel can hold a connection.",
    )
    allow: tuple[str, ...] = option((), "Hosts that need no asking, such as `*.example.org` or `10.0.0.0/8:8000-8999`.")
    deny: tuple[str, ...] = option((), "Hosts that no command reaches. Cloud metadata addresses are among them.")
    lists: tuple[str, ...] = option((), "Named lists of hosts that need no asking: package-registries, code-hosts.")
    resolve: Mapping[str, str] = named("Fixed addresses of names, as in /etc/hosts.")
    ca_file: str = option("", "File with further certificates (PEM) of authorities to trust where a key is put in.")


class SecretConfig(Section):
    """A key that commands use and never see: they get a placeholder, and requests to its hosts get the value."""

    source: str = option(
        "",
        "Where the value is: `keyring:NAME` (of the service handrail), `environment:NAME`, `file:PATH`, or `command:...`, "
        "whose output it is.",
    )
    hosts: tuple[str, ...] = option(
        (), "Hosts that may get the value, by HTTPS: names, or `*.domain`, also with a port."
    )
    how: Literal["bearer", "basic", "header", "query", "cookie", "sigv4"] = option(
        "bearer",
        "The one place of a request in which it is put in: `Authorization: Bearer`, the user or password of a basic login "
        "(git too), any header, the query, a cookie, or the signature of a request to AWS.",
    )
    variable: str = option("", "Environment variable with the placeholder; the secret's name in capitals if empty.")
