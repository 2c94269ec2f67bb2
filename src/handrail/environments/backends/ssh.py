"""Commands on another machine, through the OpenSSH client with the user's own configuration, keys, agent and jump hosts.

Host keys are checked strictly and there are no prompts: what ssh would ask is an error that says what to do. Nothing is installed
there. When the connection ends, everything there ends except what was started to survive; if the host does not notice, that
happens after a timeout without a keep-alive.

Environments share connections (OpenSSH's multiplexing, in a private folder): the first session to a host opens one,
which goes to the background (`ControlPersist`); later ones use it without another login. It ends a second after its last session,
also if this process was killed; the last environment ends it immediately.
"""

import hashlib
import os
import shlex
import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from ...errors import ConfigError
from ...types import Unavailable
from .. import private_dirs
from ..backend_table import option, read_settings
from ..command_line_tools import ask
from ..errors import EnvironmentStartError, HostKeyRefused, LoginRefused
from ..live_environment import LiveEnvironment
from ..profiles import Profile
from ..protection import caches
from ..transport import bundle
from ..transport.link import Link, Shared
from ..transport.session import Session, Transport

CHECK_SECONDS, _CONNECT_SECONDS = 5, 15
_MISSED_KEEPALIVES = 3
# Later than the timeout of ssh itself, so that nothing is lost if the network comes back in time.
_SILENT_KEEPALIVES = 8
_SSH_FAILED, _NOT_FOUND = 255, 127
KIND = "ssh"
_END_SECONDS, _PERSIST_SECONDS = 2.0, 1


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
    profile: str = option(
        "open",
        "contained: writes outside of the folder that the shell starts in wait for your answer, and sudo gains no rights there",
    )
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
    persistent = can_tunnel = holds_connections = True

    def __init__(self, settings: SshSettings) -> None:
        super().__init__()
        self._settings, self._folder = settings, ""

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
        if read.profile not in (Profile.OPEN, Profile.CONTAINED):
            raise ConfigError(f"{cls.name}.profile: choose open or contained, not {read.profile!r}")
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
        found = private_dirs.left_behind(KIND)
        for folder in [] if dry_run else found:
            _end(folder)
        return [f"{folder}, of a process that has ended" for folder in found]

    def connect(self, state: bytes | None) -> Link:
        _find_ssh()
        self._folder = self._folder or _connections.acquire()
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
                contained=caches() if settings.profile == Profile.CONTAINED else None,
                on_held=self.held.answer,
                way_out=self.way_out,
            )
        except BaseException:
            self.disconnected()
            raise

    def forked(self) -> None:
        self._folder = ""

    def disconnected(self) -> None:
        if self._folder:
            _connections.release(self._folder)
            self._folder = ""

    def _command(self, words: Sequence[str]) -> list[str]:
        # Environments that log in the same way share a connection.
        name = hashlib.sha256(repr((self._settings.host, self._options())).encode()).hexdigest()[:16]
        shared = {"ControlMaster": "auto", "ControlPath": f"{self._folder}/{name}", "ControlPersist": _PERSIST_SECONDS}
        return ["ssh", *self._options(), *_as_options(shared), *self._there(words)]

    def _there(self, words: Sequence[str]) -> list[str]:
        return ["--", self._settings.host, f"exec {bundle.shell_words(words)}"]

    def _options(self) -> list[str]:
        settings = self._settings
        values = {
            "BatchMode": "yes",
            "StrictHostKeyChecking": "accept-new" if settings.accept_new_hosts else "yes",
            "ConnectTimeout": _CONNECT_SECONDS,
            "ServerAliveInterval": settings.keepalive,
            "ServerAliveCountMax": _MISSED_KEEPALIVES,
            # What the user's configuration may allow for people, but not for the commands of a model.
            "ClearAllForwardings": "yes",
            "ForwardAgent": "no",
            "ForwardX11": "no",
            "PermitLocalCommand": "no",
            "RemoteCommand": "none",
            "RequestTTY": "no",
            "LogLevel": "ERROR",
        }
        return [*_as_options(values), *self._own_options()]

    def _own_options(self) -> list[str]:
        """The options that a user needs too, to reach the same host by hand."""
        settings = self._settings
        words = ["-F", os.path.expanduser(settings.config_file)] if settings.config_file else []
        words += ["-p", str(settings.port)] if settings.port else []
        if settings.identity_file:
            words += ["-o", "IdentitiesOnly=yes", "-i", os.path.expanduser(settings.identity_file)]
        return words

    def _try_login(self) -> None:
        """Without a shared connection, for which ssh would not show the errors of a jump host."""
        _find_ssh()
        command = ["ssh", *self._options(), "-o", "ControlPath=none", *self._there([self._settings.python, "-V"])]
        command[1:1] = ["-o", f"ConnectTimeout={CHECK_SECONDS}"]
        answer = ask(command, seconds=CHECK_SECONDS, env=_quiet_environment())
        host, message = self._settings.host, answer.message or answer.out.strip()
        if answer.code is None:
            raise EnvironmentStartError(f"the host {host} did not answer within {CHECK_SECONDS} s")
        self._explain(answer.code, message, is_last=True)
        if answer.code != 0:
            why = f"ended with code {answer.code}: {message or 'it printed nothing'}"
            raise EnvironmentStartError(f"the host {host} {why}")

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
        why = f"the host {settings.host} could not be reached: {message or 'ssh did not say why'}"
        raise EnvironmentStartError(why)


BACKEND = SshEnvironment


def _find_ssh() -> None:
    if shutil.which("ssh") is None:
        raise EnvironmentStartError("the program ssh is not installed here; install OpenSSH's client (openssh-client)")


def _quiet_environment() -> dict[str, str]:
    """Without a terminal ssh would ask on the screen; a jump host's ssh does so despite BatchMode."""
    return {**os.environ, "SSH_ASKPASS": "/bin/false", "SSH_ASKPASS_REQUIRE": "never"}


def _as_options(values: Mapping[str, object]) -> list[str]:
    return [word for key, value in values.items() for word in ("-o", f"{key}={value}")]


def _end(folder: str) -> None:
    """End the connections of a folder, and remove it."""
    for name in os.listdir(folder):
        # It may end by itself, or hang with its host.
        ask(["ssh", "-o", f"ControlPath={folder}/{name}", "-O", "exit", "any"], seconds=_END_SECONDS)
    end = time.monotonic() + _END_SECONDS
    while os.listdir(folder) and time.monotonic() < end:
        time.sleep(0.001)
    shutil.rmtree(folder, ignore_errors=True)


_connections = Shared(lambda: private_dirs.make(KIND), _end)
