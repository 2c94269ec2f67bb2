"""Handrail: a tools runtime for LLM agents.

Names are loaded when they are first used, so importing the package costs nothing and does nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .base.lazy_module import lazy_module

__version__ = "0.1.0"

_HOMES = {
    "Handrail": "handrail.app",
    "Config": "handrail.settings.schema",
    "load_config": "handrail.config.store",
    "Agent": "handrail.agent.agent",
    "open_agent": "handrail.agent.agent_factory",
    "session": "handrail.sessions.session",
    "Session": "handrail.sessions.session",
    "registry": "handrail.core.registry",
    "ToolRegistry": "handrail.core.registry",
    "ToolEntry": "handrail.core.registry",
    "tool_error": "handrail.core.registry",
    "tool_result": "handrail.core.registry",
    "Runtime": "handrail.runtime.dispatch",
    "get_tool_definitions": "handrail.model_tools",
    "handle_function_call": "handrail.model_tools",
    "ahandle_function_call": "handrail.model_tools",
    "run_tool_calls": "handrail.model_tools",
    "arun_tool_calls": "handrail.model_tools",
    "register_task_env_overrides": "handrail.model_tools",
    "clear_task_env_overrides": "handrail.model_tools",
    "resolve_toolset": "handrail.toolsets",
    "hookimpl": "handrail.plugins.hook_specs",
    "invoke_hook": "handrail.plugins.hook_manager",
    "run_async": "handrail.base.async_bridge",
    "ToolContext": "handrail.types",
    "CancelToken": "handrail.types",
    "Resources": "handrail.types",
    "Unavailable": "handrail.types",
    "HandrailError": "handrail.errors",
    "ToolError": "handrail.errors",
}

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
