"""A registry, the hooks around its calls, and what the calls may use: everything that runs one call. Below it, the parts of an
application object that its configuration decides on; what most configurations lack is not imported."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ..base.suggest import did_you_mean
from ..config.paths import config_path, find_plugins, project_mcp_file, remember, remembered, state_dir
from ..config.store import Confirmed, held_config
from ..core.registry import ToolEntry, ToolRegistry
from ..errors import ConfigError
from ..plugins.hook_manager import HookManager
from ..protocols import Approver, CallEffects, Environments, Files, Person, Processes, ResultStore
from ..settings.schema import Config
from ..store.results import FileResultStore
from ..toolsets import Toolsets
from ..types import CancelToken, Gate, JsonDict, Outcome, ToolContext
from .call_path import CallPath
from .steps import Call, Flow, drive

if TYPE_CHECKING:
    import os

    from ..approval.gate import ApprovalGate, Notices
    from ..environments.backend_table import Backends
    from ..environments.tasks import TaskEnvironments
    from ..judge.rules.rulebook import Rule
    from ..plugins.loader import Plugins
    from ..tools.mcp.server_tools import McpTools

_CALL_FIELDS = "task_id user_task session_id tool_call_id cancel on_progress agent enabled_tools caller".split()


class Runtime:
    """A registry, the hooks around its calls, and what the calls may use.
    With `environments` a call's files are those of its task; `files` are for a runtime that has none."""

    def __init__(  # noqa: PLR0913  one keyword per thing that calls may use
        self,
        registry: ToolRegistry,
        *,
        hooks: HookManager | None = None,
        config: Config | None = None,
        results: ResultStore | None = None,
        approver: Approver | None = None,
        person: Person | None = None,
        files: Files | None = None,
        gate: Gate | None = None,
        environments: Environments | None = None,
        processes: Processes | None = None,
        effects: Callable[[str, str | None, str | None], CallEffects] | None = None,
    ) -> None:
        if config is not None:
            registry.availability.config = config
        self.registry = registry
        self.config = config or Config()
        self.hooks = hooks or HookManager(timeout=self.config.calls.hook_timeout)
        self.results = results
        self.files = files
        self.person = person
        self.approver = approver
        self.gate = gate
        self.environments = environments
        self.processes = processes
        self.effects = effects
        # What a model is given when nobody says what: by default everything.
        self.given_by_default: Callable[[], frozenset[str]] = lambda: frozenset(registry.get_all_tool_names())
        self.own_toolsets: Callable[[], Toolsets] = lambda: Toolsets(registry, self.config.toolsets)
        self.uses: dict[str, int] = {}
        self.before_call: Callable[[], object] | None = None
        self.path = CallPath(self)
        if registry.runner is None:
            registry.runner = self

    def handle(self, name: str, args: Any, *who: str | None, **more: Any) -> Outcome:
        """Run one call. It never raises for what a tool, a hook or a model does; `who` and `more` are Call's other fields."""
        if self.before_call is not None:
            self.before_call()
        return drive(self.path(Call(name, args, *who, **more)))

    def ahandle(self, name: str, args: Any, *who: str | None, **more: Any) -> Awaitable[Outcome]:
        """`handle` for async callers: async tools run in this loop, and cancelling the caller cancels the call."""
        if self.before_call is not None:
            self.before_call()
        call = Call(name, args, *who, **more)
        call.contained = True
        return self._adrive(self.path(call))

    def dispatch(self, name: str, args: Any, context: JsonDict, /) -> Outcome:
        """Run one call without hooks: what `registry.dispatch` does."""
        call, path = self._dispatched(name, args, dict(context))
        return drive(path(call))

    async def adispatch(self, name: str, args: Any, context: JsonDict, /) -> Outcome:
        """`dispatch` for async callers."""
        call, path = self._dispatched(name, args, dict(context))
        call.contained = True
        return await self._adrive(path(call))

    @cached_property
    def _adrive(self) -> Callable[[Flow[Outcome]], Awaitable[Outcome]]:
        from .async_driver import adrive  # imports asyncio, which sync programs never need

        return adrive

    def _dispatched(self, name: str, args: Any, context: JsonDict) -> tuple[Call, Callable[[Call], Flow[Outcome]]]:
        gate = context.pop("gate", None)
        known = {field: context.pop(field) for field in _CALL_FIELDS if field in context}
        call = Call(name, args, **known)
        call.context, call.extra = context.pop("context", None), context
        path = self.path if gate is None else CallPath(self, gate)
        return call, path.without_hooks

    def context(self, call: Call, cancel: CancelToken) -> ToolContext:
        """What the call's functions may know and use beyond its arguments."""
        made, environments = call.made_context, self.environments
        if made is not None and made.cancel is cancel and made.judged_paths == call.judged_paths:
            return made
        if call.effects is None and self.effects is not None:
            call.effects = self.effects(call.name, call.session_id, call.task_id)
        call.made_context = made = ToolContext(
            tool=call.name,
            task_id=call.task_id,
            session_id=call.session_id,
            user_task=call.user_task,
            tool_call_id=call.tool_call_id,
            cancel=cancel,
            on_progress=call.on_progress,
            results=self.results,
            approver=call.caller.approver or self.approver,
            gate=self.gate,
            agent=call.agent,
            files=self.files if environments is None else environments.files(call.task_id),
            person=call.caller.person or self.person,
            environments=environments,
            processes=self.processes,
            tools=CallersTools(self, call),
            client=call.client,
            config=self.config,
            judged_paths=call.judged_paths,
            caller=call.caller,
            changes=call.changes,
            effects=call.effects,
        )
        return made

    @cached_property
    def own_gate(self) -> Gate:
        """For what is asked in a runtime that was given none."""
        from ..approval.gate import ApprovalGate  # most runtimes are given one, or never ask

        return ApprovalGate()


