"""The original's place for the registry. Here it is `handrail.core.registry`."""

from ..base.lazy_module import lazy_module

__getattr__, __dir__, __all__ = lazy_module(
    __name__,
    {
        "handrail.core.registry": "registry ToolRegistry ToolEntry tool_error tool_result",
        "handrail.core.builtin": "discover_builtin_tools",
    },
)
