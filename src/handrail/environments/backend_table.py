"""Which backend a task gets, and with which settings: from the configuration and the task's own overrides.

The backends are known by name: the built-in ones, those of installed packages, and those that a plugin adds.

A backend is a class that fits `Backend`. A built-in one is the `BACKEND` of the file in `backends/` that has its name; a package
declares an entry point of the group `handrail.environments`. Nothing is imported before it is requested by name.
A backend may read its settings with `read_settings`: options with a text and limits each.
"""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar, cast

from ..base.suggest import did_you_mean
from ..config.settings_reader import fail
from ..config.settings_reader import read_settings as read_plain_settings
from ..core.availability import usable_unless
from ..egress.secret_sources import secret_files
from ..errors import InvalidArguments, ToolFailed
from ..types import Unavailable
from .errors import UnknownEnvironment
from .profiles import Profile

if TYPE_CHECKING:
    from ..settings.schema import Config
    from .base import Environment

T = TypeVar("T")
ENTRY_POINTS = "handrail.environments"
# Other names.
_ALIASES = {"singularity": "apptainer"}
_FOLDER = Path(__file__).parent / "backends"
DEFAULT_TASK = "default"
# The general overrides of a task; everything else is a setting of the backend.
_GENERAL: dict[str, type] = dict.fromkeys(("backend", "env_type", "cwd", "profile"), str)
_GENERAL |= {"env": dict, "allowed_secrets": list, "effects": bool}


class Backend(Protocol):
    """Makes environments of one sort. All of these belong to the class, not to its objects.

    Optional attributes:
    `host_paths = True`: a path means the same there as on this machine (default: False).
    `shorthand = "host"`: the setting after the colon in `ssh:build.example` (default: "image").
    `files_before_start(settings, cwd)`: the files of an environment that has not started, if they can be read without one.
    """

    @property
    def name(self) -> str: ...

    def from_settings(
        self, settings: Mapping[str, Any], *, task_id: str, cwd: str | None, env: Mapping[str, str]
    ) -> Environment:
        """A new environment, not yet started. Raises a ToolError that names a setting which cannot be used."""

    def check(self, settings: Mapping[str, Any]) -> Unavailable | None:
        """Why no environment can be started now, and how to fix that; None if one can."""

    def prune(self, dry_run: bool) -> list[str]:
        """Remove what exited runtimes left behind. Returns what was, or would be, removed: one line each."""


class Backends:
    """The table. Built-in backends come first, then those of plugins, then entry points."""

    def __init__(self) -> None:
        self._added: dict[str, Backend] = {}

    def add(self, backend: Backend) -> None:
        self._added[backend.name] = backend

    def remove(self, name: str) -> None:
        self._added.pop(name, None)

    def names(self) -> list[str]:
        return sorted({*built_in(), *self._added, *_entry_points()})

    def get(self, name: str) -> Backend:
        """Raises UnknownEnvironment, with the most similar known name."""
        name = _ALIASES.get(name, name)
        found = built_in().get(name) or self._added.get(name) or _entry_points().get(name)
        if found is None:
            raise UnknownEnvironment(f"unknown environment {name!r}; {did_you_mean(name, self.names())}")
        return _loaded(name, found) if isinstance(found, str) else found


backends = Backends()
default_backends = backends  # its name in the package, where `backends` are the built-in ones


def is_host(backend: Backend) -> bool:
    """Whether a path means the same there as on this machine."""
    return bool(getattr(backend, "host_paths", False))


@cache
def built_in() -> dict[str, str]:
    """Where the class of each built-in backend is, by name."""
    names = sorted(path.stem for path in _FOLDER.glob("[!_]*.py"))
    return {name: f"{__package__}.backends.{name}:BACKEND" for name in names}


@cache
def _entry_points() -> dict[str, str]:
    from importlib.metadata import entry_points

    return {point.name: point.value for point in entry_points(group=ENTRY_POINTS)}


@cache
def _loaded(name: str, reference: str) -> Backend:
    module, _, attribute = reference.partition(":")
    try:
        return cast("Backend", getattr(import_module(module), attribute))
    except (ImportError, AttributeError) as error:
        raise UnknownEnvironment(f"environment {name!r} cannot be loaded from {reference}: {error}") from error


def option(default: Any, doc: str, *, least: float | None = None, most: float | None = None) -> Any:
    """A setting of a dataclass: its default, what it does, and its limits. `...` as the default: it is required."""
    metadata = {"doc": doc, "least": least, "most": most}
    if default is ...:
        return dataclasses.field(metadata=metadata)
    if isinstance(default, dict):
        return dataclasses.field(default_factory=dict, metadata=metadata)
    return dataclasses.field(default=default, metadata=metadata)


def read_settings(
    kind: type[T],
    settings: Mapping[str, Any],
    *,
    backend: str,
    cwd: str | None = None,
    env: Mapping[str, str] | None = None,
) -> T:
    """A `kind`, which is a dataclass of `option`s. A task's own `cwd` replaces the setting, its `env` is added to it."""
    read = read_plain_settings(kind, settings, key=backend)
    for field in dataclasses.fields(kind):  # type: ignore[arg-type]
        value, least, most = getattr(read, field.name), field.metadata["least"], field.metadata["most"]
        key = f"{backend}.{field.name}"
        if isinstance(value, str) and ("\0" in value or "\n" in value):
            fail(key, f"must be one line of text, not {value!r}")
        if value is not None and least is not None and value < least:
            fail(key, f"must be at least {least}, not {value!r}")
        if value is not None and most is not None and value > most:
            fail(key, f"must be at most {most}, not {value!r}")
    of_task = {"cwd": cwd or read.cwd or "", "env": {**read.env, **(env or {})}}  # type: ignore[attr-defined]
    return dataclasses.replace(read, **of_task)  # type: ignore[type-var]


class EnvironmentSettings(NamedTuple):
    """Everything needed to make the environment again, also in another process: `EnvironmentSettings(**json.loads(text))`.
    Only the names of secrets are in it; their values are read when it is opened."""

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
        backend, env = backends.get(self.backend), {**secrets, **self.env}
        environment = backend.from_settings(self.options, task_id=self.task_id, cwd=self.cwd, env=env)
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
        options = {**_of_host(config, overrides), **options}
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
    from .command_input import check_variables  # imports subprocess, which a start does not need

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
        why = "the directory that this process was started in no longer exists; set terminal.cwd, or a cwd for the task"
        raise ToolFailed(why) from None


def journal_settings(config: Config) -> dict[str, Any]:
    """For `LiveEnvironment.effects`, without limits at which somebody would be asked."""
    names = ("max_copy", "durable", "on_crash", "keep_days", "keep_bytes")
    return {name: getattr(config.effects, name) for name in names}


def _of_host(config: Config, overrides: Mapping[str, Any]) -> dict[str, Any]:
    """For commands and file tools on this machine."""
    return {
        "roots": list(config.files.roots),
        "max_read_bytes": config.files.max_read_bytes,
        "max_write_bytes": config.files.max_write_bytes,
        "profile": Profile(overrides.get("profile") or config.terminal.profile).value,
        "protect": config.terminal.protect,
        "protect_package": config.protect.package,
        "allow_sockets": list(config.terminal.allow_sockets),
        "home": config.home,
        "hidden_files": secret_files(config.secrets) if config.secrets else [],
    }
