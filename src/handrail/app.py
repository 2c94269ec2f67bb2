"""The application object: everything that a program needs to let a model use tools, made from one configuration."""

from __future__ import annotations

import logging
import threading
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, cast

from .base.own_process import started_by_agent
from .base.workers import MAX_SECONDS, run_async
from .config.paths import state_dir
from .core.builtin import builtin_tools
from .core.registry import ToolRegistry
from .effects.open_call import OpenCall
from .environments.backend_table import Backends
from .environments.tasks import TaskEnvironments
from .plugins.hook_manager import ApprovalHooks, HookManager, OutputHooks
from .runtime import call_reports, dispatch
from .runtime.definitions import Definitions, room
from .toolsets import Toolsets, as_names

if TYPE_CHECKING:
    import os

    from .approval.gate import ApprovalGate
    from .effects.calls import Calls
    from .processes.table import ProcessTable
    from .protocols import Action, Approver, Person
    from .runtime.batches import Batches
    from .runtime.provider_formats import Format
    from .settings.schema import Config
    from .store.call_records import CallRecord
    from .types import JsonDict, Outcome, ToolContext

log = logging.getLogger(__name__)


class Handrail:
    """A tools runtime: its configuration, tools, hooks, approval gate, environments and stores.

        with Handrail() as app:
            tools = app.get_tool_definitions(["coding"])
            answer = app.handle_function_call("read_file", {"path": "README.md"})

    Without arguments it is configured by your `config.yaml` and keeps its state with yours. With a `config` of its own it
    keeps its state in `home`, or in a temporary folder that goes when it is closed. Two objects share no policy, configuration,
    tools, hooks, grants, stores or paths. `registry`, `hooks` and `backends` default to fresh ones, with the built-in tools and
    backends in them; `approver` and `person` are asked instead of those that the configuration names.

    `confirms`: a person starts this, so that a `config.yaml` that became weaker since the last start holds; else that waits.

    `close` ends what the object started. It is a context manager, `async with` works too.
    """

    def __init__(
        self,
        config: Config | None = None,
        *,
        home: str | os.PathLike[str] | None = None,
        registry: ToolRegistry | None = None,
        hooks: HookManager | None = None,
        backends: Backends | None = None,
        approver: Approver | None = None,
        person: Person | None = None,
        confirms: bool = False,
    ) -> None:
        self._source = source = dispatch.locate(config, home, confirms=confirms)
        self._confirms = confirms
        self.config = config = source.config
        self.registry = _own_registry(registry, config)
        self.hooks = HookManager() if hooks is None else hooks
        self.hooks.timeout = config.calls.hook_timeout
        self.backends = Backends() if backends is None else backends
        self.plugins = dispatch.load_plugins(config, self.registry, self.hooks, self.backends)
        if self.plugins is not None:
            skills = replace(config.skills, of_plugins=self.plugins.contributions.skills)
            self.config = config = replace(config, skills=skills)
        open_call = partial(OpenCall, lambda: self.effects)
        self.environments = TaskEnvironments(config, backends=self.backends)
        dispatch.add_command_hooks(self.hooks, source, self.environments, open_call)
        self.environments.change_output = OutputHooks(self.hooks)
        self.processes = cast("ProcessTable", _LateProcesses(config, self.environments))
        self.runtime = dispatch.Runtime(
            self.registry,
            hooks=self.hooks,
            config=config,
            results=dispatch.results_of(config),
            environments=self.environments,
            processes=self.processes,
            effects=open_call,
            gate=_LateGate(self),
            approver=dispatch.configured_approver(config, self.plugins) if approver is None else approver,
            person=dispatch.remote_person(config) if person is None else person,
        )
        self.registry.runner = self.runtime
        self.runtime.own_toolsets = lambda: self._toolsets
        self.runtime.given_by_default = lambda: self.definitions.names(*self.chosen_toolsets())
        self._mcp_started = False
        self.mcp = dispatch.find_mcp_servers(config, self.registry)
        call_reports.report_to_consoles(self.runtime, state_dir(config.home))
        begun = state_dir(config.home) / "begun-calls"  # of a runtime that was killed, or that still runs
        if begun.is_dir() and any(begun.iterdir()) and not started_by_agent():
            self.effects.recover()

    def __enter__(self) -> Handrail:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self) -> Handrail:
        return self

    async def __aexit__(self, *_: object) -> None:
        import asyncio  # only async programs come here

        await asyncio.to_thread(self.close)

    def get_tool_definitions(
        self,
        enabled_toolsets: Sequence[str] | str | None = None,
        disabled_toolsets: Sequence[str] | str | None = None,
        quiet_mode: bool = True,
        *,
        format: Format = "openai",  # noqa: A002  the name that callers know
        context_tokens: int | None = None,
    ) -> list[JsonDict]:
        """The tools that a model may be shown now. Neither list given: what the configuration says, or else everything.

        `context_tokens` is how much the model can read at once, if it is another one than the configuration names: when the
        tools would take too large a share of it, those that are rarely used are left out, and found with `tool_search`.
        """
        enabled, disabled = self.chosen_toolsets()
        enabled = enabled if enabled_toolsets is None else as_names(enabled_toolsets)
        disabled = disabled if disabled_toolsets is None else as_names(disabled_toolsets)
        if not quiet_mode:
            without = f", without {', '.join(disabled)}" if disabled else ""
            print(f"toolsets: {'all' if enabled is None else ', '.join(enabled)}{without}")  # noqa: T201  it was asked for
        max_chars = self.room_for_tools(context_tokens)
        return self.definitions.list(enabled, disabled, quiet=quiet_mode, format=format, max_chars=max_chars)

    def handle_function_call(
        self,
        name: str,
        args: Any,
        task_id: str | None = None,
        user_task: str | None = None,
        session_id: str | None = None,
        **more: Any,
    ) -> Outcome:
        """Run one call of a model and return the text for it. `args` may be a dict or the JSON text that the model wrote.

        `more`: tool_call_id, cancel (a CancelToken), on_progress (called with Progress), agent, and enabled_tools: the names of
        all the tools that this model was given, if they are others than those that the configuration gives.
        """
        return self.runtime.handle(name, args, task_id, user_task, session_id, **more)

    async def ahandle_function_call(
        self,
        name: str,
        args: Any,
        task_id: str | None = None,
        user_task: str | None = None,
        session_id: str | None = None,
        **more: Any,
    ) -> Outcome:
        """`handle_function_call` for async callers."""
        return await self.runtime.ahandle(name, args, task_id, user_task, session_id, **more)

    def run_tool_calls(self, tool_calls: Any, task_id: str | None = None, **more: Any) -> list[JsonDict]:
        """Run the calls of a model's message, together where that is safe, and return the tool messages in its order.

        `more`: session_id, user_task, cancel, on_progress, agent, enabled_tools, and `timeout` in seconds for the whole batch.
        """
        # The batch ends itself: its time stands still while somebody is asked.
        return run_async(self.batches.run(tool_calls, task_id=task_id, **more), timeout=MAX_SECONDS)

    async def arun_tool_calls(self, tool_calls: Any, task_id: str | None = None, **more: Any) -> list[JsonDict]:
        """`run_tool_calls` for async callers."""
        return await self.batches.run(tool_calls, task_id=task_id, **more)

    def register_task_env_overrides(
        self, task_id: str, overrides: Mapping[str, Any] | None = None, /, **more: Any
    ) -> None:
        """Say where and how a task's commands run: `backend`, `cwd`, `env`, `allowed_secrets`, and the backend's own settings.

            app.register_task_env_overrides("t1", backend="docker", image="python:3.12", memory="2g", cwd="/work")

        They hold from the task's next command on; an environment that was made otherwise is closed.
        """
        self.environments.override(task_id, {**(overrides or {}), **more})

    def clear_task_env_overrides(self, task_id: str) -> None:
        """Let the configuration hold for the task again. An open environment stays as it is."""
        self.environments.clear_overrides(task_id)

    def calls(self, count: int = 50, *, session: str | None = None, folder: str = "") -> list[CallRecord]:
        """The calls that changed something, the newest first: of a session, or made in a folder, if they are given."""
        return self.effects.latest(count, session=session, folder=folder)

    def undo(self, number: int, *, only: str = "", force: bool = False, dry_run: bool = False) -> JsonDict:
        """Take back what a call has changed, or what it changed at the path `only`. Raises CallNotFound.

        `status` in the answer is "undone", "refused" (see `reason`) or "conflict": nothing was done, as somebody has changed it
        since. `force` takes it back all the same, and keeps what is there now beside it.
        """
        return self.effects.undo(number, only=only, force=force, dry_run=dry_run)

    @property
    def toolsets(self) -> Toolsets:
        self._start_mcp()
        return self._toolsets

    @cached_property
    def _toolsets(self) -> Toolsets:
        contributed = self.plugins.contributions.toolsets if self.plugins else {}
        toolsets = Toolsets(self.registry, {**contributed, **self.config.toolsets})
        servers = () if self.mcp is None else self.mcp.connections.servers
        toolsets.expected = self._source.waiting | {f"mcp-{name}" for name in servers}
        toolsets.unloaded = self.plugins.unloaded if self.plugins else ()
        return toolsets

    @property
    def definitions(self) -> Definitions:
        self._start_mcp()
        return self._definitions

    @cached_property
    def _definitions(self) -> Definitions:
        definitions = Definitions(self.registry, self._toolsets)
        definitions.uses = dispatch.previous_uses(self.config.home)
        return definitions

    def chosen_toolsets(self) -> tuple[list[str] | None, list[str]]:
        """What the configuration offers a model: the sets that are enabled (None: all), and those that are disabled."""
        tools = self.config.tools
        return None if tools.enabled_toolsets is None else list(tools.enabled_toolsets), list(tools.disabled_toolsets)

    def room_for_tools(self, context_tokens: int | None = None) -> int:
        """The characters that the definitions of tools may have."""
        return room(context_tokens or self.config.model.context_tokens, self.config.tools.max_context_share)

    def await_toolsets(self, names: Sequence[str] | None) -> None:
        """Wait for the MCP servers that are named here, as long as connecting to them may take."""
        if self.mcp is not None:
            for name in names or ():
                if problem := self.mcp.find(name):
                    log.warning("%s", problem)

    def warn_untrusted(self, *more: str) -> None:
        """Log what the project brings that is not used until you trust it: `more`, its plugins and its MCP servers."""
        plugins = self.plugins.untrusted if self.plugins else ()
        servers = () if self.mcp is None else self.mcp.connections.servers.values()
        waiting = [each.name for each in servers if each.problem.endswith("`handrail mcp trust`")]
        unused = [*more, *(f"the plugin {name} (`handrail plugins trust {name}`)" for name in plugins)]
        unused += [f"the MCP server {name} (`handrail mcp trust`)" for name in waiting]
        if unused:
            log.warning("not used, because you have not trusted it: %s", ", ".join(unused))

    def close(self) -> None:
        """End the environments of all tasks and what runs in them, but not what was started to live on; unload the plugins."""
        if self.mcp is not None:
            self.registry.late = None
            self.mcp.close()
        if self._source.temporary_home is None:
            dispatch.remember_uses(self.runtime.uses, self.config.home)
        self.processes.close()
        if "effects" in self.__dict__:  # likewise
            self.effects.recorder.flush()  # what calls have changed elsewhere is asked for there
        self.environments.close_all()
        if "effects" in self.__dict__:
            self.effects.close()
        if "gate" in self.__dict__:  # it is made when the first action comes
            self.gate.close()
        if self.plugins is not None:
            for name in self.plugins.contributions.environments:
                self.backends.remove(name)
            self.plugins.unload()
        self.hooks.unregister_plugin(dispatch.CONFIG_HOOKS)
        if self.registry.runner is self.runtime:
            self.registry.runner = None
        if self._source.temporary_home is not None:
            import shutil  # most programs keep their state

            shutil.rmtree(self._source.temporary_home, ignore_errors=True)

    @cached_property
    def gate(self) -> ApprovalGate:
        """What every dangerous action passes. One that was configured by a file reads it again when it changes."""
        rules = self.plugins.contributions.approval_rules.values() if self.plugins else ()
        return dispatch.open_gate(self._source, tuple(rules), ApprovalHooks(self.hooks), confirms=self._confirms)

    def inherit_mode(self, child: str, parent: str) -> None:
        """A child agent's session has the mode of its parent's. A gate that is not loaded has no modes."""
        if "gate" in self.__dict__:
            self.gate.modes.inherit(child, parent)

    def forget_mode(self, session: str) -> None:
        """The session is over."""
        if "gate" in self.__dict__:
            self.gate.modes.forget(session)

    @cached_property
    def effects(self) -> Calls:
        """What calls have changed, and taking them back."""
        from .effects.calls import Calls  # most starts change nothing

        def rules() -> Config:
            return self.gate.settings.config if "gate" in self.__dict__ else self.config

        return Calls(state_dir(self.config.home), self.environments, rules)

    @cached_property
    def batches(self) -> Batches:
        from .runtime.batches import Batches  # imports asyncio

        return Batches(self.runtime)

    def _start_mcp(self) -> None:
        if self.mcp is not None and not self._mcp_started:
            self._mcp_started = True
            self.mcp.start()


