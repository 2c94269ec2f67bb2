"""How a task's environment is made: from the configuration and the task's own overrides."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from ..core.availability import usable_unless
from ..egress.secret_sources import secret_files
from ..errors import InvalidArguments, ToolFailed
from ..types import Unavailable
from .backend_table import Backends, backends, is_host
from .errors import UnknownEnvironment
from .profiles import Profile

if TYPE_CHECKING:
    from ..config import Config
    from .base import Environment

DEFAULT_TASK = "default"
# The general overrides of a task; everything else is a setting of the backend.
_GENERAL = {
    "backend": str,
    "env_type": str,
    "cwd": str,
    "env": dict,
    "allowed_secrets": list,
    "effects": bool,
    "profile": str,
}


class EnvironmentSettings(NamedTuple):
    """Everything needed to make the environment again, also in another process: `EnvironmentSettings(**json.loads(text))`.

    Only the names of secrets are in it; their values are read when it is opened.
    """

    task_id: str
    backend: str
    cwd: str | None = None
    env: Mapping[str, str] = {}
    allowed_secrets: tuple[str, ...] = ()
    options: Mapping[str, Any] = {}
    effects: Mapping[str, Any] | None = None

    def as_json(self) -> dict[str, Any]:
        """As they are stored."""
        stored: dict[str, Any] = json.loads(json.dumps(self._asdict()))
        return stored

    def open(self, backends: Backends) -> Environment:
        """A new environment, not yet started."""
        secrets = {name: os.environ[name] for name in self.allowed_secrets if name in os.environ}
        environment = backends.get(self.backend).from_settings(
            self.options, task_id=self.task_id, cwd=self.cwd, env={**secrets, **self.env}
        )
        if hasattr(environment, "effects"):  # one that can write down what commands change
            environment.effects = self.effects
        return environment


def check_default(config: Config) -> Unavailable | bool:
    """A tool's `check_fn`: whether the environment that the configuration names can be used."""
    try:
        settings = resolve(DEFAULT_TASK, config, {}, backends)
    except UnknownEnvironment as error:
        return Unavailable(str(error), "correct HANDRAIL_TERMINAL, or terminal.backend in the configuration")
    return usable_unless(backends.get(settings.backend).check(settings.options))


def resolve(task_id: str, config: Config, overrides: Mapping[str, Any], backends: Backends) -> EnvironmentSettings:
    """The settings of a task. Raises UnknownEnvironment for an unknown backend."""
    terminal = config.terminal
    chosen = str(overrides.get("backend") or overrides.get("env_type") or terminal.backend)
    name, _, short = chosen.partition(":")
    backend = backends.get(name)
    options = {**terminal.backends.get(name, {}), **_for_backend(overrides, name, backends)}
    if short:
        options[getattr(backend, "shorthand", "image")] = short
    # The configured directory belongs to the configured backend: a container has others.
    usual = terminal.cwd if name == terminal.backend.partition(":")[0] else None
    cwd = overrides.get("cwd") or options.pop("cwd", None) or usual
    if is_host(backend):
        cwd = os.path.abspath(os.path.expanduser(cwd)) if cwd else _current_directory()
        options = {**_file_limits(config), **_protection(config, overrides), **options}
    secrets = overrides.get("allowed_secrets", terminal.allowed_secrets)
    env = {**terminal.env, **overrides.get("env", {})}
    has_effects = overrides.get("effects", config.effects.enabled)
    if options.get("profile") == Profile.OPEN and os.geteuid() != 0:
        has_effects = False  # watching takes the right to gain rights away
    pause = config.effects.pause
    effects = {**journal_settings(config), "pause": [pause.files, pause.megabytes]} if has_effects else None
    contain = config.network.contain
    if contain == "on":
        options = {**getattr(backend, "without_network", {}), **options}
    if effects is not None and contain != "off" and (is_host(backend) or getattr(backend, "holds_connections", False)):
        is_contained = options.get("profile") == Profile.CONTAINED and options.get("protect", True)
        effects["holds_network"] = contain if contain == "on" or is_contained else ""
    return EnvironmentSettings(task_id, name, cwd, env, tuple(secrets), options, effects)


def check_overrides(overrides: Mapping[str, Any]) -> dict[str, Any]:
    """Check that overrides can be stored and passed to another process, and copy them."""
    from .clean_env import check_variables  # imports subprocess, which a start does not need

    try:
        kept: dict[str, Any] = json.loads(json.dumps(dict(overrides)))
    except (TypeError, ValueError) as error:
        raise InvalidArguments(f"the settings of a task are text, numbers, lists and mappings: {error}") from None
    for name, kind in _GENERAL.items():
        if not isinstance(kept.get(name, kind()), kind):
            raise InvalidArguments(f"{name} must be a {kind.__name__}, not {kept[name]!r}", argument=name)
    check_variables(kept.get("env", {}))
    return kept


def _for_backend(overrides: Mapping[str, Any], name: str, backends: Backends) -> dict[str, Any]:
    """The settings for the backend itself. `docker_image` applies to docker only, as in the original."""
    chosen: dict[str, Any] = {}
    for key, value in overrides.items():
        owner, _, option = key.partition("_")
        if key in _GENERAL:
            continue
        if option and owner in backends.names():
            chosen |= {option: value} if owner == name else {}
        else:
            chosen[key] = value
    return chosen


def _current_directory() -> str:
    try:
        return os.getcwd()
    except OSError:
        raise ToolFailed(
            "the directory that this process was started in no longer exists; set terminal.cwd, or a cwd for the task"
        ) from None


def _file_limits(config: Config) -> dict[str, Any]:
    files = config.files
    return {
        "roots": list(files.roots),
        "max_read_bytes": files.max_read_bytes,
        "max_write_bytes": files.max_write_bytes,
    }


def journal_settings(config: Config) -> dict[str, Any]:
    """For `LiveEnvironment.effects`, without limits at which somebody would be asked."""
    names = ("max_copy", "durable", "on_crash", "keep_days", "keep_bytes")
    return {name: getattr(config.effects, name) for name in names}


def _protection(config: Config, overrides: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "profile": Profile(overrides.get("profile") or config.terminal.profile).value,
        "protect": config.terminal.protect,
        "protect_package": config.protect.package,
        "allow_sockets": list(config.terminal.allow_sockets),
        "home": config.home,
        "hidden_files": secret_files(config.secrets) if config.secrets else [],
    }
