"""Handrail: a tools runtime for LLM agents.

Names are loaded when they are first used, so importing the package costs nothing and does nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .base.lazy_module import lazy_module

__version__ = "0.1.0"

if TYPE_CHECKING:
    from .agent.agent import Agent as Agent
    from .agent.agent_factory import open_agent as open_agent
    from .app import Handrail as Handrail
    from .base.workers import run_async as run_async
    from .config.store import load_config as load_config
    from .core.registry import ToolEntry as ToolEntry
    from .core.registry import ToolRegistry as ToolRegistry
    from .core.registry import registry as registry
    from .core.registry import tool_error as tool_error
    from .core.registry import tool_result as tool_result
    from .errors import HandrailError as HandrailError
    from .errors import ToolError as ToolError
    from .model_tools import ahandle_function_call as ahandle_function_call
    from .model_tools import arun_tool_calls as arun_tool_calls
    from .model_tools import clear_task_env_overrides as clear_task_env_overrides
    from .model_tools import get_tool_definitions as get_tool_definitions
    from .model_tools import handle_function_call as handle_function_call
    from .model_tools import register_task_env_overrides as register_task_env_overrides
    from .model_tools import run_tool_calls as run_tool_calls
    from .plugins.hook_manager import invoke_hook as invoke_hook
    from .plugins.hook_specs import hookimpl as hookimpl
    from .runtime.dispatch import Runtime as Runtime
    from .sessions.session import Session as Session
    from .sessions.session import session as session
    from .settings.schema import Config as Config
    from .toolsets import resolve_toolset as resolve_toolset
    from .types import CancelToken as CancelToken
    from .types import Resources as Resources
    from .types import ToolContext as ToolContext
    from .types import Unavailable as Unavailable
else:
    __getattr__, __dir__, __all__ = lazy_module(
        __name__,
        {
            ".agent.agent": "Agent",
            ".agent.agent_factory": "open_agent",
            ".app": "Handrail",
            ".base.workers": "run_async",
            ".config.store": "load_config",
            ".core.registry": "ToolEntry ToolRegistry registry tool_error tool_result",
            ".errors": "HandrailError ToolError",
            ".model_tools": "ahandle_function_call arun_tool_calls clear_task_env_overrides get_tool_definitions "
            "handle_function_call register_task_env_overrides run_tool_calls",
            ".plugins.hook_manager": "invoke_hook",
            ".plugins.hook_specs": "hookimpl",
            ".runtime.dispatch": "Runtime",
            ".sessions.session": "Session session",
            ".settings.schema": "Config",
            ".toolsets": "resolve_toolset",
            ".types": "CancelToken Resources ToolContext Unavailable",
        },
    )
    __all__.append("__version__")
