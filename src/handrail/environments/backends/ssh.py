"""Commands on another machine, through the OpenSSH client with the user's own configuration, keys, agent and jump hosts.

Host keys are checked strictly and there are no prompts: what ssh would ask is an error that says what to do. Nothing is installed
there. When the connection ends, everything there ends except what was started to survive; if the host does not notice, that
happens after a timeout without a keep-alive.
"""

from __future__ import annotations

import hashlib
import os
import shlex
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from ...errors import ConfigError
from ...types import Unavailable
from ..backend_settings import option, read_settings
from ..errors import EnvironmentStartError, HostKeyRefused, LoginRefused
from ..live_environment import LiveEnvironment
from ..transport import bundle, ssh_connections
from ..transport.link import Link
from ..transport.session import Session, Transport
from ..transport.ssh_connections import connections

CHECK_SECONDS = 5
_CONNECT_SECONDS = 15
_MISSED_KEEPALIVES = 3
# Later than the timeout of ssh itself, so that nothing is lost if the network comes back in time.
_SILENT_KEEPALIVES = 8
_SSH_FAILED = 255
_NOT_FOUND = 127


@dataclass(frozen=True, slots=True, kw_only=True)
class SshSettings:
    host: str = option(..., "the host: a name of your ssh configuration, or user@host")
    port: int | None = option(None, "its port, if it is not that of your ssh configuration", least=1, most=65535)
    identity_file: str | None = option(None, "the private key to log in with, and no other")
    config_file: str | None = option(None, "an ssh configuration instead of ~/.ssh/config")
    cwd: str = option("", "where the shell starts; the home folder if it is empty")
    env: Mapping[str, str] = option({}, "environment variables of the shell")
    python: str = option("python3", "the name of Python 3.8 or newer there")
    accept_new_hosts: bool = option(False, "trust the key of a host that was never seen before")
    keepalive: int = option(
        5, "seconds between keep-alives; a connection is lost after three missed ones", least=1, most=600
    )


