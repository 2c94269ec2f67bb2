"""A PostgreSQL of the tests' own, on loopback. It refuses to run as root."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from .servers import WebServer
from .tenants import Services, Tenant

_NOBODY = 65534
_AS_NOBODY = ["setpriv", f"--reuid={_NOBODY}", f"--regid={_NOBODY}", "--clear-groups"]


def program(name: str) -> str:
    """Debian keeps them out of PATH, by version. Empty if there is none."""
    found = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"))
    return str(found[-1]) if found else shutil.which(name) or ""


@dataclass(frozen=True)
class Postgres:
    """A running server: `url`."""

    tenant: Tenant
    url: str

    @classmethod
    def join(cls, services: Services) -> Postgres:
        tenant = services.join("postgres:PostgresServer")
        return cls(tenant, f"postgresql://tests@{urlsplit(tenant.facts['url']).netloc}/postgres")


class PostgresServer(WebServer):
    def _configure(self, port: int) -> list[str | Path]:
        data = self._folder / "data"
        data.mkdir(mode=0o700)
        os.chown(data, _NOBODY, _NOBODY)
        options = ["-U", "tests", "--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync"]
        subprocess.run([*_AS_NOBODY, program("initdb"), "-D", data, *options], check=True, stdout=subprocess.DEVNULL)
        settings = ("listen_addresses=127.0.0.1", "unix_socket_directories=", "shared_buffers=16MB")
        chosen = [word for setting in settings for word in ("-c", setting)]
        return [*_AS_NOBODY, program("postgres"), "-D", data, "-p", str(port), *chosen]

    def _answers(self, url: str) -> bool:
        with socket.create_connection(("127.0.0.1", urlsplit(url).port or 0), timeout=5) as connection:
            connection.sendall((8).to_bytes(4) + (80877103).to_bytes(4))  # does it take encrypted connections?
            return connection.recv(1) in (b"N", b"S")
