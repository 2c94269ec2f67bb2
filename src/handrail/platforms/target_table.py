"""The targets of the configuration, by name."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from ..base.suggest import did_you_mean, nearest
from ..errors import ConfigError, InvalidArguments
from ..settings.reader import read_settings
from ..types import Unavailable

if TYPE_CHECKING:
    from .message import Target


@cache
def kinds() -> tuple[str, ...]:
    """The kinds that there are: a file each."""
    return tuple(sorted(path.stem for path in Path(__file__).with_name("targets").glob("[a-z]*.py")))


def target_of(name: str, targets: Mapping[str, Mapping[str, Any]]) -> Target:
    """Raises InvalidArguments for a name that is not configured, ConfigError for one that is not configured well."""
    if name not in targets:
        near = nearest(name, targets)
        raise InvalidArguments(
            f"there is no target {name!r}; {did_you_mean(name, targets)}",
            argument="target",
            known=sorted(targets),
            **({"did_you_mean": near} if near else {}),
        )
    settings = dict(targets[name])
    kind = settings.pop("kind", None)
    key = f"messages.targets.{name}"
    if kind not in kinds():
        raise ConfigError(f"{kind!r} is no kind of target; {did_you_mean(kind, kinds())}", key=f"{key}.kind")
    module = import_module(f"{__package__}.targets.{kind}")
    try:
        return cast("Target", read_settings(module.Target, settings, key=key))
    except ConfigError as error:
        raise error if error.key else ConfigError(str(error), key=key) from None


def first_usable(targets: Mapping[str, Mapping[str, Any]]) -> Unavailable | bool:
    """Whether anyone of them can be written to, as far as can be told without asking a server."""
    reasons: list[str] = []
    for name in targets:
        try:
            why: object = target_of(name, targets).check()
        except ConfigError as error:
            why = error
        if why is None:
            return True
        reasons.append(f"{name}: {why}")
    return Unavailable("; ".join(reasons), "look at messages.targets in config.yaml")
