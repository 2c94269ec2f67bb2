"""The original's place for the registry. Here it is `handrail.core.registry`."""

from ..base.lazy_module import lazy_module

_CORE = "handrail.core.registry"
_HOMES = dict.fromkeys(("registry", "ToolRegistry", "ToolEntry", "tool_error", "tool_result"), _CORE)
_HOMES["discover_builtin_tools"] = "handrail.core.discovery"
__all__ = list(_HOMES)
__getattr__, __dir__ = lazy_module(__name__, _HOMES)
