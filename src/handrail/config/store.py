"""Load the configuration, and change the file that it comes from."""

from __future__ import annotations

import copy
import dataclasses
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import ConfigError
from ..settings.schema import Config
from .environment_variables import override_names, overrides
from .files import locked, read_text, write_text
from .paths import config_path

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ..types import JsonDict
    from .validation import Key
    from .yaml_document import Document


def load_config(path: str | os.PathLike[str] | None = None, *, environ: Mapping[str, str] | None = None) -> Config:
    """The file's settings, overridden by the environment's; defaults where both are silent.

    A file that is not there means defaults. One that cannot be read or is not valid raises ConfigError.
    """
    environ = os.environ if environ is None else environ
    path = config_path(environ=environ) if path is None else Path(path)
    text = read_text(path)
    if text is None and not override_names(environ):
        return Config()
    from .validation import build

    settings = {} if text is None else _settings(text, path)[1]
    for section, values in overrides(environ).items():
        settings[section] = {**settings.get(section, {}), **values}
    return build(settings)


def located(error: ConfigError, path: str | os.PathLike[str] | None = None) -> ConfigError:
    """The same error, with the file and the line on which its key stands, where that can be told."""
    path = config_path() if path is None else Path(path)
    if error.path or not error.key or (text := read_text(path)) is None:
        return error
    from .yaml_document import dotted, parse

    lines = {dotted(steps): line for steps, line in parse(text, path=str(path)).lines.items()}
    message = str(error).removeprefix(f"{error.key}: ")
    return ConfigError(message, path=str(path), line=lines.get(error.key), key=error.key)


class ConfigFile:
    """One configuration file, read and changed key by key. A change keeps the file's comments, order and quotes."""

    def __init__(self, path: str | os.PathLike[str] | None = None) -> None:
        self.path = config_path() if path is None else Path(path)

    def load(self) -> Config:
        """What the file says, without the environment."""
        return load_config(self.path, environ={})

    def get(self, key: Key) -> Any:
        """The value of a key such as `files.roots`: the file's, else the default. None for a name nobody defined."""
        from .validation import known_steps, plain, schema_at

        steps = known_steps(key)
        value = plain(dataclasses.asdict(self.load()))
        for step in steps:
            if step not in value:
                return copy.deepcopy(schema_at(steps).get("default"))
            value = value[step]
        return value

    def set(self, key: Key, value: Any) -> Config:
        """Give `key` a value. Text from a command line goes through `parse_value` first."""
        from .validation import known_steps

        steps = known_steps(key)

        def change(settings: JsonDict) -> None:
            for step in steps[:-1]:
                settings = settings.setdefault(step, {})
            settings[steps[-1]] = value

        return self.update(change)

    def unset(self, key: Key) -> Config:
        """Take `key` out of the file, so that its default holds again."""
        from .validation import known_steps

        steps = known_steps(key)

        def change(settings: JsonDict) -> None:
            for step in steps[:-1]:
                settings = settings.get(step, {})
            settings.pop(steps[-1], None)

        return self.update(change)

    def update(self, function: Callable[[JsonDict], object]) -> Config:
        """Let `function` change the file's settings in place, while no other writer can; returns what then holds.

        It gets what the file says, without defaults. If it raises, or leaves what is not valid, nothing is written.
        It must not itself write to this file: the lock is taken.
        """
        from .validation import build, check, plain
        from .yaml_edit import same

        with locked(self.path) as target:
            document, settings = _settings(read_text(target) or "", self.path)
            wanted = copy.deepcopy(settings)
            function(wanted)
            wanted = plain(wanted)
            check(wanted, path=str(self.path))
            if not same(wanted, settings):
                write_text(target, _changed_text(document, settings, wanted))
        return build(wanted)


def _settings(text: str, path: Path) -> tuple[Document, JsonDict]:
    from .validation import checked
    from .yaml_document import parse

    document = parse(text, path=str(path))
    return document, checked(document)


def _changed_text(document: Document, settings: JsonDict, wanted: JsonDict) -> str:
    from .yaml_edit import rewritten, same

    try:
        text = rewritten(document, settings, wanted)
        understood = same(_settings(text, Path(document.path))[1], wanted)
        reason = "it is written in an unusual way"
    except ConfigError as error:
        understood, reason = False, str(error)
    if not understood:
        raise ConfigError(f"cannot be changed without harm ({reason}); edit it by hand", path=document.path)
    return text
