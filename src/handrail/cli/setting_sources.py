"""Which value holds for a setting, and where it comes from."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from ..config import ConfigFile, load_config
from ..config.environment_variables import override_names, overrides
from ..config.files import read_text

if TYPE_CHECKING:
    from ..types import JsonDict


class Setting(NamedTuple):
    key: str
    value: Any
    source: str


def effective_config() -> JsonDict:
    """Every setting with the value that holds. Raises ConfigError."""
    from ..config.validation import plain

    settings: JsonDict = plain(dataclasses.asdict(load_config()))
    return settings


def effective(key: str) -> Any:
    """The value that holds for a key. Raises ConfigError for one that does not exist."""
    value: Any = effective_config()
    fallback = ConfigFile().get(key)
    for step in key.split("."):
        if step not in value:
            return fallback
        value = value[step]
    return value


def listed() -> Iterator[Setting]:
    """Every setting and its source, in the order of the documentation."""
    in_file = dict(_flat(_settings_of_file()))
    for key, value in _flat(effective_config()):
        source = overriding_variable(key, os.environ) or ("file" if key in in_file else "default")
        yield Setting(key, value, source)


def overriding_variable(key: str, environ: Mapping[str, str]) -> str:
    """The environment variable that sets a key now, if one does."""
    variable = f"HANDRAIL_{key.replace('.', '_')}".upper()
    section, _, name = key.partition(".")
    if variable not in override_names(environ):
        return ""
    return variable if name in overrides({variable: environ[variable]}).get(section, {}) else ""


def _settings_of_file() -> JsonDict:
    from ..config.validation import checked
    from ..config.yaml_document import parse

    path = ConfigFile().path
    return checked(parse(read_text(path) or "", path=str(path)))


def _flat(settings: JsonDict, prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in settings.items():
        if isinstance(value, dict) and value:
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value
