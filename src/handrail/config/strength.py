"""Whether a configuration became weaker: what a change of each setting means for the gate.

Every setting has a direction. A change in the safe direction holds at once; any other is held back, setting by setting, until a
person confirms it. A setting that is not listed here has no safe direction: each change of it counts as weaker.
"""

import dataclasses
from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase
from functools import partial
from typing import Any, NamedTuple

from ..base.safe_text import mask_secrets
from ..settings.schema import Config
from ..settings.sections import Section, settings_of

_MAX_SHOWN = 60


class Change(NamedTuple):
    """A setting that became weaker: what holds, and what the file says."""

    key: str
    before: Any
    after: Any

    def __str__(self) -> str:
        return f"{self.key}: {_shown(self.before)} -> {_shown(self.after)}"


# Takes the value before and the wanted one, returns the one that holds: where that is not the wanted one, this is weaker.
Direction = Callable[[Any, Any], Any]


def _either(_: Any, wanted: Any) -> Any:
    """A matter of taste, speed or space."""
    return wanted


def _never(before: Any, _: Any) -> Any:
    return before


def _limit(before: Any, wanted: Any) -> Any:
    """The lower is stricter, but 0 is no limit."""
    return before if before and (not wanted or wanted > before) else wanted


def _longer(before: Any, wanted: Any) -> Any:
    """A list that forbids."""
    return (*wanted, *(each for each in before if each not in wanted))


def _shorter(before: Any, wanted: Any) -> Any:
    """A list that allows."""
    return tuple(each for each in wanted if each in before)


def _only(no_limit: tuple[str, ...] | None) -> Direction:
    """A list that allows nothing but what is on it, with the value that means no limit."""

    def kept(before: Any, wanted: Any) -> Any:
        both = wanted if before == no_limit else before if wanted == no_limit else _shorter(before, wanted)
        return before if both == no_limit else both

    return kept


def _first_of(*values: Any) -> Direction:
    """From the strictest on."""
    return partial(min, key=values.index)


# The directions, each with its keys; `*` stands for one name.
_DIRECTIONS: tuple[tuple[Direction, str], ...] = (
    (_first_of("manual", "smart", "off"), "approvals.mode"),
    (_first_of("deny", "queue"), "approvals.headless"),
    (_first_of("refuse", "replace"), "tools.on_collision"),
    (_first_of("sealed", "contained", "open"), "terminal.profile"),
    (_first_of("on", "auto", "off"), "network.contain"),
    (_first_of(True, False), "terminal.protect protect.package effects.enabled"),
    (_only(None), "tools.enabled_toolsets"),
    (_only(()), "files.roots"),
    (min, "approvals.task_minutes approvals.task_uses"),
    (max, "approvals.history_max_bytes effects.keep_days effects.keep_bytes effects.max_copy"),
    (_limit, "effects.pause.files effects.pause.megabytes"),
    (_longer, "approvals.deny approvals.ask_tools tools.disabled_toolsets network.deny skills.disabled"),
    (
        _shorter,
        "approvals.allow command_allowlist terminal.allowed_secrets terminal.allow_sockets network.allow network.lists",
    ),
    (
        _either,
        "approvals.timeout approvals.smart_timeout tools.max_context_share files.max_read_bytes files.max_write_bytes "
        "effects.on_crash effects.durable effects.witness terminal.timeout terminal.max_timeout terminal.idle_seconds "
        "terminal.pool terminal.max_output_chars terminal.max_stored_bytes code.timeout code.max_timeout "
        "code.max_tool_calls processes.* results.* calls.batch_timeout calls.max_* schedule.timezone schedule.max_* "
        "schedule.timeout schedule.keep_runs rollouts.max_* rollouts.reward_timeout",
    ),
)
# Of groups under names: whether an entry that is new, or is gone, makes it stricter. A changed one is never known to.
_NEW_IS_STRICTER = frozenset({"approval_rules"})
_GONE_IS_STRICTER = frozenset({"mcp_servers"})
_NOTHING = "nothing"


def held_back(before: Config, wanted: Config) -> tuple[Config, list[Change]]:
    """The wanted configuration without what makes it weaker than the one before, and what that is."""
    changes: list[Change] = []
    values: dict[str, Any] = {}
    for item in settings_of(Config):
        old, new = getattr(before, item.name), getattr(wanted, item.name)
        if old == new:
            continue
        keep = _section if isinstance(old, Section) else _group if isinstance(old, Mapping) else _kept
        values[item.name] = keep(item.name, old, new, changes)
    return dataclasses.replace(wanted, **values), changes


def settings_in(config: Config) -> dict[str, Any]:
    """What differs from the defaults, as plain values: a file that says it would be read as this configuration."""
    return _different(config, Config())


def _section(name: str, old: Section, new: Section, changes: list[Change]) -> Section:
    kept = {
        item.name: _kept(f"{name}.{item.name}", getattr(old, item.name), getattr(new, item.name), changes)
        for item in settings_of(type(old))
    }
    return dataclasses.replace(new, **kept)


def _kept(key: str, old: Any, new: Any, changes: list[Change]) -> Any:
    if old == new:
        return new
    found = (each for each, keys in _DIRECTIONS if any(fnmatchcase(key, pattern) for pattern in keys.split()))
    direction: Direction = next(found, _never)
    kept = direction(old, new)
    if kept != new:
        changes.append(Change(key, old, new))
    return kept


def _group(name: str, old: Mapping[str, Any], new: Mapping[str, Any], changes: list[Change]) -> dict[str, Any]:
    kept: dict[str, Any] = {}
    for key in dict.fromkeys([*new, *old]):
        before, after = old.get(key), new.get(key)
        stricter = (key not in old and name in _NEW_IS_STRICTER) or (key not in new and name in _GONE_IS_STRICTER)
        if before != after and not stricter:
            shown = [_NOTHING if each is None else each for each in (before, after)]
            changes.append(Change(f"{name}.{key}", *shown))
        value = after if before == after or stricter else before
        if value is not None:
            kept[key] = value
    return kept


def _different(value: Any, default: Any) -> dict[str, Any]:
    pairs = {item.name: (getattr(value, item.name), getattr(default, item.name)) for item in settings_of(type(value))}
    return {name: _plain(mine, usual) for name, (mine, usual) in pairs.items() if mine != usual}


def _plain(value: Any, default: Any = None) -> Any:
    if isinstance(value, Section):
        return _different(value, default if type(default) is type(value) else type(value)())
    if isinstance(value, Mapping):
        return {name: _plain(each) for name, each in value.items()}
    return [_plain(each) for each in value] if isinstance(value, list | tuple) else value


def _shown(value: Any) -> str:
    text = mask_secrets(value if isinstance(value, str) else str(_plain(value)))
    return text if len(text) <= _MAX_SHOWN else text[: _MAX_SHOWN - 1] + "…"