def _own_registry(registry: ToolRegistry | None, config: Config) -> ToolRegistry:
    """The one that was given, or a fresh one; with this object's settings and the built-in tools."""
    registry = ToolRegistry() if registry is None else registry
    registry.availability.config = config
    registry.on_collision = config.tools.on_collision
    registry.may_override = lambda owner: owner in config.plugins and config.plugins[owner].allow_override
    registry.adopt(builtin_tools())
    return registry


class _LateGate:
    """Loads the gate when the first action comes to it: most starts see none."""

    def __init__(self, app: Handrail) -> None:
        self._app = app

    def review(self, actions: Sequence[Action], context: ToolContext) -> Awaitable[None] | None:
        return self._app.gate.review(actions, context)

    def is_strict(self, session_id: str | None) -> bool:
        """Whether a tool that names no actions is reviewed too. A gate that is not loaded has no modes."""
        return "gate" in self._app.__dict__ and self._app.gate.modes.are_strict(session_id)


class _LateProcesses:
    """Reads the table of background processes when it is first used."""

    def __init__(self, config: Config, environments: TaskEnvironments) -> None:
        self._config, self._environments = config, environments
        self._made: ProcessTable | None = None
        self._making = threading.Lock()

    def __getattr__(self, name: str) -> Any:
        with self._making:
            if self._made is None:
                from .processes.table import ProcessTable
                from .store.processes import ProcessRecords

                records = ProcessRecords(state_dir(self._config.home) / "process-table")
                self._made = ProcessTable(records, self._environments, self._config.processes)
        return getattr(self._made, name)

    def close(self) -> None:
        if self._made is not None:
            self._made.close()
