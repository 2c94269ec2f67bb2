"""Read and change the configuration.

It is one YAML file; its comments and order stay as they are. Environment variables named HANDRAIL_SECTION_SETTING
override the file.

Examples:
  handrail config show
  handrail config set files.roots '[~/work]'
  HANDRAIL_FILES_ROOTS=/tmp handrail config get files.roots
"""

import dataclasses
import json
import os
import shlex
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from ...approval.settings import policy_file, project_settings
from ...base.temporary_folders import temporary_folder
from ...config.config_file import ConfigFile
from ...config.paths import config_path, locked, read_text, state_dir, write_text
from ...config.store import (
    Confirmed,
    file_digests,
    hook_files,
    load_config,
    override_names,
    overrides,
    parse_value,
    read_config,
)
from ...config.strength import Change, held_back
from ...config.validation import checked, parse, plain
from ...errors import ConfigError
from ...settings.schema import Config, json_schema
from ...types import JsonDict
from ..options import Exit, Json, argument, new_cli, option, setting_names
from ..output import ExitCode, emit, emit_either, emit_table, say, visible
from ..runtime import confirmed_by_hand

cli = new_cli()
Key = Annotated[str, argument("KEY", "A setting, such as files.roots.", autocompletion=setting_names)]


@cli.command()
def get(key: Key, as_json: Json = False) -> None:
    """Print the value of a setting that is in effect.

    It is the environment's, or else the file's, or else the default.

    Examples:
      handrail config get results.max_chars
      handrail config get files --json
    """
    value = effective(key)
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    emit_either(value, text, as_json=as_json or isinstance(value, dict))


@cli.command("set")
def set_value(key: Key, value: Annotated[str, argument("VALUE", "Text, a number, true, [a, b].")]) -> None:
    """Set a value in the file.

    Examples:
      handrail config set results.max_chars 50000
      handrail config set tools.disabled_toolsets '[browser, rl]'
    """
    file = ConfigFile()
    file.set(key, parse_value(key, value))
    _say_what_holds(key, f"is set in {file.path}")


@cli.command()
def unset(key: Key) -> None:
    """Remove a setting from the file, so that its default applies again.

    Example:
      handrail config unset files.roots
    """
    file = ConfigFile()
    file.unset(key)
    _say_what_holds(key, f"is no longer set in {file.path}")


@cli.command()
def path() -> None:
    """Print where the file is. It need not exist.

    Example:
      cp "$(handrail config path)" backup.yaml
    """
    emit(str(config_path()))


@cli.command()
def edit() -> None:
    """Edit the file in $VISUAL or $EDITOR.

    You edit a copy, which replaces the file once it is valid. If it is not, you see why and can edit again.

    Example:
      EDITOR=nano handrail config edit
    """
    path = config_path()
    before = read_text(path)
    start = template() if before is None else before
    with temporary_folder("config") as folder:
        copy = Path(folder) / path.name
        copy.write_text(start, "utf-8")
        after = _edited(copy, path)
    if after == start:
        say("nothing was changed")
        return
    with locked(path) as target:
        if read_text(target) != before:
            raise ConfigError(f"was changed by someone else meanwhile; {_kept(after)}", path=str(path))
        write_text(target, after)
    wanted = read_config(path)  # you have seen all of it
    Confirmed(state_dir()).confirm(path, wanted, files=file_digests(hook_files(wanted, path.parent)))
    say(f"{path} is changed")


@cli.command()
def confirm(yes: Annotated[bool, option("--yes", "Do not ask.")] = False) -> None:
    """Accept the file as it is now, although it has become weaker.

    Changes that you make with `handrail config`, and a file that is there when you start Handrail at a terminal, need no
    confirmation. Services and processes that already run use weaker settings, also of a project's policy file, only after it.

    Example:
      handrail config confirm
    """
    confirmed, found = Confirmed(state_dir()), list(_waiting())
    for each in found:
        for change in each.changes:
            emit(visible(f"{each.path}: {change}"))
    if not any(each.changes for each in found):
        emit("Nothing waits.")
    elif not yes and not confirmed_by_hand("Does this hold from now on?"):
        raise Exit(ExitCode.FAILED)
    for each in found:
        confirmed.confirm(each.path, each.config, files=each.files)


class _File(NamedTuple):
    """A configuration file as it is, and what of it is not confirmed yet."""

    path: Path
    config: Config
    files: Mapping[str, str]
    changes: list[Change | str]


