"""The configured targets and accounts, by name."""

import asyncio
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple, cast

from ..base.suggest import did_you_mean, nearest
from ..base.workers import Turns
from ..config.settings_reader import read_settings
from ..errors import ConfigError, InvalidArguments, ToolFailed
from ..types import Unavailable
from .base import ChatAdapter, SendTarget


class Account(NamedTuple):
    """An adapter under its configured name. `home`: the chat for questions that come from no chat."""

    name: str
    kind: str
    home: str
    adapter: ChatAdapter


@cache
def _files() -> frozenset[str]:
    return frozenset(path.stem for path in Path(__file__).parent.glob("[a-z]*.py"))


def platforms(role: str) -> list[str]:
    """The platforms whose file has a `Target`, or an `Adapter`."""
    return sorted(name for name in _files() if hasattr(import_module(f"{__package__}.{name}"), role))


def _platform(kind: object, role: str, *, what: str, key: str) -> ModuleType:
    if kind in _files():
        module = import_module(f"{__package__}.{kind}")
        if hasattr(module, role):
            return module
    hint = did_you_mean(str(kind), platforms(role))
    raise ConfigError(f"{kind!r} is not a kind of {what}; {hint}", key=f"{key}.kind")


def accounts(configured: Mapping[str, Mapping[str, Any]]) -> list[Account]:
    """Raises ConfigError for an account whose configuration is wrong."""
    found = []
    for name, given in configured.items():
        settings, key = dict(given), f"gateway.accounts.{name}"
        kind, home = str(settings.pop("kind", "")), str(settings.pop("home", ""))
        module = _platform(kind, "Adapter", what="account", key=key)
        found.append(Account(name, kind, home, module.Adapter(read_settings(module.Settings, settings, key=key))))
    return found


def target_of(name: str, targets: Mapping[str, Mapping[str, Any]]) -> SendTarget:
    """Raises InvalidArguments for an unknown name, ConfigError for a target whose configuration is wrong."""
    if name not in targets:
        near = nearest(name, targets)
        raise InvalidArguments(
            f"there is no target {name!r}; {did_you_mean(name, targets)}",
            argument="target",
            known=sorted(targets),
            **({"did_you_mean": near} if near else {}),
        )
    settings = dict(targets[name])
    key = f"messages.targets.{name}"
    module = _platform(settings.pop("kind", None), "Target", what="target", key=key)
    try:
        return cast("SendTarget", read_settings(module.Target, settings, key=key))
    except ConfigError as error:
        raise error if error.key else ConfigError(str(error), key=key) from None


def first_usable(targets: Mapping[str, Mapping[str, Any]]) -> Unavailable | bool:
    """True if any target can be used, as far as can be known without asking its server; else why none can."""
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


class RemoteUser:
    """A user at a target. One question at a time; after `seconds` without a reply the answer is None."""

    def __init__(self, name: str, targets: Mapping[str, Mapping[str, Any]], *, seconds: float) -> None:
        self._name, self._targets, self._seconds = name, targets, seconds
        self._turns = Turns()

    async def ask(self, question: str, choices: Sequence[str]) -> str | None:
        target = target_of(self._name, self._targets)
        if (ask := getattr(target, "ask", None)) is None:
            raise ToolFailed(f"messages.person names {self._name!r}, where nobody can write back; tell the user")
        numbered = [f"{number}. {choice}" for number, choice in enumerate(choices, 1)]
        hint = f"Answer with 1-{len(choices)}, or in your own words." if choices else "Answer here."
        turn = self._turns.take()
        try:
            await asyncio.wrap_future(turn)
            answer = await ask("\n".join([question, *numbered, hint]), seconds=self._seconds)
            return None if answer is None else chosen(answer, choices)
        finally:
            self._turns.leave(turn)


def chosen(answer: str, choices: Sequence[str]) -> str:
    """The choice that a number stands for; any other answer unchanged."""
    answer = answer.strip()
    if answer.isascii() and answer.isdigit() and 1 <= int(answer) <= len(choices):
        return choices[int(answer) - 1]
    return answer
