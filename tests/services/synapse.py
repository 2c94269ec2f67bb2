"""A Matrix server of the tests' own, with a bot and two people."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import os
import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from .servers import WebServer, ask
from .tenants import Services, Tenant

FOLDER = Path(os.environ.get("HANDRAIL_TEST_SYNAPSE") or Path.home() / ".cache/handrail-tests/synapse")
PYTHON = FOLDER / "py/bin/python"
_SECRET = "the tests' own"
_UNLIMITED = {"per_second": 10_000, "burst_count": 10_000}
USERS = ("bot", "ada", "bob")


@dataclass(frozen=True)
class Matrix:
    """A running server. `call` speaks to it as one of its users, beside what is tested."""

    tenant: Tenant

    @classmethod
    def join(cls, services: Services) -> Matrix:
        return cls(services.join("synapse:Synapse"))

    @property
    def url(self) -> str:
        return str(self.tenant.facts["url"])

    def id_of(self, user: str) -> str:
        return f"@{user}:localhost"

    def token_of(self, user: str) -> str:
        return str(self.tenant.facts["tokens"][user])

    def register(self, user: str) -> str:
        """A user of a test's own: the access token."""
        token = _register(self.url, user)
        self.tenant.facts["tokens"][user] = token
        return token

    def call(self, user: str, method: str, path: str, body: Any = None, *, raw: bool = False) -> Any:
        answer = ask(method, f"{self.url}{path}", body, token=self.token_of(user))
        return answer if raw else json.loads(answer)

    def make_room(self, owner: str = "ada", *, invite: tuple[str, ...] = ("bot",), **more: Any) -> str:
        ids = [self.id_of(user) for user in invite]
        made = self.call(owner, "POST", "/_matrix/client/v3/createRoom", {"invite": ids, **more})
        return str(made["room_id"])

    def say(self, user: str, room: str, text: str, **more: Any) -> None:
        path = f"/_matrix/client/v3/rooms/{quote(room)}/send/m.room.message/{secrets.token_hex(8)}"
        self.call(user, "PUT", path, {"msgtype": "m.text", "body": text, **more})

    def messages(self, room: str, reader: str = "ada") -> list[dict[str, Any]]:
        """What was said in the room, oldest first: each `sender` and its content."""
        path = f"/_matrix/client/v3/rooms/{quote(room)}/messages?dir=b&limit=100"
        events = self.call(reader, "GET", path)["chunk"]
        return [
            {"sender": event["sender"], **event["content"]}
            for event in reversed(events)
            if event["type"] == "m.room.message"
        ]


class Synapse(WebServer):
    def _configure(self, port: int) -> list[str | Path]:
        self._write_config(port)
        return [PYTHON, "-m", "synapse.app.homeserver", "--config-path", self._folder / "homeserver.yaml"]

    def _answers(self, url: str) -> bool:
        return bool(ask("GET", f"{url}/_matrix/client/versions"))

    def _facts(self, url: str) -> dict[str, Any]:
        return {"tokens": {user: _register(url, user) for user in USERS}}

    def _write_config(self, port: int) -> None:
        key = base64.b64encode(secrets.token_bytes(32)).decode().rstrip("=")
        (self._folder / "signing.key").write_text(f"ed25519 a_test {key}\n")
        (self._folder / "log.yaml").write_text(json.dumps({"version": 1, "root": {"level": "WARNING"}}))
        limits = ("rc_message", "rc_registration", "rc_admin_redaction", "rc_room_creation")
        config = {
            "server_name": "localhost",
            "pid_file": str(self._folder / "pid"),
            "listeners": [
                {
                    "port": port,
                    "type": "http",
                    "bind_addresses": ["127.0.0.1"],
                    "resources": [{"names": ["client", "media"]}],
                }
            ],
            "database": {"name": "sqlite3", "args": {"database": str(self._folder / "homeserver.db")}},
            "log_config": str(self._folder / "log.yaml"),
            "media_store_path": str(self._folder / "media"),
            "signing_key_path": str(self._folder / "signing.key"),
            "registration_shared_secret": _SECRET,
            "macaroon_secret_key": _SECRET,
            "form_secret": _SECRET,
            "report_stats": False,
            "trusted_key_servers": [],
            "suppress_key_server_warning": True,
            **dict.fromkeys(limits, _UNLIMITED),
            "rc_joins": {"local": _UNLIMITED, "remote": _UNLIMITED},
            "rc_invites": {"per_room": _UNLIMITED, "per_user": _UNLIMITED, "per_issuer": _UNLIMITED},
            "rc_login": {"address": _UNLIMITED, "account": _UNLIMITED, "failed_attempts": _UNLIMITED},
        }
        (self._folder / "homeserver.yaml").write_text(json.dumps(config))


def _register(url: str, user: str) -> str:
    """A user's access token, by the server's way for its operator."""
    path = f"{url}/_synapse/admin/v1/register"
    nonce = json.loads(ask("GET", path))["nonce"]
    words = "\0".join([nonce, user, "pw", "notadmin"]).encode()
    mac = hmac.new(_SECRET.encode(), words, hashlib.sha1).hexdigest()
    body = {"nonce": nonce, "username": user, "password": "pw", "admin": False, "mac": mac}
    return str(json.loads(ask("POST", path, body))["access_token"])
