"""The front door: what a model is shown, and what happens when it calls. Discovery happens at the first use."""

from __future__ import annotations

import logging
import threading
from functools import cached_property
from typing import TYPE_CHECKING, Any

from .base.async_bridge import run_async
from .config import load_config
from .config.cache import remember, remembered
from .config.paths import config_path, state_dir
from .config.project import project_mcp_file
from .core.discovery import Discovered, builtin_tools
from .core.registry import registry
from .environments.backend_table import backends
from .environments.tasks import TaskEnvironments
from .plugins.contributions import (
    ApprovalHooks,
    OutputHooks,
    chosen_approver,
    hand_environments,
    take_environments_back,
)
from .plugins.hook_manager import hooks
from .plugins.sources import find_plugins
from .processes.lazy_table import process_table
from .runtime.definitions import Definitions
from .runtime.dispatch import Runtime
from .runtime.tool_deferral import room
from .toolsets import Toolsets

if TYPE_CHECKING:
    from collections.abc import Awaitable, Mapping, Sequence

    from .approval.gate import ApprovalGate
    from .config import Config
    from .core.outcome import Outcome
    from .plugins.loader import Plugins
    from .protocols import Action, Approver, Person
    from .runtime.batches import Batches
    from .runtime.provider_formats import Format
    from .tools.mcp.server_tools import McpTools
    from .types import JsonDict, ToolContext

log = logging.getLogger(__name__)

CONFIG_HOOKS = "config.yaml"
USES_FILE = "tool-uses.json"
MAX_USES = 10_000


class Handrail:
    """Everything that the functions below share, made once from the configuration. `close` ends what it started."""

    def __init__(self) -> None:
        from .store.results import FileResultStore

        config = self.config = load_config()
        registry.availability.config = config
        registry.on_collision = config.tools.on_collision
        registry.may_override = lambda owner: owner in config.plugins and config.plugins[owner].allow_override
        self.discovered: Discovered = builtin_tools()
        self.plugins = self._load_plugins()
        if config.hooks:
            from .plugins.command_hooks import register_external

            register_external(hooks, config.hooks, plugin=CONFIG_HOOKS)
        results = FileResultStore(
            state_dir() / "results",
            keep_days=config.results.keep_days,
            max_total_bytes=config.results.max_total_bytes,
        )
        brought = self.plugins.contributions.toolsets if self.plugins else {}
        self._toolsets = Toolsets(registry, {**brought, **config.toolsets})
        self.environments = TaskEnvironments(config)
        self.environments.change_output = OutputHooks(hooks)
        self.processes = process_table(config, self.environments)
        self.runtime = Runtime(
            registry,
            hooks=hooks,
            config=config,
            results=results,
            environments=self.environments,
            processes=self.processes,
            gate=_LateGate(self),
            approver=self._absent(),
            person=_far_person(config),
        )
        self._definitions = Definitions(registry, self._toolsets)
        self._definitions.uses = _uses_before()
        self.runtime.toolsets = self._toolsets
        self.runtime.given_by_default = lambda: self.definitions.names(*self.chosen_toolsets())
        self._mcp_started = False
        self.mcp = self._find_mcp_servers()

    @property
    def toolsets(self) -> Toolsets:
        self._start_mcp()
        return self._toolsets

    @property
    def definitions(self) -> Definitions:
        self._start_mcp()
        return self._definitions

    def chosen_toolsets(self) -> tuple[list[str] | None, list[str]]:
        """What the configuration offers a model: the sets that are enabled (None: all), and those that are disabled."""
        tools = self.config.tools
        return None if tools.enabled_toolsets is None else list(tools.enabled_toolsets), list(tools.disabled_toolsets)

    def room_for_tools(self, context_tokens: int | None = None) -> int:
        """The characters that the definitions of tools may have."""
        return room(context_tokens or self.config.model.context_tokens, self.config.tools.max_context_share)

    def _find_mcp_servers(self) -> McpTools | None:
        """Nothing is connected before somebody asks for the tools there are, or calls one of a server's."""
        if not self.config.mcp_servers and project_mcp_file() is None:
            return None
        from .mcp_client.server_config import find_servers
        from .tools.mcp.server_tools import McpTools

        mcp = McpTools(find_servers(self.config.mcp_servers, config_file=config_path()))
        registry.late = mcp.find
        self._toolsets.expected = frozenset(f"mcp-{name}" for name in mcp.connections.servers)
        return mcp

    def await_toolsets(self, names: Sequence[str] | None) -> None:
        """Wait for the MCP servers that are named here, as long as connecting to them may take."""
        if self.mcp is not None:
            for name in names or ():
                if problem := self.mcp.find(name):
                    log.warning("%s", problem)

    def _start_mcp(self) -> None:
        if self.mcp is not None and not self._mcp_started:
            self._mcp_started = True
            self.mcp.start()

    def _load_plugins(self) -> Plugins | None:
        """None when there are none, as for most: then nothing of theirs is imported."""
        hooks.timeout = self.config.calls.hook_timeout
        found = list(find_plugins())
        if not found:
            return None
        from .plugins.loader import Plugins

        plugins = Plugins(registry, hooks, self.config.plugins)
        plugins.load(found)
        hand_environments(plugins.contributions, backends)
        return plugins

    def _absent(self) -> Approver | None:
        """Who answers where no person is at hand: the one that a plugin brings, then the queue, or nobody."""
        settings = self.config.approvals
        if not settings.approver and settings.headless == "deny":
            return None
        from .approval.approvers import ChainApprover, QueueApprover

        queue = None if settings.headless == "deny" else QueueApprover()
        if not settings.approver:
            return queue
        chosen = chosen_approver(self.plugins.contributions if self.plugins else None, settings.approver)
        return chosen if queue is None else ChainApprover(chosen, queue)

    def close(self) -> None:
        """End the environments of all tasks and what runs in them, but not what was started to live on; unload the plugins."""
        if self.mcp is not None:
            registry.late = None
            self.mcp.close()
        _remember_uses(self.runtime.uses)
        self.processes.close()
        self.environments.close_all()
        if "gate" in self.__dict__:  # it is made when the first action comes
            self.gate.close()
        if self.plugins is not None:
            take_environments_back(self.plugins.contributions, backends)
            self.plugins.unload()
        hooks.unregister_plugin(CONFIG_HOOKS)

    @cached_property
    def gate(self) -> ApprovalGate:
        """What every dangerous action passes. It reads the configuration by itself, and again when that changes."""
        from .approval.gate import ApprovalGate
        from .approval.project_policy import policy_file
        from .approval.settings import Settings

        rules = self.plugins.contributions.approval_rules.values() if self.plugins else ()
        settings = Settings(path=config_path(), project=policy_file(), more_rules=tuple(rules))
        return ApprovalGate(settings, folder=state_dir(), notices=ApprovalHooks(hooks))

    @cached_property
    def batches(self) -> Batches:
        from .runtime.batches import Batches

        return Batches(self.runtime)


