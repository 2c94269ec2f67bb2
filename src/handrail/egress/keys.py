"""The keys of one task: placeholders for its commands, and the values in the requests to the hosts that may have them."""

from __future__ import annotations

import asyncio
import base64
import binascii
import json
import re
import secrets
from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import quote, unquote

from ..errors import ConfigError
from ..settings.services import SecretConfig
from .aws_signature import signed_again
from .hosts import HostPattern, parse_hosts
from .http_messages import BadMessage, Head, Server
from .secret_sources import source_of
from .secret_values import SecretValues

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,62}")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class Key(NamedTuple):
    """A secret as this task knows it."""

    name: str
    placeholder: str
    variables: tuple[str, ...]
    how: str
    hosts: tuple[HostPattern, ...]

    def is_for(self, host: str, port: int) -> bool:
        return any(pattern.matches(host, port) for pattern in self.hosts)


class TaskKeys:
    """Made per task, each with placeholders of its own. Raises ConfigError for a secret that cannot be used."""

    def __init__(self, configured: Mapping[str, SecretConfig], values: SecretValues) -> None:
        self._values = values
        self._keys = [_key(name, each) for name, each in configured.items()]

    @property
    def hosts(self) -> list[HostPattern]:
        return [host for key in self._keys for host in key.hosts]

    def variables(self) -> dict[str, str]:
        """For the commands. The variable that a value comes from has the placeholder too."""
        return {variable: key.placeholder for key in self._keys for variable in key.variables}

    def is_for(self, host: str, port: int) -> bool:
        return any(key.is_for(host, port) for key in self._keys)

    def misplaced(self, data: bytes, server: Server) -> str:
        """The name of a secret whose placeholder is in what goes to a server that may not have it, or not without TLS."""
        found = (key for key in self._keys if key.placeholder.encode() in data)
        return next((key.name for key in found if not (server.is_tls and key.is_for(*server[:2]))), "")

    def misplaced_in(self, head: Head, server: Server) -> str:
        """The same for a head, in which it can be encoded."""
        texts = [head.encode().decode("latin-1"), unquote(head.first), *map(_login, head.values("authorization"))]
        return self.misplaced("\n".join(texts).encode(), server)

    async def put_in(self, head: Head, body: bytes | None, server: Server) -> tuple[Head, tuple[bytes, ...]]:
        """The head with the values of this server's keys, and what to hide in the answer. `body` is needed for a signature alone.

        Raises ToolFailed for a value that cannot be read, and BadMessage.
        """
        hidden: set[bytes] = set()
        for key in self._keys:
            if not key.is_for(*server[:2]):
                continue
            value = await asyncio.to_thread(self._values.get, key.name)
            if key.how == "sigv4":
                head = signed_again(head, body, key.placeholder, value)
            else:
                head = _with_value(head, key, value)
            hidden |= _forms(value)
            # A login is repeated as it was sent: encoded.
            logins = head.values("authorization") if key.how == "basic" else []
            hidden |= {login.rpartition(" ")[2].encode() for login in logins if value in _login(login)}
        return head, tuple(hidden)

    def needs_body(self, head: Head, server: Server) -> bool:
        """Whether the whole body must be known before the head is sent."""
        signs = any(key.how == "sigv4" and key.is_for(*server[:2]) for key in self._keys)
        return signs and not head.values("x-amz-content-sha256")


def check_host(head: Head, host: str) -> None:
    """A request in a connection to one host must be for that host: a shared front end would hand it to another."""
    names = [value.rpartition(":")[0] if re.search(r":\d+$", value) else value for value in head.values("host")]
    target = head.first.split(" ")[1] if head.first.count(" ") == 2 else ""
    if [name.strip("[]").lower().rstrip(".") for name in names] != [host] or not target.startswith(("/", "*")):
        raise BadMessage(f"it is in a connection to {host}, and names another host")


def _key(name: str, config: SecretConfig) -> Key:
    where = f"secrets.{name}"
    if not _NAME.fullmatch(name):
        raise ConfigError("a secret's name has letters, digits, - and _, and starts with a letter", key=where)
    if not config.hosts:
        raise ConfigError("is missing: the hosts that may get the value", key=f"{where}.hosts")
    kind, place = source_of(name, config.source)
    variable = config.variable or name.upper().replace("-", "_")
    if not _VARIABLE.fullmatch(variable):
        raise ConfigError(f"{variable!r} cannot be the name of an environment variable", key=f"{where}.variable")
    variables = (variable, place) if kind == "environment" else (variable,)
    placeholder = f"handrail-{name.lower()}-{secrets.token_hex(16)}"
    return Key(name, placeholder, variables, config.how, parse_hosts(config.hosts, f"{where}.hosts"))


def _with_value(head: Head, key: Key, value: str) -> Head:
    if key.how == "query":
        target, question, query = head.first.partition("?")
        return Head(target + question + query.replace(key.placeholder, quote(value, safe="")), head.fields)
    return Head(head.first, [(name, _field(name.lower(), text, key, value)) for name, text in head.fields])


def _field(name: str, text: str, key: Key, value: str) -> str:
    scheme = text.partition(" ")[0].lower()
    if key.how == "basic" and name == "authorization" and scheme == "basic":
        login = _login(text)
        if key.placeholder in login:
            return f"Basic {base64.b64encode(login.replace(key.placeholder, value).encode()).decode()}"
    is_place = {
        "bearer": name == "authorization" and scheme in ("bearer", "token"),
        "cookie": name == "cookie",
        "header": name not in ("cookie", "host"),
    }
    return text.replace(key.placeholder, value) if is_place.get(key.how) else text


def _login(text: str) -> str:
    """`user:password` of a basic login; empty if it is none."""
    scheme, _, encoded = text.partition(" ")
    if scheme.lower() != "basic":
        return ""
    try:
        return base64.b64decode(encoded.strip(), validate=True).decode("utf-8", "replace")
    except (binascii.Error, ValueError):
        return ""


def _forms(value: str) -> set[bytes]:
    """The value as servers repeat it."""
    texts = [
        value,
        quote(value, safe=""),
        quote(value),
        json.dumps(value)[1:-1],
        base64.b64encode(value.encode()).decode(),
    ]
    return {text.encode() for text in texts}
