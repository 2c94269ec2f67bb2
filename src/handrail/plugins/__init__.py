"""Plugins: tools, hooks and more from outside, and the hooks that Handrail calls.

`hook_specs` is the manual of every hook, with `hookimpl`, `Block`, `Ask` and `Change`; `hook_manager` calls them; `command_hooks`
are hooks that are external commands. `sources` finds plugins, `plugin_files` and `manifest` read them, `loader` loads them,
`api` is what a plugin's `register(api)` gets, `calling_plugin` tells whose code is calling.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..base.lazy_module import by_name, lazy_module

if TYPE_CHECKING:
    from .api import PluginApi
    from .hook_manager import HookManager, hooks, invoke_hook
    from .hook_specs import HOOK_NAMES, Ask, Block, Change, HookSpecs, hookimpl
    from .loader import Plugin, Plugins, State
    from .plugin_files import write_template
    from .sources import Found, Source, find_plugins

_HOMES = by_name(
    {
        "handrail.plugins.hook_specs": "hookimpl HookSpecs HOOK_NAMES Block Ask Change",
        "handrail.plugins.hook_manager": "HookManager hooks invoke_hook",
        "handrail.plugins.sources": "find_plugins Found Source",
        "handrail.plugins.loader": "Plugin Plugins State",
        "handrail.plugins.plugin_files": "write_template",
        "handrail.plugins.api": "PluginApi",
        "handrail.model_tools": "discover_plugins",
    }
)
__all__ = [
    "HOOK_NAMES",
    "Ask",
    "Block",
    "Change",
    "Found",
    "HookManager",
    "HookSpecs",
    "Plugin",
    "PluginApi",
    "Plugins",
    "Source",
    "State",
    "discover_plugins",
    "find_plugins",
    "hookimpl",
    "hooks",
    "invoke_hook",
    "write_template",
]
__getattr__, __dir__ = lazy_module(__name__, _HOMES)
