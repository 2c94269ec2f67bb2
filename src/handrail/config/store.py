"""Load the configuration. What changes its file is in `config_file`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from ..errors import ConfigError
from ..settings.schema import Config
from .environment_variables import override_names, overrides
from .files import read_text
from .paths import config_path


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
