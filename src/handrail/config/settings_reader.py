"""Read a settings dataclass from a mapping, such as a section of a configuration file. Nothing is loaded or stored here."""

import dataclasses
from collections.abc import Mapping
from typing import Any, NoReturn, TypeVar, get_args, get_origin, get_type_hints

from ..base.suggest import did_you_mean
from ..errors import ConfigError
from ..settings.schema import optional_of

T = TypeVar("T")

_TYPE_NAMES = {str: "text", bool: "true or false", int: "a whole number", float: "a number"}


def read_settings(kind: type[T], settings: Mapping[str, Any], *, key: str) -> T:
    """Build `kind` from these settings. Raises ConfigError for an unknown key, a wrong type and a missing value. A field's type
    is a basic type, a tuple or a Mapping of one, a class with a class method `parse`, or one of these or None."""
    hints = get_type_hints(kind)
    fields: dict[str, dataclasses.Field[Any]] = {item.name: item for item in dataclasses.fields(kind)}  # type: ignore[arg-type]
    for name in settings:
        if name not in fields:
            fail(f"{key}.{name}", f"unknown key; {did_you_mean(name, fields)}")
    values = {name: _value(f"{key}.{name}", hints[name], value) for name, value in settings.items()}
    for name, item in fields.items():
        is_needed = item.default is dataclasses.MISSING and item.default_factory is dataclasses.MISSING
        if name not in values and is_needed:
            doc = item.metadata.get("doc")
            fail(f"{key}.{name}", f"is missing: {doc}" if doc else "is missing")
    return kind(**values)


def fail(key: str, message: str) -> NoReturn:
    raise ConfigError(message, key=key)


def _value(key: str, hint: Any, value: Any) -> Any:
    if optional := optional_of(hint):
        if value is None:
            return None
        hint = optional
    if hasattr(hint, "parse"):
        return hint.parse(value)
    if get_origin(hint) is tuple:
        if not isinstance(value, list | tuple):
            fail(key, f"must be a list, not {value!r}")
        return tuple(_value(key, get_args(hint)[0], item) for item in value)
    if get_origin(hint) is Mapping:
        if not isinstance(value, Mapping):
            fail(key, f"must be a mapping, not {value!r}")
        return {str(name): _value(f"{key}.{name}", get_args(hint)[1], item) for name, item in value.items()}
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if not isinstance(value, hint) or (isinstance(value, bool) and hint is not bool):
        fail(key, f"must be {_TYPE_NAMES[hint]}, not {value!r}")
    return value
