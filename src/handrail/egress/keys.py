"""The keys of one task: placeholders for its commands, and the values in the requests to the hosts that may have them."""

import asyncio
import base64
import binascii
import hashlib
import hmac
import html
import json
import os
import re
import secrets
import subprocess
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote, quote_plus, unquote

from ..config.keys import keyring_value
from ..errors import ConfigError, ToolFailed
from ..net.url_guard import HostPattern, parse_hosts
from ..settings.services import SecretConfig
from .http_messages import BadMessage, Head, Server
from .secret_sources import source_of

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,62}")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_COMMAND_SECONDS = 30
_AUTHORIZATION = re.compile(
    r"AWS4-HMAC-SHA256 Credential=(?P<id>[^/,\s]+)/(?P<scope>[^,\s]+),\s*SignedHeaders=(?P<names>[^,\s]+),\s*"
    r"Signature=(?P<signature>[0-9a-f]{64})"
)


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

    def __init__(self, configured: Mapping[str, SecretConfig], values: "SecretValues") -> None:
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
        """The head with the values of this server's keys, and what to hide in the answer. `body` is needed for a signature
        alone. Raises ToolFailed for a value that cannot be read, and BadMessage."""
        hidden: set[bytes] = set()
        for key in self._keys:
            if not key.is_for(*server[:2]):
                continue
            value = self._values.known.get(key.name, "") or await asyncio.to_thread(self._values.get, key.name)
            if key.how == "sigv4":
                head = signed_again(head, body, key.placeholder, value)
            elif key.how == "query":
                target, question, query = head.first.partition("?")
                query = query.replace(key.placeholder, quote(value, safe=""))
                head = Head(target + question + query, head.fields)
            else:
                head = Head(head.first, [(name, _field(name.lower(), text, key, value)) for name, text in head.fields])
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
    """The value as servers repeat it, also in the middle of a longer text that is encoded as a whole."""
    raw, json_text = value.encode(), json.dumps(value)[1:-1]
    texts = {value, json_text, json_text.replace("/", r"\/"), html.escape(value), raw.hex()}
    texts |= {quote(value, safe=""), quote(value), quote_plus(value)}
    texts |= {re.sub("%..", lambda code: code[0].lower(), text) for text in texts}
    for before in range(3):
        encoded = base64.b64encode(bytes(before) + raw).decode()[-(-8 * before // 6) : 8 * (before + len(raw)) // 6]
        texts |= {encoded, encoded.replace("+", "-").replace("/", "_")}
    return {text.encode() for text in texts}


class SecretValues:
    """By the secret's name. Thread-safe."""

    def __init__(self, secrets: Mapping[str, SecretConfig]) -> None:
        self._secrets, self._lock = secrets, threading.Lock()
        self.known: dict[str, str] = {}  # those that were read so far

    def get(self, name: str) -> str:
        """Raises ToolFailed, with a message that has nothing of the value."""
        with self._lock:
            if name not in self.known:
                value = _read(name, self._secrets[name].source).strip()
                # A shorter one would be found in texts that have nothing to do with it.
                if not re.fullmatch(r"[\x20-\x7e]{8,}", value):
                    what = "must be 8 or more printable ASCII characters" if value else "is empty"
                    raise ToolFailed(f"the secret {name} {what}; tell the user (secrets.{name}.source)")
                self.known[name] = value
            return self.known[name]


def _read(name: str, source: str) -> str:
    kind, place = source_of(name, source)
    if kind == "environment":
        return os.environ.get(place, "")
    if kind == "keyring":
        return keyring_value(place)
    try:
        if kind == "file":
            return Path(place).expanduser().read_text()
        # Its output goes nowhere else, and neither does what it says when it fails.
        words, stdin = ["/bin/sh", "-c", place], subprocess.DEVNULL
        found = subprocess.run(words, stdin=stdin, capture_output=True, timeout=_COMMAND_SECONDS, check=True)
        return found.stdout.decode()
    except (OSError, subprocess.SubprocessError, UnicodeError) as error:
        raise ToolFailed(f"the secret {name} cannot be read from its {kind}: {type(error).__name__}") from None


def signed_again(head: Head, body: bytes | None, placeholder: str, value: str) -> Head:
    """The head with a signature by `value`, if the one that it has is by `placeholder`; else the head as it is. A body whose
    chunks are signed one by one is refused: those signatures would not fit. Raises BadMessage."""
    given = "".join(head.values("authorization"))
    found = _AUTHORIZATION.fullmatch(given)
    if found is None:
        return head
    payload = "".join(head.values("x-amz-content-sha256")) or hashlib.sha256(body or b"").hexdigest()
    for is_encoded_twice in (True, False):  # every service but S3 encodes the path of the URL once more
        text = _text_to_sign(head, found, payload, is_encoded_twice=is_encoded_twice)
        if hmac.compare_digest(_signature(placeholder, found["scope"], text), found["signature"]):
            if payload.startswith("STREAMING-AWS4"):
                raise BadMessage("the chunks of its body are signed one by one, which cannot be signed again")
            new = given.replace(found["signature"], _signature(value, found["scope"], text))
            return Head(head.first, [(n, new if n.lower() == "authorization" else v) for n, v in head.fields])
    return head


def _text_to_sign(head: Head, found: re.Match[str], payload: str, *, is_encoded_twice: bool) -> str:
    method, target, _ = head.first.split(" ")
    path, _, query = target.partition("?")
    if is_encoded_twice:
        path = quote(path, safe="/-_.~")
    pairs = [(name, value) for name, _, value in (part.partition("=") for part in query.split("&") if part)]
    pairs = sorted((quote(unquote(name), safe="-_.~"), quote(unquote(value), safe="-_.~")) for name, value in pairs)
    names = found["names"].split(";")
    fields = "".join(f"{name}:{','.join(' '.join(value.split()) for value in head.values(name))}\n" for name in names)
    sorted_query = "&".join(f"{name}={value}" for name, value in pairs)
    canonical = "\n".join([method, path or "/", sorted_query, fields, found["names"], payload])
    digest = hashlib.sha256(canonical.encode()).hexdigest()
    date = "".join(head.values("x-amz-date"))
    return "\n".join(["AWS4-HMAC-SHA256", date, found["scope"], digest])


def _signature(secret: str, scope: str, text: str) -> str:
    key = f"AWS4{secret}".encode()
    for part in scope.split("/"):
        key = hmac.digest(key, part.encode(), "sha256")
    return hmac.digest(key, text.encode(), "sha256").hex()
