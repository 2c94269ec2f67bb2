"""A registry, the hooks around its calls, and what the calls may use: everything that runs one call."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import cached_property
from typing import Any

from ..config import Config
from ..core.registry import ToolEntry, ToolRegistry
from ..plugins.hook_manager import HookManager
from ..protocols import Approver, CallEffects, Environments, Files, Person, Processes, ResultStore
from ..toolsets import Toolsets
from ..types import CancelToken, Gate, JsonDict, Outcome, ToolContext
from .call_path import CallPath, Services
from .results import fit
from .steps import Call, Flow, drive

_CALL_FIELDS = "task_id user_task session_id tool_call_id cancel on_progress agent enabled_tools caller".split()


class Runtime:
    """A registry, the hooks around its calls, and what the calls may use.

    With `environments` a call's files are those of its task; `files` are for a runtime that has none.
    """

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
        self._services = Services(
            registry,
            self.config,
            self.hooks,
            self.uses,
            self.context,
            gate=lambda: self.gate,
            gate_for_questions=lambda: self.gate or self._gate_of_its_own,
            cut=lambda tool, outcome, limit: fit(outcome, tool=tool, max_chars=limit, store=self.results),
        )
        self.path = CallPath(self._services)
        if registry.runner is None:
            registry.runner = self

    def handle(self, name: str, args: Any, *who: str | None, **more: Any) -> Outcome:
        """Run one call. It never raises for what a tool, a hook or a model does; `who` and `more` are Call's other fields."""
        return drive(self.path(Call(name, args, *who, **more)))

    def ahandle(self, name: str, args: Any, *who: str | None, **more: Any) -> Awaitable[Outcome]:
        """`handle` for async callers: async tools run in this loop, and cancelling the caller cancels the call."""
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
        path = self.path if gate is None else CallPath(self._services._replace(gate=lambda: gate))
        return call, path.without_hooks

    def context(self, call: Call, cancel: CancelToken) -> ToolContext:
        """What the call's functions may know and use beyond its arguments."""
        environments = self.environments
        if call.effects is None and self.effects is not None:
            call.effects = self.effects(call.name, call.session_id, call.task_id)
        return ToolContext(
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

    @cached_property
    def _gate_of_its_own(self) -> Gate:
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
