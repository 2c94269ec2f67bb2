"""Options of a backend with a text and limits each, and how a task's own `cwd` and `env` are added."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, TypeVar

from ..config import settings_reader as reader

T = TypeVar("T")


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
    read = reader.read_settings(kind, settings, key=backend)
    for field in dataclasses.fields(kind):  # type: ignore[arg-type]
        value, least, most = getattr(read, field.name), field.metadata["least"], field.metadata["most"]
        key = f"{backend}.{field.name}"
        if isinstance(value, str) and ("\0" in value or "\n" in value):
            reader.fail(key, f"must be one line of text, not {value!r}")
        if value is not None and least is not None and value < least:
            reader.fail(key, f"must be at least {least}, not {value!r}")
        if value is not None and most is not None and value > most:
            reader.fail(key, f"must be at most {most}, not {value!r}")
    of_task = {"cwd": cwd or read.cwd or "", "env": {**read.env, **(env or {})}}  # type: ignore[attr-defined]
    return dataclasses.replace(read, **of_task)  # type: ignore[type-var]
