"""Read and change the configuration.

It is one YAML file; its comments and order stay as they are. Environment variables named HANDRAIL_SECTION_SETTING
override the file.

\b
Examples:
  handrail config show
  handrail config set files.roots '[~/work]'
  HANDRAIL_FILES_ROOTS=/tmp handrail config get files.roots
"""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from ...config import ConfigFile, config_path, load_config, parse_value
from ...config.environment_variables import override_names, overrides
from ...config.files import read_text
from ...config.validation import checked, plain
from ...config.yaml_document import parse
from .. import options
from ..config_editor import edit_config
from ..output import emit, emit_json, emit_table, say

if TYPE_CHECKING:
    from ...types import JsonDict

Key = Annotated[str, typer.Argument(metavar="KEY", help="A setting, such as files.roots.")]


cli = options.new_cli()


@cli.command()
def get(key: Key, as_json: options.Json = False) -> None:
    """Print the value of a setting that is in effect.

    It is the environment's, or else the file's, or else the default.

    \b
    Examples:
      handrail config get results.max_chars
      handrail config get files --json
    """
    value = effective(key)
    if as_json or isinstance(value, dict):
        emit_json(value)
    else:
        emit(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))


@cli.command("set")
def set_value(
    key: Key, value: Annotated[str, typer.Argument(metavar="VALUE", help="Text, a number, true, [a, b].")]
) -> None:
    """Set a value in the file.

    \b
    Examples:
      handrail config set results.max_chars 50000
      handrail config set tools.disabled_toolsets '[browser, rl]'
    """
    options.refuse_agents("change the configuration")
    file = ConfigFile()
    file.set(key, parse_value(key, value))
    _say_what_holds(key, f"is set in {file.path}")


@cli.command()
def unset(key: Key) -> None:
    """Remove a setting from the file, so that its default applies again.

    \b
    Example:
      handrail config unset files.roots
    """
    options.refuse_agents("change the configuration")
    file = ConfigFile()
    file.unset(key)
    _say_what_holds(key, f"is no longer set in {file.path}")


@cli.command()
def path() -> None:
    """Print where the file is. It need not exist.

    \b
    Example:
      cp "$(handrail config path)" backup.yaml
    """
    emit(str(config_path()))


@cli.command()
def edit() -> None:
    """Edit the file in $VISUAL or $EDITOR.

    You edit a copy, which replaces the file once it is valid. If it is not, you see why and can edit again.

    \b
    Example:
      EDITOR=nano handrail config edit
    """
    options.refuse_agents("change the configuration")
    edit_config()


@cli.command()
def show(as_json: options.Json = False) -> None:
    """Print every setting, its value, and where that comes from.

    \b
    Examples:
      handrail config show
      handrail config show --json | jq .files
    """
    if as_json:
        emit_json(effective_config())
        return
    rows = [(setting.key, _inline(setting.value), setting.source) for setting in listed()]
    emit_table(("SETTING", "VALUE", "FROM"), rows, wide=1)


def _inline(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _say_what_holds(key: str, done: str) -> None:
    variable = overriding_variable(key, os.environ)
    say(f"{key} {done}" + (f"; but {variable} is set in this environment, and overrides it" if variable else ""))


class Setting(NamedTuple):
    key: str
    value: Any
    source: str


def effective_config() -> JsonDict:
    """Every setting with the value that holds. Raises ConfigError."""
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
    path = ConfigFile().path
    return checked(parse(read_text(path) or "", path=str(path)))


def _flat(settings: JsonDict, prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in settings.items():
        if isinstance(value, dict) and value:
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value
