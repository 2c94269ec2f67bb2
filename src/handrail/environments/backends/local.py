"""The backend `local`: commands on this machine, as far as no shell is needed yet."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ...base.suggest import did_you_mean
from ...errors import InvalidArguments
from ...types import Unavailable

if TYPE_CHECKING:
    from ...protocols import Files
    from ..local_environment import LocalEnvironment
    from ..protection import Protection
    from ..sandbox import SandboxPolicy

_SETTINGS: dict[str, type] = {
    "sandbox": bool,  # restrict commands: a read-only system, no network
    "network": bool,  # with a sandbox: let commands reach the network
    "writable": list,  # with a sandbox: folders that can be changed; by default the working directory
    "login": bool,  # start with the variables of a login shell
    "profile": str,  # without a sandbox: see `terminal.profile` in the configuration
    "protect": bool,  # without a sandbox: see `terminal.protect` in the configuration, and the next four
    "protect_package": bool,
    "allow_sockets": list,
    "home": str,
    "hidden_files": list,  # files that no command may read
    "roots": list,  # the three below are for the file tools: see `files` in the configuration
    "max_read_bytes": int,
    "max_write_bytes": int,
}


class LocalBackend:
    """Apart from `LocalEnvironment`, so that reading a file or listing the tools imports no more than needed."""

    name = "local"
    host_paths = True

    @staticmethod
    def from_settings(
        settings: Mapping[str, Any],
        *,
        task_id: str,  # noqa: ARG004  nothing on this machine is named after it
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
    ) -> LocalEnvironment:
        from ..local_environment import LocalEnvironment

        _check(settings)
        return LocalEnvironment(
            cwd,
            env=env,
            login=settings.get("login", False),
            sandbox=_policy(settings) if settings.get("sandbox") else None,
            protection=_protection(settings),
            roots=settings.get("roots", ()),
            file_limits=_file_limits(settings),
        )

    @staticmethod
    def files_before_start(settings: Mapping[str, Any], cwd: str) -> Files | None:
        """The files of an environment that has not started. None: they need an environment."""
        from ...files.local import LocalFiles

        _check(settings)
        if settings.get("sandbox"):
            return None
        hidden = settings.get("hidden_files", ())
        return LocalFiles(cwd, settings.get("roots", ()), *_file_limits(settings), hidden=hidden)

    @staticmethod
    def check(settings: Mapping[str, Any]) -> Unavailable | None:
        if not any(os.access(os.path.join(folder, "bash"), os.X_OK) for folder in os.get_exec_path()):
            return Unavailable("bash is not installed", "install it, or choose another environment: terminal.backend")
        return _policy(settings).check() if settings.get("sandbox") else None

    @staticmethod
    def prune(dry_run: bool = False) -> list[str]:  # noqa: ARG004  each runtime's fork server cleans up
        return []


BACKEND = LocalBackend


def _check(settings: Mapping[str, Any]) -> None:
    for name, value in settings.items():
        if name not in _SETTINGS:
            raise InvalidArguments(f"local: unknown setting {name!r}; {did_you_mean(name, _SETTINGS)}")
        if not isinstance(value, _SETTINGS[name]):
            raise InvalidArguments(f"local: {name} must be a {_SETTINGS[name].__name__}, not {value!r}")


def _file_limits(settings: Mapping[str, Any]) -> tuple[int, int]:
    from ...files.local import DEFAULT_MAX_BYTES

    return settings.get("max_read_bytes", DEFAULT_MAX_BYTES), settings.get("max_write_bytes", DEFAULT_MAX_BYTES)


def _protection(settings: Mapping[str, Any]) -> Protection | None:
    from ..profiles import Profile
    from ..protection import Protection, check_allowed

    profile = Profile(settings.get("profile", Profile.CONTAINED))
    if not settings.get("protect", True) or profile is Profile.OPEN:
        return None
    allowed = tuple(settings.get("allow_sockets", ()))
    if allowed:
        check_allowed(allowed)
    hidden, package = tuple(settings.get("hidden_files", ())), settings.get("protect_package", True)
    return Protection(settings.get("home", ""), package, allowed, profile=profile, hidden_files=hidden)


def _policy(settings: Mapping[str, Any]) -> SandboxPolicy:
    from ..sandbox import SandboxPolicy

    named = settings.get("writable")
    writable = None if named is None else tuple(map(os.path.expanduser, named))
    return SandboxPolicy(writable, settings.get("network", False))