def _waiting() -> Iterator[_File]:
    confirmed, own, project = Confirmed(state_dir()), config_path(), policy_file()
    wanted = read_config(own)
    files, known = file_digests(hook_files(wanted, own.parent)), confirmed.files(own)
    pinned = [f"the hook's file {path} has changed" for path in files if known.get(path, files[path]) != files[path]]
    yield _File(own, wanted, files, [*held_back(confirmed.config(own) or wanted, wanted)[1], *pinned])
    if (project := project or confirmed.policy_above()) is not None:
        wanted = project_settings(project)
        yield _File(project, wanted, {}, [*held_back(confirmed.config(project) or wanted, wanted)[1]])


@cli.command()
def show(as_json: Json = False) -> None:
    """Print every setting, its value, and where that comes from.

    Examples:
      handrail config show --json | jq .files
    """
    path, settings, rows = ConfigFile().path, effective_config(), []
    in_file = dict(_flat(checked(parse(read_text(path) or "", path=str(path)))))
    for key, value in _flat(settings):
        source = overriding_variable(key, os.environ) or ("file" if key in in_file else "default")
        rows.append((key, json.dumps(value, ensure_ascii=False), source))
    emit_table(("SETTING", "VALUE", "FROM"), rows, settings, as_json=as_json, wide=1)


def _say_what_holds(key: str, done: str) -> None:
    variable = overriding_variable(key, os.environ)
    say(f"{key} {done}" + (f"; but {variable} is set in this environment, and overrides it" if variable else ""))


def effective_config() -> JsonDict:
    """Every setting with the value that holds. Raises ConfigError."""
    settings: JsonDict = plain(dataclasses.asdict(load_config()))
    return settings


def effective(key: str) -> Any:
    """The value that holds for a key. Raises ConfigError for one that does not exist."""
    value, fallback = effective_config(), ConfigFile().get(key)
    for step in key.split("."):
        if step not in value:
            return fallback
        value = value[step]
    return value


def overriding_variable(key: str, environ: Mapping[str, str]) -> str:
    """The environment variable that sets a key now, if one does."""
    variable = f"HANDRAIL_{key.replace('.', '_')}".upper()
    section, _, name = key.partition(".")
    if variable not in override_names(environ):
        return ""
    return variable if name in overrides({variable: environ[variable]}).get(section, {}) else ""


def _flat(settings: JsonDict, prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in settings.items():
        if isinstance(value, dict) and value:
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def template() -> str:
    """A file to start from: every setting, commented out, with its documentation and default."""
    lines = ["# Handrail's configuration. Take away the # before what you want to set, and before its section.", ""]
    for name, schema in json_schema()["properties"].items():
        whole = "" if schema.get("properties") else f" {json.dumps(schema.get('default', {}))}"
        lines += [*_comment(schema["description"], indent=0), f"#{name}:{whole}"]
        for key, setting in schema.get("properties", {}).items():
            lines += _comment(setting.get("description", ""), indent=2)
            lines.append(f"#  {key}: {json.dumps(setting.get('default'))}")
        lines.append("")
    return "\n".join(lines)


def _comment(text: str, *, indent: int) -> list[str]:
    mark = f"{' ' * indent}# "
    return textwrap.wrap(text, 100, initial_indent=mark, subsequent_indent=mark)


def _edited(copy: Path, path: Path) -> str:
    """The text when the editor was left with a valid one."""
    command = os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
    while True:
        try:
            code = subprocess.run([*shlex.split(command), str(copy)], check=False).returncode
        except (OSError, ValueError) as error:
            raise ConfigError(f"cannot start the editor {command!r}: {error}; set $VISUAL or $EDITOR") from None
        if code != 0:
            raise ConfigError(f"the editor {command!r} ended with exit code {code}; nothing was changed")
        text = read_text(copy) or ""
        try:
            checked(parse(text, path=str(path)))
        except ConfigError as error:
            if not _wants_to_go_on(error):
                raise ConfigError(f"{error}\nhandrail: nothing was changed; {_kept(text)}") from None
        else:
            return text


def _wants_to_go_on(error: ConfigError) -> bool:
    if not sys.stdin.isatty():
        return False
    say(str(error))
    sys.stderr.write("Edit it again? [Y/n] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in ("", "y", "yes")


def _kept(text: str) -> str:
    """Keep the edited text in a file of its own."""
    handle, name = tempfile.mkstemp(prefix="handrail-config-", suffix=".yaml")
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(text)
    return f"your text is kept in {name}"
