"""Read a backend's settings: known names, right kinds, and an error that names the setting otherwise."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, TypeVar, get_args, get_type_hints

from ..base.suggest import did_you_mean
from ..errors import ConfigError

T = TypeVar("T")


def option(default: Any, doc: str, *, least: float | None = None, most: float | None = None) -> Any:
    """A setting of a dataclass: its default, what it does, and its limits. `...` as the default: it must be given."""
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
    """A `kind`, which is a dataclass of `option`s. `cwd` and `env` are a task's own: the first wins, the second adds."""
    fields = {field.name: field for field in dataclasses.fields(kind)}  # type: ignore[arg-type]
    hints = get_type_hints(kind)
    for name, value in settings.items():
        if name not in fields:
            raise ConfigError(f"{backend}.{name} is not a setting; {did_you_mean(name, fields)}")
        if problem := _problem(hints[name], value, fields[name].metadata):
            raise ConfigError(f"{backend}.{name}: {problem}, not {value!r}")
    for name, field in fields.items():
        if name not in settings and _must_be_given(field):
            raise ConfigError(f"{backend}.{name} must be set: {field.metadata['doc']}")
    of_task = {"cwd": cwd or settings.get("cwd", ""), "env": {**settings.get("env", {}), **(env or {})}}
    return kind(**{**settings, **of_task})


def _must_be_given(field: dataclasses.Field[Any]) -> bool:
    return field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING


def _problem(hint: Any, value: Any, limits: Mapping[str, Any]) -> str:
    """What it must be, if it is not."""
    kinds = get_args(hint) if type(None) in get_args(hint) else (hint,)
    if value is None and type(None) in kinds:
        return ""
    kind = kinds[0]
    if kind is bool:
        return "" if isinstance(value, bool) else "it must be true or false"
    if kind in (int, float):
        is_number = isinstance(value, int if kind is int else (int, float)) and not isinstance(value, bool)
        return "" if is_number and _is_within(value, limits) else f"it must be {_number_text(kind, limits)}"
    if kind is str:
        is_text = isinstance(value, str) and "\0" not in value and "\n" not in value
        return "" if is_text else "it must be a text of one line"
    is_mapping = isinstance(value, Mapping) and all(isinstance(word, str) for pair in value.items() for word in pair)
    return "" if is_mapping else "it must be names with texts as values"


def _is_within(value: float, limits: Mapping[str, Any]) -> bool:
    least, most = limits["least"], limits["most"]
    return (least is None or value >= least) and (most is None or value <= most)


def _number_text(kind: type, limits: Mapping[str, Any]) -> str:
    word = "a whole number" if kind is int else "a number"
    bounds = [f"at least {limits['least']}"] if limits["least"] is not None else []
    bounds += [f"at most {limits['most']}"] if limits["most"] is not None else []
    return " ".join([word, " and ".join(bounds)]) if bounds else word
