"""Read and change the configuration.

It is one YAML file; its comments and order stay as they are. Environment variables named HANDRAIL_SECTION_SETTING go
before the file.

\b
Examples:
  handrail config show
  handrail config set files.roots '[~/work]'
  HANDRAIL_FILES_ROOTS=/tmp handrail config get files.roots
"""

from __future__ import annotations

import json
import os
from typing import Annotated, Any

import typer

from .. import options

Key = Annotated[str, typer.Argument(metavar="KEY", help="A setting, such as files.roots.")]


cli = options.new_cli()


@cli.command()
def get(key: Key, as_json: options.Json = False) -> None:
    """Print the value that holds for a setting.

    It is the environment's, or else the file's, or else the default.

    \b
    Examples:
      handrail config get results.max_chars
      handrail config get files --json
    """
    from ..output import emit, emit_json
    from ..setting_sources import effective

    value = effective(key)
    if as_json or isinstance(value, dict):
        emit_json(value)
    else:
        emit(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))


@cli.command("set")
def set_value(
    key: Key, value: Annotated[str, typer.Argument(metavar="VALUE", help="Text, a number, true, [a, b].")]
) -> None:
    """Give a setting a value, in the file.

    \b
    Examples:
      handrail config set results.max_chars 50000
      handrail config set tools.disabled_toolsets '[browser, rl]'
    """
    from ...config import ConfigFile, parse_value
    from ..approval_answers import refuse_inside

    refuse_inside("change the configuration")
    file = ConfigFile()
    file.set(key, parse_value(key, value))
    _say_what_holds(key, f"is set in {file.path}")


@cli.command()
def unset(key: Key) -> None:
    """Take a setting out of the file, so that its default holds again.

    \b
    Example:
      handrail config unset files.roots
    """
    from ...config import ConfigFile
    from ..approval_answers import refuse_inside

    refuse_inside("change the configuration")
    file = ConfigFile()
    file.unset(key)
    _say_what_holds(key, f"is not set in {file.path} any more")


@cli.command()
def path() -> None:
    """Print where the file is. It need not exist.

    \b
    Example:
      cp "$(handrail config path)" backup.yaml
    """
    from ...config import config_path
    from ..output import emit

    emit(str(config_path()))


@cli.command()
def edit() -> None:
    """Edit the file in $VISUAL or $EDITOR.

    You edit a copy, which takes the file's place when it is valid. If it is not, you are told why and can go on editing.

    \b
    Example:
      EDITOR=nano handrail config edit
    """
    from ..approval_answers import refuse_inside
    from ..config_editor import edit_config

    refuse_inside("change the configuration")
    edit_config()


@cli.command()
def show(as_json: options.Json = False) -> None:
    """Print every setting, its value, and where that comes from.

    \b
    Examples:
      handrail config show
      handrail config show --json | jq .files
    """
    from ..output import emit_json, emit_table
    from ..setting_sources import effective_config, listed

    if as_json:
        emit_json(effective_config())
        return
    rows = [(setting.key, _inline(setting.value), setting.source) for setting in listed()]
    emit_table(("SETTING", "VALUE", "FROM"), rows, wide=1)


def _inline(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _say_what_holds(key: str, done: str) -> None:
    from ..output import say
    from ..setting_sources import overriding_variable

    variable = overriding_variable(key, os.environ)
    say(f"{key} {done}" + (f"; but {variable} is set in this environment, and goes before it" if variable else ""))
