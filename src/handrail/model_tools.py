"""The front door: what a model is shown, and what happens when it calls. Discovery happens at the first use."""

from __future__ import annotations

import threading
from functools import cached_property
from typing import TYPE_CHECKING, Any

from .async_bridge import run_async
from .config import load_config
from .config.paths import state_dir
from .plugins.manager import hooks
from .plugins.sources import find_plugins
from .runtime.definitions import Definitions
from .runtime.dispatch import Runtime
from .tools.discovery import Discovered, builtin_tools
from .tools.registry import registry
from .toolsets import Toolsets

if TYPE_CHECKING:
    from .plugins.loading import Plugins
    from .runtime.concurrency import Batches
    from .runtime.schemas import Format
    from .tools.outcome import Outcome
    from .types import JsonDict


CONFIG_HOOKS = "config.yaml"


class Handrail:
    """Everything that the functions below share, made once from the configuration."""

    def __init__(self) -> None:
        from .store.results import FileResultStore
        from .tools.files.local import LocalFiles

        config = self.config = load_config()
        registry.on_collision = config.tools.on_collision
        registry.may_override = lambda owner: owner in config.plugins and config.plugins[owner].allow_override
        self.discovered: Discovered = builtin_tools()
        self.plugins = self._load_plugins()
        if config.hooks:
            from .plugins.external import register_external

            register_external(hooks, config.hooks, plugin=CONFIG_HOOKS)
        results = FileResultStore(
            state_dir() / "results",
            keep_days=config.results.keep_days,
            max_total_bytes=config.results.max_total_bytes,
        )
        files = LocalFiles(
            roots=config.files.roots,
            max_read_bytes=config.files.max_read_bytes,
            max_write_bytes=config.files.max_write_bytes,
        )
        brought = self.plugins.contributions.toolsets if self.plugins else {}
        self.toolsets = Toolsets(registry, {**brought, **config.toolsets})
        self.runtime = Runtime(registry, hooks=hooks, config=config, results=results, files=files)
        self.definitions = Definitions(registry, self.toolsets)

    def _load_plugins(self) -> Plugins | None:
        """None when there are none, as for most: then nothing of theirs is imported."""
        hooks.timeout = self.config.calls.hook_timeout
        found = list(find_plugins())
        if not found:
            return None
        from .plugins.loading import Plugins

        plugins = Plugins(registry, hooks, self.config.plugins)
        plugins.load(found)
        return plugins

    def close(self) -> None:
        """Let go of what was made for this one: the plugins, and the hooks of the configuration."""
        if self.plugins is not None:
            self.plugins.unload()
        hooks.unregister_plugin(CONFIG_HOOKS)

    @cached_property
    def batches(self) -> Batches:
        from .runtime.concurrency import Batches

        return Batches(self.runtime)


_default: Handrail | None = None
_starting = threading.RLock()


def default() -> Handrail:
    """The one that the module's functions use. Raises ConfigError when the configuration cannot be used."""
    global _default  #  the module's functions wrap one default object, as `random` does
    if _default is None:
        with _starting:
            if _default is None:
                _default = Handrail()
    return _default


def reset() -> None:
    """Forget the default, so that the next call reads the configuration anew."""
    global _default
    with _starting:
        if _default is not None:
            _default.close()
        _default = None


def get_tool_definitions(
    enabled_toolsets: list[str] | None = None,
    disabled_toolsets: list[str] | None = None,
    quiet_mode: bool = False,
    *,
    format: Format = "openai",  # noqa: A002  what it is
) -> list[JsonDict]:
    """The tools that a model may be shown now. Neither list given: what the configuration says, or else everything."""
    here = default()
    if enabled_toolsets is None and here.config.tools.enabled_toolsets is not None:
        enabled_toolsets = list(here.config.tools.enabled_toolsets)
    if disabled_toolsets is None:
        disabled_toolsets = list(here.config.tools.disabled_toolsets)
    return here.definitions.list(enabled_toolsets, disabled_toolsets, quiet=quiet_mode, format=format)


def handle_function_call(
    name: str,
    args: Any,
    task_id: str | None = None,
    user_task: str | None = None,
    session_id: str | None = None,
    **more: Any,
) -> Outcome:
    """Run one call of a model and give back the text for it. `args` may be a dict or the JSON text that the model wrote.

    `more`: tool_call_id, cancel (a CancelToken), on_progress (called with Progress), agent.
    """
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
    """Run the calls of a model's message, together where that is safe, and give back the tool messages in its order.

    `more`: session_id, user_task, cancel, on_progress, agent, and `timeout` in seconds for the whole batch.
    """
    here = default()
    # The batch ends itself; this limit only says how long a caller inside a running loop may be held.
    limit = (more.get("timeout") or here.config.calls.batch_timeout) + 30
    return run_async(here.batches.run(tool_calls, task_id=task_id, **more), timeout=limit)


async def arun_tool_calls(tool_calls: Any, task_id: str | None = None, **more: Any) -> list[JsonDict]:
    """`run_tool_calls` for async callers."""
    return await default().batches.run(tool_calls, task_id=task_id, **more)
