"""Change a configuration file key by key, keeping its comments, order and quotes."""

from __future__ import annotations

import copy
import dataclasses
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ..errors import ConfigError
from ..settings.schema import Config
from ..types import JsonDict
from .confirmed import Confirmed
from .files import locked, read_text, write_text
from .paths import config_path, state_dir
from .store import read_config
from .strength import settings_in
from .validation import Key, build, check, checked, known_steps, plain, schema_at
from .yaml_document import Document, parse
from .yaml_edit import rewritten, same


class ConfigFile:
    """One configuration file, read and changed key by key. A change keeps the file's comments, order and quotes.

    It is also confirmed, in `confirmed`; for the user's own file by default. What else waits in the file is not.
    """

    def __init__(self, path: str | os.PathLike[str] | None = None, confirmed: Confirmed | None = None) -> None:
        self.path = config_path() if path is None else Path(path)
        self._confirmed = Confirmed(state_dir()) if path is None else confirmed

    def load(self, environ: Mapping[str, str] | None = None) -> Config:
        """The file's settings, overridden by those in `environ`, if that is given."""
        return read_config(self.path, environ)

    def get(self, key: Key) -> Any:
        """The value of a key such as `files.roots`: the file's, else the default. None for an undefined name."""
        steps = known_steps(key)
        value = plain(dataclasses.asdict(self.load()))
        for step in steps:
            if step not in value:
                return copy.deepcopy(schema_at(steps).get("default"))
            value = value[step]
        return value

    def set(self, key: Key, value: Any) -> Config:
        """Give `key` a value. Text from a command line goes through `parse_value` first."""
        steps = known_steps(key)

        def change(settings: JsonDict) -> None:
            for step in steps[:-1]:
                settings = settings.setdefault(step, {})
            settings[steps[-1]] = value

        return self.update(change)

    def unset(self, key: Key) -> Config:
        """Remove `key` from the file, so that its default applies again."""
        steps = known_steps(key)

        def change(settings: JsonDict) -> None:
            for step in steps[:-1]:
                settings = settings.get(step, {})
            settings.pop(steps[-1], None)

        return self.update(change)

    def update(self, function: Callable[[JsonDict], object]) -> Config:
        """Let `function` change the file's settings in place, while no other writer can; returns the new configuration.

        It gets the file's own settings, without defaults. If it raises, or leaves invalid settings, nothing is written.
        It must not write to this file itself: the lock is taken.
        """
        with locked(self.path) as target:
            document, settings = _settings_in(read_text(target) or "", self.path)
            wanted = copy.deepcopy(settings)
            function(wanted)
            wanted = plain(wanted)
            check(wanted, path=str(self.path))
            if not same(wanted, settings):
                write_text(target, _changed_text(document, settings, wanted))
        config = build(wanted)
        if self._confirmed is not None:
            self._confirm(function, config, self._confirmed)
        return config

    def _confirm(self, function: Callable[[JsonDict], object], config: Config, confirmed: Confirmed) -> None:
        """Let the same change hold in what was confirmed before."""
        before = confirmed.config(self.path)
        if before is not None:
            settings = settings_in(before)
            function(settings)
            check(settings, path=str(self.path))
            config = build(settings)
        confirmed.confirm(self.path, config)


def _settings_in(text: str, path: Path) -> tuple[Document, JsonDict]:
    """The settings that a file's text holds, checked."""
    document = parse(text, path=str(path))
    return document, checked(document)


def _changed_text(document: Document, settings: JsonDict, wanted: JsonDict) -> str:
    try:
        text = rewritten(document, settings, wanted)
        understood = same(_settings_in(text, Path(document.path))[1], wanted)
        reason = "it is written in an unusual way"
    except ConfigError as error:
        understood, reason = False, str(error)
    if not understood:
        raise ConfigError(f"cannot be changed safely ({reason}); edit it by hand", path=document.path)
    return text
