"""The backends by name: the built-in ones, those of installed packages, and those that a plugin adds.

A backend is a class that fits `Backend`. A built-in one is the `BACKEND` of the file in `backends/` that has its name; a package
declares an entry point of the group `handrail.environments`. Nothing is imported before it is requested by name.
A backend may read its settings with `read_settings`: options with a text and limits each.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, cast

from ..base.suggest import did_you_mean
from ..config.settings_reader import fail
from ..config.settings_reader import read_settings as read_plain_settings
from .errors import UnknownEnvironment

if TYPE_CHECKING:
    from ..types import Unavailable
    from .base import Environment

T = TypeVar("T")

ENTRY_POINTS = "handrail.environments"
# Other names.
_ALIASES = {"singularity": "apptainer"}
_FOLDER = Path(__file__).parent / "backends"


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