def _uses_before() -> dict[str, int]:
    return {name: count for name, count in remembered(USES_FILE).items() if isinstance(count, int)}


def _remember_uses(uses: Mapping[str, int]) -> None:
    if not uses:
        return
    known = _uses_before()
    total = {name: known.get(name, 0) + uses.get(name, 0) for name in {*known, *uses}}
    if sum(total.values()) > MAX_USES:  # what was used long ago counts ever less
        total = {name: count // 2 for name, count in total.items() if count > 1}
    remember(USES_FILE, total)


class _LateGate:
    """Loads the gate when the first action comes to it: most starts see none."""

    def __init__(self, here: Handrail) -> None:
        self._here = here

    def review(self, actions: Sequence[Action], context: ToolContext) -> Awaitable[None] | None:
        return self._here.gate.review(actions, context)


def _far_person(config: Config) -> Person | None:
    """Who is asked where nobody is at the terminal."""
    if not config.messages.person:
        return None
    from .platforms.remote_user import RemoteUser

    return RemoteUser(config.messages.person, config.messages.targets, seconds=config.messages.answer_timeout)


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
    """Close the default and forget it, so that the next call reads the configuration anew."""
    global _default
    with _starting:
        here, _default = _default, None
    if here is not None:
        here.close()


def register_task_env_overrides(task_id: str, overrides: Mapping[str, Any] | None = None, /, **more: Any) -> None:
    """Say where and how a task's commands run: `backend`, `cwd`, `env`, `allowed_secrets`, and the backend's own settings.

        register_task_env_overrides("t1", backend="docker", image="python:3.12", memory="2g", cwd="/work")

    They hold from the task's next command on; an environment that was made otherwise is closed.
    """
    default().environments.override(task_id, {**(overrides or {}), **more})


def clear_task_env_overrides(task_id: str) -> None:
    """Let the configuration hold for the task again. An open environment stays as it is."""
    default().environments.clear_overrides(task_id)


def get_tool_definitions(
    enabled_toolsets: list[str] | None = None,
    disabled_toolsets: list[str] | None = None,
    quiet_mode: bool = False,
    *,
    format: Format = "openai",  # noqa: A002  what it is
    context_tokens: int | None = None,
) -> list[JsonDict]:
    """The tools that a model may be shown now. Neither list given: what the configuration says, or else everything.

    `context_tokens` is how much the model can read at once, if it is another one than the configuration names: when the
    tools would take too large a share of it, those that are rarely used are left out, and found with `tool_search`.
    """
    here = default()
    enabled, disabled = here.chosen_toolsets()
    enabled_toolsets = enabled if enabled_toolsets is None else enabled_toolsets
    disabled_toolsets = disabled if disabled_toolsets is None else disabled_toolsets
    return here.definitions.list(
        enabled_toolsets,
        disabled_toolsets,
        quiet=quiet_mode,
        format=format,
        max_chars=here.room_for_tools(context_tokens),
    )


def handle_function_call(
    name: str,
    args: Any,
    task_id: str | None = None,
    user_task: str | None = None,
    session_id: str | None = None,
    **more: Any,
) -> Outcome:
    """Run one call of a model and give back the text for it. `args` may be a dict or the JSON text that the model wrote.

    `more`: tool_call_id, cancel (a CancelToken), on_progress (called with Progress), agent, and enabled_tools: the names of
    all the tools that this model was given, if they are others than those that the configuration gives.
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

    `more`: session_id, user_task, cancel, on_progress, agent, enabled_tools, and `timeout` in seconds for the whole batch.
    """
    here = default()
    # The batch ends itself; this limit only says how long a caller inside a running loop may be held.
    limit = (more.get("timeout") or here.config.calls.batch_timeout) + 30
    return run_async(here.batches.run(tool_calls, task_id=task_id, **more), timeout=limit)


async def arun_tool_calls(tool_calls: Any, task_id: str | None = None, **more: Any) -> list[JsonDict]:
    """`run_tool_calls` for async callers."""
    return await default().batches.run(tool_calls, task_id=task_id, **more)
