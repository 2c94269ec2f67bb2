"""Plugins: tools, hooks and more from outside, and the hooks that Handrail calls.

`hook_specs` is the manual of every hook, with `hookimpl`, `Block`, `Ask` and `Change`; `hook_manager` calls them; `command_hooks`
are hooks that are external commands. `plugin_files` reads plugins, `loader` loads them and tells whose code
is calling, `api` is what a plugin's `register(api)` gets.
"""

from ..base.lazy_module import stubbed_module

__getattr__, __dir__, __all__ = stubbed_module(__name__, __file__)
