"""The adapters of the configuration, by name."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ..base.suggest import did_you_mean
from ..errors import ConfigError
from ..settings.reader import read_settings

if TYPE_CHECKING:
    from .adapter import Adapter


class Account(NamedTuple):
    """An adapter under the name that the configuration gives it. `home`: where questions go that no chat has asked."""

    name: str
    kind: str
    home: str
    adapter: Adapter


@cache
def kinds() -> tuple[str, ...]:
    """The kinds that there are: a file each."""
    return tuple(sorted(path.stem for path in Path(__file__).with_name("adapters").glob("[a-z]*.py")))


def accounts(configured: Mapping[str, Mapping[str, Any]]) -> list[Account]:
    """Raises ConfigError for one that is not configured well."""
    return [_account(name, dict(settings)) for name, settings in configured.items()]


def _account(name: str, settings: dict[str, Any]) -> Account:
    key = f"gateway.accounts.{name}"
    kind, home = str(settings.pop("kind", "")), str(settings.pop("home", ""))
    if kind not in kinds():
        raise ConfigError(f"{kind!r} is no kind of account; {did_you_mean(kind, kinds())}", key=f"{key}.kind")
    module = import_module(f"{__package__}.adapters.{kind}")
    return Account(name, kind, home, module.Adapter(read_settings(module.Settings, settings, key=key)))
