"""Edit the configuration file, so that it is never replaced by one that does not work."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from ..config import config_path, json_schema
from ..config.files import locked, read_text, write_text
from ..config.validation import checked
from ..config.yaml_document import parse
from ..errors import ConfigError
from .output import say

if TYPE_CHECKING:
    from ..types import JsonDict


def edit_config() -> None:
    """Edit a copy, again until it is valid, then put it in the file's place. Raises ConfigError."""
    path = config_path()
    before = read_text(path)
    start = template() if before is None else before
    with tempfile.TemporaryDirectory(prefix="handrail-config-") as folder:
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
    say(f"{path} is changed")


def template() -> str:
    """A file to start from: every setting, commented out, with its documentation and default."""
    lines = ["# Handrail's configuration. Take away the # before what you want to set, and before its section.", ""]
    for name, schema in json_schema()["properties"].items():
        lines += [*_section(name, schema), ""]
    return "\n".join(lines)


def _section(name: str, schema: JsonDict) -> Iterator[str]:
    yield from _comment(schema["description"], indent=0)
    if not schema.get("properties"):
        yield f"#{name}: {json.dumps(schema.get('default', {}))}"
        return
    yield f"#{name}:"
    for key, setting in schema["properties"].items():
        yield from _comment(setting.get("description", ""), indent=2)
        yield f"#  {key}: {json.dumps(setting.get('default'))}"


def _comment(text: str, *, indent: int) -> list[str]:
    mark = f"{' ' * indent}# "
    return textwrap.wrap(text, 100, initial_indent=mark, subsequent_indent=mark)


def _edited(copy: Path, path: Path) -> str:
    """The text when the editor was left with a valid one."""
    while True:
        _open_editor(copy)
        text = read_text(copy) or ""
        try:
            checked(parse(text, path=str(path)))
        except ConfigError as error:
            if not _wants_to_go_on(error):
                raise ConfigError(f"{error}\nhandrail: nothing was changed; {_kept(text)}") from None
        else:
            return text


def _open_editor(file: Path) -> None:
    command = os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
    try:
        code = subprocess.run([*shlex.split(command), str(file)], check=False).returncode
    except (OSError, ValueError) as error:
        raise ConfigError(f"cannot start the editor {command!r}: {error}; set $VISUAL or $EDITOR") from None
    if code != 0:
        raise ConfigError(f"the editor {command!r} ended with exit code {code}; nothing was changed")


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
