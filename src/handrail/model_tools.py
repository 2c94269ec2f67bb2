"""The documented functions around one default `Handrail`, which is made from your configuration at the first use."""

from __future__ import annotations

import logging
import threading
from collections.abc import Awaitable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from .app import Handrail
from .base.workers import run_async
from .config.store import is_person
from .core.registry import registry
from .environments.backend_table import backends
from .errors import UnknownToolset
from .plugins.hook_manager import hooks
from .toolsets import as_names

if TYPE_CHECKING:
    from .plugins.loader import Plugin
    from .runtime.provider_formats import Format
    from .types import JsonDict, Outcome

log = logging.getLogger(__name__)

# How long the original waits for a coroutine that sync code runs inside a running loop.
ASYNC_SECONDS = 300.0

_default: Handrail | None = None
_is_first = True  # a person starts a process; what is loaded again in it may have been changed by anyone
_starting = threading.RLock()


def default() -> Handrail:
    """The object that the module's functions use. Raises ConfigError when the configuration cannot be used."""
    global _default, _is_first  #  the module's functions wrap one default object, as `random` does
    if _default is not None:
        return _default
    with _starting:
        if _default is None:
            registry.load_before_first_question(None)  # a plugin that asks it meanwhile must not make another one
            try:
                confirms = _is_first and is_person()
                _default = Handrail(registry=registry, hooks=hooks, backends=backends, confirms=confirms)
            except BaseException:
                registry.load_before_first_question(default)
                raise
            _is_first = False
        return _default


def reset() -> None:
    """Close the default and forget it, so that the next call reads the configuration again."""
    global _default
    with _starting:
        app, _default = _default, None
    if app is not None:
        app.close()


# Discovery happens at the first question to the registry, so that importing stays free.
registry.load_before_first_question(default)

# The original's programs ask for these here.
get_all_tool_names = registry.get_all_tool_names
get_toolset_for_tool = registry.get_toolset_for_tool
get_available_toolsets = registry.get_available_toolsets
check_toolset_requirements = registry.check_toolset_requirements
check_tool_availability = registry.check_tool_availability


def get_tool_definitions(
    enabled_toolsets: Sequence[str] | str | None = None,
    disabled_toolsets: Sequence[str] | str | None = None,
    quiet_mode: bool = False,
    *,
    format: Format = "openai",  # noqa: A002  the name that callers know
    context_tokens: int | None = None,
) -> list[JsonDict]:
    """See `Handrail.get_tool_definitions`. Here an unknown toolset is left out with a warning."""
    enabled, disabled = _known_toolsets(enabled_toolsets), _known_toolsets(disabled_toolsets)
    return default().get_tool_definitions(enabled, disabled, quiet_mode, format=format, context_tokens=context_tokens)


def _known_toolsets(names: Sequence[str] | str | None) -> list[str] | None:
    if names is None:
        return None
    toolsets, known = default().toolsets, []
    for name in as_names(names):
        try:
            toolsets.resolve(name)
        except UnknownToolset as error:
            log.warning("%s; it is left out", error)
        else:
            known.append(name)
    return known


def handle_function_call(
    name: str,
    args: Any,
    task_id: str | None = None,
    user_task: str | None = None,
    session_id: str | None = None,
    **more: Any,
) -> Outcome:
    """See `Handrail.handle_function_call`."""
    return (_default or default()).runtime.handle(name, args, task_id, user_task, session_id, **more)


async def ahandle_function_call(
    name: str,
    args: Any,
    task_id: str | None = None,
    user_task: str | None = None,
    session_id: str | None = None,
    **more: Any,
) -> Outcome:
    """`handle_function_call` for async callers."""
    return await (_default or default()).runtime.ahandle(name, args, task_id, user_task, session_id, **more)


def run_tool_calls(tool_calls: Any, task_id: str | None = None, **more: Any) -> list[JsonDict]:
    """See `Handrail.run_tool_calls`."""
    return default().run_tool_calls(tool_calls, task_id, **more)


async def arun_tool_calls(tool_calls: Any, task_id: str | None = None, **more: Any) -> list[JsonDict]:
    """`run_tool_calls` for async callers."""
    return await default().arun_tool_calls(tool_calls, task_id, **more)


def discover_plugins() -> list[Plugin]:
    """Load the configured plugins, if that has not happened yet; every plugin that was found, with what became of it."""
    plugins = default().plugins
    return [] if plugins is None else plugins.found


def register_task_env_overrides(task_id: str, overrides: Mapping[str, Any] | None = None, /, **more: Any) -> None:
    """See `Handrail.register_task_env_overrides`."""
    default().register_task_env_overrides(task_id, overrides, **more)


def clear_task_env_overrides(task_id: str) -> None:
    """See `Handrail.clear_task_env_overrides`."""
    default().clear_task_env_overrides(task_id)


def _run_async(awaitable: Awaitable[Any]) -> Any:
    """The original's name for `run_async`; it gives up after 300 s inside a running loop."""
    import asyncio  # only programs that run coroutines come here

    return run_async(awaitable, timeout=None if asyncio._get_running_loop() is None else ASYNC_SECONDS)