class CallersTools:
    """See `protocols.Toolbox`. It costs nothing until it is used."""

    __slots__ = ("_call", "_names", "_runtime")

    def __init__(self, runtime: Runtime, call: Call) -> None:
        self._runtime, self._call, self._names = runtime, call, call.enabled_tools

    def names(self) -> frozenset[str]:
        if self._names is None:
            self._names = self._runtime.given_by_default()
        return self._names

    def names_of(self, toolsets: Sequence[str]) -> frozenset[str]:
        return frozenset(self._runtime.own_toolsets().select(toolsets))

    def entries(self) -> Sequence[ToolEntry]:
        registry = self._runtime.registry
        entries = registry.get_entries(sorted(self.names()))
        missing = registry.availability.unavailable(entries)
        return [entry for entry in entries if entry.name not in missing]

    def call(self, name: str, arguments: Any, *, cancel: CancelToken | None = None, number: int = 0) -> Outcome:
        outer = self._call
        call_id = f"{outer.tool_call_id}.{number}" if number else outer.tool_call_id
        more = {**self._more(), "tool_call_id": call_id, "cancel": cancel or outer.cancel}
        return self._runtime.handle(name, arguments, outer.task_id, outer.user_task, outer.session_id, **more)

    async def acall(self, name: str, arguments: Any) -> Outcome:
        outer = self._call
        who = (outer.task_id, outer.user_task, outer.session_id)
        return await self._runtime.ahandle(name, arguments, *who, **self._more())

    def _more(self) -> JsonDict:
        """Everything else of the outer call that holds for the inner one."""
        outer = self._call
        return {
            "tool_call_id": outer.tool_call_id,
            "cancel": outer.cancel,
            "on_progress": outer.on_progress,
            "agent": outer.agent,
            "client": outer.client,
            "enabled_tools": self.names(),
            "caller": outer.caller._replace(answered=(), asked=None),
        }


log = logging.getLogger(__name__)

CONFIG_HOOKS = "config.yaml"
USES_FILE = "tool-uses.json"
MAX_USES = 10_000
_MAX_NAMED = 5


class Source(NamedTuple):
    """A configuration with its home, and where it comes from."""

    config: Config
    reads_file: bool = False
    temporary_home: str | None = None
    pins: Mapping[str, str] = {}  # the files that hooks run, by digest
    baseline: Config | None = None  # what the file says, without the environment's overrides
    waiting: frozenset[str] = frozenset()  # toolsets, also of MCP servers, that the file adds and nobody has confirmed


def locate(config: Config | None, home: str | os.PathLike[str] | None, *, confirms: bool) -> Source:
    """The configuration that was given or is in the file, with the folder in which its object keeps its files."""
    temporary = None
    if home is not None:
        folder = str(Path(home).expanduser().absolute())
    elif config is None or config.home:
        folder = config.home if config is not None else ""
    else:
        from ..base.temporary_folders import make_folder  # most programs keep their state

        folder = temporary = make_folder("home")
    if config is not None:
        return Source(replace(config, home=folder), temporary_home=temporary)
    file = config_path(folder)
    held = held_config(file, state_dir(folder), confirms=confirms)
    if held.waiting:
        what = "; ".join(map(str, held.waiting[:_MAX_NAMED])) + ("; ..." if len(held.waiting) > _MAX_NAMED else "")
        waits = "that waits for `handrail config confirm` in a terminal of yours"
        log.warning("%s is weaker than it was: %s; %s", file, what, "it holds from now on" if confirms else waits)
    keys = [change.key.split(".") for change in held.waiting]
    kinds = {"mcp_servers": "mcp-", "toolsets": ""}
    waiting = frozenset(kinds[key[0]] + key[1] for key in keys if key[0] in kinds and len(key) > 1)
    config = replace(held.config, home=folder)
    return Source(config, reads_file=True, pins=held.files, baseline=held.of_file, waiting=waiting)


def results_of(config: Config) -> FileResultStore:
    limits = config.results
    return FileResultStore(
        state_dir(config.home) / "results", keep_days=limits.keep_days, max_total_bytes=limits.max_total_bytes
    )


