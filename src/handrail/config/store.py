"""Load the configuration: its file, and the environment variables that override it (`HANDRAIL_<SECTION>_<FIELD>`).

What changes the file is in `config_file`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import ConfigError
from ..settings.schema import ANYTHING, Config, settings_of
from .files import read_text
from .paths import config_path

if TYPE_CHECKING:
    from ..types import JsonDict
    from .validation import Key


def load_config(path: str | os.PathLike[str] | None = None, *, environ: Mapping[str, str] | None = None) -> Config:
    """The file's settings, overridden by the environment's, with defaults for the rest.

    A missing file means defaults. One that cannot be read or is not valid raises ConfigError.
    """
    environ = os.environ if environ is None else environ
    path = config_path(environ=environ) if path is None else Path(path)
    text = read_text(path)
    if text is None and not override_names(environ):
        return Config()
    from .validation import build, checked  # loads the YAML parser, which most starts do not need
    from .yaml_document import parse

    settings = {} if text is None else checked(parse(text, path=str(path)))
    for section, values in overrides(environ).items():
        settings[section] = {**settings.get(section, {}), **values}
    return build(settings)


def read_config(path: str | os.PathLike[str], environ: Mapping[str, str] | None = None) -> Config:
    """The settings of one file, overridden by those in `environ`, if that is given."""
    return load_config(path, environ=environ or {})


def located(error: ConfigError, path: str | os.PathLike[str] | None = None) -> ConfigError:
    """The same error, with the file and the line of its key, where that is known."""
    path = config_path() if path is None else Path(path)
    if error.path or not error.key or (text := read_text(path)) is None:
        return error
    from .yaml_document import dotted, parse

    lines = {dotted(steps): line for steps, line in parse(text, path=str(path)).lines.items()}
    message = str(error).removeprefix(f"{error.key}: ")
    return ConfigError(message, path=str(path), line=lines.get(error.key), key=error.key)


_PREFIX = "HANDRAIL_"
# The names of sections that stand for their most important setting.
_SHORT = {"HANDRAIL_TERMINAL": ("terminal", "backend"), "HANDRAIL_MODEL": ("model", "name")}


def override_names(environ: Mapping[str, str]) -> list[str]:
    """The variables that mean a setting. Others with the prefix, such as `HANDRAIL_HOME`, mean something else."""
    sections = tuple(_PREFIX + item.name.upper() for item in settings_of(Config))
    return sorted(
        name for name in environ if name in sections or name.startswith(tuple(section + "_" for section in sections))
    )


def overrides(environ: Mapping[str, str]) -> JsonDict:
    """The settings in the environment, checked. Raises for a name or value that cannot be used."""
    from .validation import check

    settings: JsonDict = {}
    for variable in override_names(environ):
        section, name = _setting_of(variable)
        try:
            value = parse_value((section, name), environ[variable], separator=os.pathsep)
        except ConfigError as error:
            raise ConfigError(str(error), key=variable) from None
        check({section: {name: value}}, key=variable)
        settings.setdefault(section, {})[name] = value
    return settings


def parse_value(key: Key, text: str, *, separator: str = "") -> Any:
    """The value that `text`, from a command line or a variable, means for the setting `key`.

    Text stays text. A list is `[a, b]`, or its items between separators, or one item. All else is a YAML scalar.
    """
    from .validation import known_steps, schema_at
    from .yaml_document import parse

    schema = schema_at(known_steps(key))
    kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    if len(kinds) == len(ANYTHING):
        return parse(text).value
    if "string" in kinds:
        return text
    # An empty variable is mostly a slip (`X=$UNSET`), and an empty list of roots would lift the limit.
    if not text.strip():
        raise ConfigError("is empty; give a value, such as [] for an empty list, or remove it")
    is_yaml = text.lstrip().startswith("[") or ("null" in kinds and text.strip() == "null")
    if "array" in kinds and not is_yaml:
        return text.split(separator) if separator else [text]
    return parse(text).value


def _setting_of(variable: str) -> tuple[str, str]:
    from .validation import nearest, schema_at

    if variable in _SHORT:
        return _SHORT[variable]
    sections = schema_at(())["properties"]
    section = max((name for name in sections if variable.startswith(_PREFIX + name.upper())), key=len)
    names = {name.upper(): name for name in sections[section].get("properties", ())}
    prefix = f"{_PREFIX}{section.upper()}_"
    name = variable.removeprefix(prefix)
    if not names:
        raise ConfigError(f"{section} cannot be set by the environment; set it in config.yaml", key=variable)
    if name not in names:
        raise ConfigError(f"unknown setting; {nearest(name, names, prefix=prefix)}", key=variable)
    return section, names[name]
