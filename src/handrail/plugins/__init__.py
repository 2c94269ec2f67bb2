"""Plugins: tools, hooks and more from outside, and the hooks that Handrail calls.

`hooks` is the manual of every hook, with `hookimpl`, `Block`, `Ask` and `Change`; `hook_manager` calls them; `command_hooks`
are hooks that are external commands. `sources` finds plugins, `plugin_files` and `manifest` read them, `loader` loads them,
`api` is what a plugin's `register(api)` gets, `calling_plugin` tells whose code is calling, `contributions` hands what
plugins add to the gate and the environments, and `template` writes a new plugin.
"""

# ruff: noqa: F401  type checkers read the imports; at run time `__getattr__` loads a name when it is first used

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .api import PluginApi
    from .hook_manager import HookManager, hooks, invoke_hook
    from .hooks import HOOK_NAMES, Ask, Block, Change, HookSpecs, hookimpl
    from .loader import Plugin, Plugins, State
    from .sources import Found, Source, find_plugins
    from .template import write_template

_HOMES = {
    "hookimpl": ".hooks",
    "HookSpecs": ".hooks",
    "HOOK_NAMES": ".hooks",
    "Block": ".hooks",
    "Ask": ".hooks",
    "Change": ".hooks",
    "HookManager": ".hook_manager",
    "hooks": ".hook_manager",
    "invoke_hook": ".hook_manager",
    "discover_plugins": "handrail.model_tools",
    "find_plugins": ".sources",
    "Found": ".sources",
    "Source": ".sources",
    "Plugin": ".loader",
    "Plugins": ".loader",
    "State": ".loader",
    "PluginApi": ".api",
    "write_template": ".template",
}

__all__ = [*_HOMES]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name], __name__), name)


def __dir__() -> list[str]:
    return __all__