def load_plugins(config: Config, registry: ToolRegistry, hooks: HookManager, backends: Backends) -> Plugins | None:
    """None when there are none, as for most: then nothing of theirs is imported."""
    found = list(find_plugins(home=config.home))
    if not found:
        return None
    from ..config.trust import TRUST_FILE, Trust
    from ..plugins.loader import Plugins

    trust = Trust(state_dir(config.home) / TRUST_FILE)
    plugins = Plugins(registry, hooks, config.plugins, trust=trust, load_seconds=config.calls.plugin_timeout)
    plugins.contributions.config = config
    plugins.load(found)
    for backend in plugins.contributions.environments.values():
        backends.add(backend)
    return plugins


def add_command_hooks(
    hooks: HookManager,
    source: Source,
    environments: TaskEnvironments,
    open_call: Callable[[str, str | None, str | None], CallEffects],
) -> None:
    """The programs that the configuration names as hooks."""
    config = source.config
    if not config.hooks:
        return
    from ..environments.backend_table import journal_settings
    from ..environments.protection import configured as protected_by
    from ..plugins.command_hooks import HookShells, register_external

    protection = protected_by(config)
    effects = journal_settings(config) if config.effects.enabled and protection is not None else None
    register_external(
        hooks,
        config.hooks,
        plugin=CONFIG_HOOKS,
        folder=config_path(config.home).parent,
        pins=source.pins,
        shells=lambda: environments.companion(HookShells, lambda: HookShells(protection, effects)),
        open_call=open_call,
    )


def find_mcp_servers(config: Config, registry: ToolRegistry) -> McpTools | None:
    """Nothing is connected before somebody asks for the tools there are, or calls one of a server's."""
    if not config.mcp_servers and project_mcp_file() is None:
        return None
    from ..mcp_client.server_config import find_servers
    from ..tools.mcp.server_tools import McpTools

    servers = find_servers(config.mcp_servers, config_file=config_path(config.home))
    mcp = McpTools(servers, registry, folder=state_dir(config.home) / "mcp", config=config)
    registry.late = mcp.find
    return mcp


def configured_approver(config: Config, plugins: Plugins | None) -> Approver | None:
    """Who answers where no person is at hand: the one that a plugin adds, then the queue, or nobody.
    Raises ConfigError for one that no plugin has; while a plugin is not loaded, nobody answers instead."""
    settings = config.approvals
    if not settings.approver and settings.headless == "deny":
        return None
    from ..approval.requests import ChainApprover, QueueApprover

    queue = None if settings.headless == "deny" else QueueApprover()
    if not settings.approver:
        return queue
    known = plugins.contributions.approvers if plugins else {}
    if settings.approver not in known:  # no other may stand in
        what = f"approvals.approver: unknown approver {settings.approver!r}"
        if plugins is not None and plugins.unloaded:
            log.warning("%s, so nobody answers; plugins that are not loaded: %s", what, ", ".join(plugins.unloaded))
            return None
        raise ConfigError(f"{what}; {did_you_mean(settings.approver, list(known)) if known else 'no plugin has one'}")
    chosen: Approver = known[settings.approver]
    return chosen if queue is None else ChainApprover(chosen, queue)


def remote_person(config: Config) -> Person | None:
    """Who is asked where nobody is at the terminal."""
    if not config.messages.person:
        return None
    from ..platforms.table import RemoteUser

    return RemoteUser(config.messages.person, config.messages.targets, seconds=config.messages.answer_timeout)


def open_gate(source: Source, rules: Sequence[Rule], notices: Notices, *, confirms: bool) -> ApprovalGate:
    """One that was configured by a file reads it again when it changes."""
    from ..approval.action_review import private_dirs
    from ..approval.gate import ApprovalGate  # most starts see no action
    from ..approval.settings import Settings, policy_file, project_settings

    home = source.config.home
    confirmed = Confirmed(state_dir(home))
    project = policy_file() or confirmed.policy_above()
    if project is not None and confirms:
        with contextlib.suppress(ConfigError):  # the gate reports it
            confirmed.confirm(project, project_settings(project))
    settings = Settings(
        source.config,
        path=config_path(home) if source.reads_file else None,
        project=project,
        more_rules=rules,
        confirmed=confirmed,
        baseline=source.baseline,
    )
    return ApprovalGate(settings, folder=state_dir(home), notices=notices, private=private_dirs(home))


def previous_uses(home: str) -> dict[str, int]:
    """What earlier runtimes with this home have counted."""
    known = remembered(USES_FILE, home=home)
    return {name: count for name, count in known.items() if isinstance(count, int)}


def remember_uses(uses: Mapping[str, int], home: str) -> None:
    """Add the uses of a runtime that ends."""
    if not uses:
        return
    known = previous_uses(home)
    total = {name: known.get(name, 0) + uses.get(name, 0) for name in {*known, *uses}}
    if sum(total.values()) > MAX_USES:  # what was used long ago counts ever less
        total = {name: count // 2 for name, count in total.items() if count > 1}
    remember(USES_FILE, total, home=home)
