"""Handrail: a tools runtime for LLM agents.

Names are loaded when they are first used, so importing the package costs nothing and does nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .base.lazy_module import by_name, lazy_module

__version__ = "0.1.0"

_HOMES = by_name(
    {
        "handrail.app": "Handrail",
        "handrail.settings.schema": "Config",
        "handrail.config.store": "load_config",
        "handrail.agent.agent": "Agent",
        "handrail.agent.agent_factory": "open_agent",
        "handrail.sessions.session": "session Session",
        "handrail.core.registry": "registry ToolRegistry ToolEntry tool_error tool_result",
        "handrail.runtime.dispatch": "Runtime",
        "handrail.model_tools": "get_tool_definitions handle_function_call ahandle_function_call run_tool_calls arun_tool_calls "
        "register_task_env_overrides clear_task_env_overrides",
        "handrail.toolsets": "resolve_toolset",
        "handrail.plugins.hook_specs": "hookimpl",
        "handrail.plugins.hook_manager": "invoke_hook",
        "handrail.base.async_bridge": "run_async",
        "handrail.types": "ToolContext CancelToken Resources Unavailable",
        "handrail.errors": "HandrailError ToolError",
    }
)

__all__ = ["__version__", *_HOMES]

if TYPE_CHECKING:
    from .agent.agent import Agent
    from .agent.agent_factory import open_agent
    from .app import Handrail
    from .base.async_bridge import run_async
    from .config.store import load_config
    from .core.registry import ToolEntry, ToolRegistry, registry, tool_error, tool_result
    from .errors import HandrailError, ToolError
    from .model_tools import (
        ahandle_function_call,
        arun_tool_calls,
        clear_task_env_overrides,
        get_tool_definitions,
        handle_function_call,
        register_task_env_overrides,
        run_tool_calls,
    )
    from .plugins.hook_manager import invoke_hook
    from .plugins.hook_specs import hookimpl
    from .runtime.dispatch import Runtime
    from .sessions.session import Session, session
    from .settings.schema import Config
    from .toolsets import resolve_toolset
    from .types import CancelToken, Resources, ToolContext, Unavailable

__getattr__, _ = lazy_module(__name__, _HOMES)


def __dir__() -> list[str]:
    return sorted(__all__)