class SshEnvironment(LiveEnvironment):
    """A bash on another machine.

    It is not `isolated`: commands reach no file and no process of this machine, but that host matters too. It is
    `persistent`: files stay, and background processes that were started to survive are found again.
    """

    name = "ssh"
    shorthand = "host"
    persistent = True

    def __init__(self, settings: SshSettings) -> None:
        super().__init__()
        self._settings = settings
        self._folder, self._folder_process = "", 0

    @classmethod
    def from_settings(
        cls,
        settings: Mapping[str, Any],
        *,
        task_id: str,  # noqa: ARG003  every backend is given it
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
    ) -> Self:
        read = read_settings(SshSettings, settings, backend=cls.name, cwd=cwd, env=env)
        if not read.host or read.host.startswith("-"):
            raise ConfigError(f"{cls.name}.host: it must be a name of your ssh configuration, or user@host")
        for key, path in (("identity_file", read.identity_file), ("config_file", read.config_file)):
            if path and not os.path.isfile(os.path.expanduser(path)):
                raise ConfigError(f"{cls.name}.{key}: there is no file {path}")
        return cls(read)

    @classmethod
    def check(cls, settings: Mapping[str, Any]) -> Unavailable | None:
        """Log in and look for Python: None if both work."""
        try:
            environment = cls.from_settings(settings, task_id="")
            environment._try_login()
        except (ConfigError, EnvironmentStartError) as error:
            return Unavailable(str(error))
        return None

    @staticmethod
    def prune(dry_run: bool) -> list[str]:
        return ssh_connections.prune(dry_run=dry_run)

    def connect(self, state: bytes | None) -> Link:
        _find_ssh()
        if not self._folder or self._folder_process != os.getpid():  # after a fork it is the parent's
            self._folder, self._folder_process = connections.acquire(), os.getpid()
        settings = self._settings
        transport = Transport(
            argv=self._command,
            where=f"the host {settings.host}",
            python=settings.python,
            env=_quiet_environment(),
            client_timeout=float(_SILENT_KEEPALIVES * settings.keepalive),
            explain=self._explain,
        )
        try:
            return Session(
                transport,
                env=dict(settings.env),
                cwd=settings.cwd,
                state=state,
                must_have_cwd=True,
                effects=self.effects_elsewhere(),
            )
        except BaseException:
            self.disconnected()
            raise

    def disconnected(self) -> None:
        if self._folder:
            connections.release(self._folder)
            self._folder = ""

    def _command(self, words: Sequence[str]) -> list[str]:
        return [
            "ssh",
            *self._options(),
            *ssh_connections.options(self._folder, self._socket_name()),
            *self._there(words),
        ]

    def _there(self, words: Sequence[str]) -> list[str]:
        return ["--", self._settings.host, f"exec {bundle.shell_words(words)}"]

    def _options(self) -> list[str]:
        settings = self._settings
        values = {
            "BatchMode": "yes",
            "StrictHostKeyChecking": "accept-new" if settings.accept_new_hosts else "yes",
            "ConnectTimeout": str(_CONNECT_SECONDS),
            "ServerAliveInterval": str(settings.keepalive),
            "ServerAliveCountMax": str(_MISSED_KEEPALIVES),
            # What the user's configuration may allow for people, but not for the commands of a model.
            "ClearAllForwardings": "yes",
            "ForwardAgent": "no",
            "ForwardX11": "no",
            "PermitLocalCommand": "no",
            "RemoteCommand": "none",
            "RequestTTY": "no",
            "LogLevel": "ERROR",
        }
        return [*(word for key, value in values.items() for word in ("-o", f"{key}={value}")), *self._own_options()]

    def _own_options(self) -> list[str]:
        """The options that a user needs too, to reach the same host by hand."""
        settings = self._settings
        words = ["-F", os.path.expanduser(settings.config_file)] if settings.config_file else []
        words += ["-p", str(settings.port)] if settings.port else []
        if settings.identity_file:
            words += ["-o", "IdentitiesOnly=yes", "-i", os.path.expanduser(settings.identity_file)]
        return words

    def _socket_name(self) -> str:
        """Environments that log in the same way share a connection."""
        return hashlib.sha256(repr((self._settings.host, self._options())).encode()).hexdigest()[:16]

    def _try_login(self) -> None:
        """Without a shared connection, for which ssh would not show the errors of a jump host."""
        _find_ssh()
        command = ["ssh", *self._options(), "-o", "ControlPath=none", *self._there([self._settings.python, "-V"])]
        command[1:1] = ["-o", f"ConnectTimeout={CHECK_SECONDS}"]
        host = self._settings.host
        try:
            done = subprocess.run(
                command,
                env=_quiet_environment(),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=CHECK_SECONDS,
                start_new_session=True,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise EnvironmentStartError(f"the host {host} did not answer within {CHECK_SECONDS} s") from None
        message = (done.stderr or done.stdout).decode("utf-8", "replace").strip()
        self._explain(done.returncode, message, is_last=True)
        if done.returncode != 0:
            raise EnvironmentStartError(
                f"the host {host} ended with code {done.returncode}: {message or 'it printed nothing'}"
            )

    def _explain(self, code: int, message: str, *, is_last: bool = False) -> None:
        """Raise the error that ssh's exit code and message mean. `is_last`: do not try another login to find out more."""
        settings = self._settings
        by_hand = shlex.join(["ssh", *self._own_options(), settings.host])
        if code == _NOT_FOUND:
            raise EnvironmentStartError(
                f"{settings.python} was not found on the host {settings.host}; install Python 3.8 or newer there, "
                f"or set {self.name}.python to where it is ({message})"
            )
        if code != _SSH_FAILED:
            return
        if "HOST IDENTIFICATION HAS CHANGED" in message or "revoked host key" in message.lower():
            raise HostKeyRefused(
                f"the host {settings.host} shows another key than the one that is known: it was reinstalled, or somebody "
                f"is intercepting the connection. Ask its administrator; only if the new key is right, remove the old one "
                f"(ssh-keygen -R) and accept the new one by hand: {by_hand}. ssh printed: {message}"
            )
        if "Host key verification failed" in message:
            raise HostKeyRefused(
                f"the key of the host {settings.host} is not known here, and is not accepted unseen. Compare it and accept "
                f"it once by hand: {by_hand}; or add it to the known hosts (ssh-keyscan); or set "
                f"{self.name}.accept_new_hosts to true. ssh printed: {message}"
            )
        if "Permission denied" in message or "Too many authentication failures" in message:
            raise LoginRefused(
                f"the host {settings.host} refused the login. Passwords are not asked for: a key or an agent must let you in "
                f"without a question. Try it by hand: {by_hand}. ssh printed: {message}"
            )
        if not is_last and "kex_exchange_identification" in message:
            self._try_login()
        raise EnvironmentStartError(
            f"the host {settings.host} could not be reached: {message or 'ssh did not say why'}"
        )


BACKEND = SshEnvironment


def _find_ssh() -> None:
    if shutil.which("ssh") is None:
        raise EnvironmentStartError("the program ssh is not installed here; install OpenSSH's client (openssh-client)")


def _quiet_environment() -> dict[str, str]:
    """Without a terminal ssh would ask on the screen; a jump host's ssh does so despite BatchMode."""
    return {**os.environ, "SSH_ASKPASS": "/bin/false", "SSH_ASKPASS_REQUIRE": "never"}
