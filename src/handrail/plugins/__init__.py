"""Plugins: tools, hooks and more from outside, and the hooks that Handrail calls.

`hook_specs` is the manual of every hook, with `hookimpl`, `Block`, `Ask` and `Change`; `hook_manager` calls them; `command_hooks`
are hooks that are external commands. `plugin_files` reads plugins, `loader` loads them and tells whose code
is calling, `api` is what a plugin's `register(api)` gets.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..base.lazy_module import lazy_module

if TYPE_CHECKING:
    from ..config.paths import Found as Found
    from ..config.paths import Source as Source
    from ..config.paths import find_plugins as find_plugins
    from .api import PluginApi as PluginApi
    from .hook_manager import HookManager as HookManager
    from .hook_manager import hooks as hooks
    from .hook_manager import invoke_hook as invoke_hook
    from .hook_specs import HOOK_NAMES as HOOK_NAMES
    from .hook_specs import Ask as Ask
    from .hook_specs import Block as Block
    from .hook_specs import Change as Change
    from .hook_specs import HookSpecs as HookSpecs
    from .hook_specs import hookimpl as hookimpl
    from .loader import Plugin as Plugin
    from .loader import Plugins as Plugins
    from .loader import State as State
    from .plugin_files import write_template as write_template

    def discover_plugins() -> list[Plugin]: ...
else:
    __getattr__, __dir__, __all__ = lazy_module(
        __name__,
        {
            ".api": "PluginApi",
            ".hook_manager": "HookManager hooks invoke_hook",
            ".hook_specs": "HOOK_NAMES Ask Block Change HookSpecs hookimpl",
            ".loader": "Plugin Plugins State",
            ".plugin_files": "write_template",
            "handrail.config.paths": "Found Source find_plugins",
            "handrail.model_tools": "discover_plugins",
        },
    )
