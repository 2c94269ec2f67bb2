"""An OpenSSH server of the tests' own, with a user of its own whose home is empty."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..support import free_port, wait_until
from . import leftovers
from .netns import Link
from .tenants import Services, Tenant

_USER = "handrail-guest"
# Far from what systems give to people and to services. It exists only where the server runs.
_UID = 61234
_SERVER = """\
Port {port}
ListenAddress {address}
HostKey {folder}/host_key
AuthorizedKeysFile {folder}/client_key.pub
PidFile {folder}/sshd.pid
AllowUsers {user} root
PermitRootLogin prohibit-password
PasswordAuthentication no
KbdInteractiveAuthentication no
UsePAM no
StrictModes no
PrintMotd no
AcceptEnv LANG LC_*
MaxSessions 100
MaxStartups 200
Subsystem sftp internal-sftp
"""
_CLIENT = """\
Host {alias}
  HostName {host}
  Port {port}
  User {user}
  IdentityFile {folder}/client_key
  IdentitiesOnly yes
  UserKnownHostsFile {known}
  GlobalKnownHostsFile /dev/null
  StrictHostKeyChecking yes
  BatchMode yes
  ConnectTimeout 5
"""


@dataclass(frozen=True)
class Ssh:
    """A running server: `ssh -F config alias`.

    `impostor` is an alias for it under a host key that it does not have, `jumped` one for the way over a jump host.
    """

    tenant: Tenant
    config: Path
    host: str
    port: int
    link: Link | None = None
    alias: str = "guest"
    impostor: str = "impostor"
    jumped: str = "jumped"
    user: str = _USER

    @classmethod
    def join(cls, services: Services, *, own: bool = False) -> Ssh:
        return cls._at("127.0.0.1", services.join("sshd:Sshd", own=own), None)

    @classmethod
    def far(cls, services: Services) -> Ssh:
        """A server of one's own, behind a link that can be cut."""
        tenant = services.join("sshd:Sshd", own=True, network=True, address="0.0.0.0")
        try:
            link = Link.to(tenant.caretaker)
            return cls._at(link.far_address, tenant, link)
        except BaseException:
            tenant.leave()
            raise

    @classmethod
    def _at(cls, host: str, tenant: Tenant, link: Link | None) -> Ssh:
        port = tenant.facts["port"]
        return cls(tenant, _write_config(tenant.folder, host, port), host, port, link)

    @property
    def home(self) -> Path:
        return self.tenant.folder / "home"

    @property
    def key(self) -> Path:
        return self.tenant.folder / "client_key"

    @property
    def known_hosts(self) -> Path:
        return self.config.with_name("known_hosts")

    def run(self, *arguments: str, alias: str | None = None, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
        """What `ssh` made of it, whether it worked or not."""
        command = ["ssh", "-F", str(self.config), alias or self.alias, *arguments]
        return subprocess.run(command, input=stdin, capture_output=True, check=False)

    def kill(self) -> None:
        """`kill -9` of the server and of all its connections; what runs in them is left to itself."""
        self.tenant.order("kill")

    def hang_up(self) -> None:
        """`kill -9` of all connections; the server goes on."""
        self.tenant.order("hang_up")

    def start_again(self) -> None:
        """On the same port, with the same key."""
        self.tenant.order("start_again", port=self.port)


class Sshd:
    """The server, as its caretaker sees it. Its `/etc` is private, so the user is known nowhere else."""

    orders = frozenset({"hang_up", "kill", "start_again"})

    def __init__(self, folder: Path, *, address: str = "127.0.0.1") -> None:
        self._folder = folder
        self._address = address
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> dict[str, Any]:
        Path("/run/sshd").mkdir(exist_ok=True)
        self._add_user()
        for key in ("host_key", "client_key", "other_key"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", self._folder / key], check=True)
        port = free_port()
        self.start_again(port)
        return {"port": port}

    def start_again(self, port: int) -> None:
        config = self._folder / "sshd_config"
        config.write_text(_SERVER.format(folder=self._folder, address=self._address, port=port, user=_USER))
        program = shutil.which("sshd", path=f"{os.environ['PATH']}:/usr/sbin")
        assert program, "no sshd"
        command = [program, "-D", "-f", str(config), "-E", str(self._folder / "sshd.log")]
        self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL)
        wait_until(lambda: self._answers(port), otherwise=self._log)

    def kill(self) -> None:
        assert self._process
        self._process.kill()
        self._process.wait()
        self.hang_up()

    def hang_up(self) -> None:
        assert self._process
        leftovers.end({pid for pid in leftovers.processes() if _name(pid) == "sshd" and pid != self._process.pid})

    def stop(self) -> None:
        """The caretaker ends what is in the namespace."""

    def _add_user(self) -> None:
        home = self._folder / "home"
        home.mkdir()
        os.chown(home, _UID, _UID)
        if f"{_USER}:" in Path("/etc/passwd").read_text():
            return
        with open("/etc/passwd", "a") as passwd, open("/etc/group", "a") as group, open("/etc/shadow", "a") as shadow:
            passwd.write(f"{_USER}:x:{_UID}:{_UID}::{home}:/bin/bash\n")
            group.write(f"{_USER}:x:{_UID}:\n")
            shadow.write(f"{_USER}:*:1::::::\n")

    def _answers(self, port: int) -> bool:
        assert self._process
        if self._process.poll() is not None:
            raise AssertionError(self._log())
        with socket.socket() as connection:
            return connection.connect_ex(("127.0.0.1", port)) == 0 and connection.recv(4) == b"SSH-"

    def _log(self) -> str:
        return (self._folder / "sshd.log").read_text(errors="replace")[-4000:]


def _name(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""


def _write_config(folder: Path, host: str, port: int) -> Path:
    """Every tenant writes the same."""
    key = (folder / "host_key.pub").read_text()
    wrong = (folder / "other_key.pub").read_text()
    for name, text in (("known_hosts", key), ("known_impostor", wrong)):
        (folder / name).write_text(f"[{host}]:{port} {text}")
    values = {"host": host, "port": port, "user": _USER, "folder": folder}
    config = folder / "ssh_config"
    config.write_text(
        _CLIENT.format(alias="guest", known=folder / "known_hosts", **values)
        + _CLIENT.format(alias="impostor", known=folder / "known_impostor", **values)
        + _CLIENT.format(alias="jumped", known=folder / "known_hosts", **values)
        + "  ProxyJump guest\n"
    )
    return config
