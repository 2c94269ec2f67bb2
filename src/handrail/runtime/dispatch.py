"""One call, from what the model sent to what the model gets."""

from __future__ import annotations

import inspect
import json
import time
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from ..base.async_bridge import is_being_cancelled, is_cancellation, run_async
from ..base.safe_text import safe_error
from ..config import Config
from ..core.outcome import Outcome, error_outcome, failure_outcome, to_outcome, tool_error
from ..core.registry import ToolEntry, ToolRegistry, unknown_tool
from ..errors import CallCancelled, CallTimeout, Denied, NeedsAgent, ToolError
from ..plugins.hook_manager import HookManager
from ..toolsets import Toolsets
from ..types import CancelToken, ProgressListener, ToolContext
from .arguments import prepare
from .results import fit
from .steps import Flow, Foreign, Step, drive
from .toolbox import CallersTools

if TYPE_CHECKING:
    from ..environments.tasks import TaskEnvironments
    from ..processes.table import ProcessTable
    from ..protocols import Approver, Files, Person, ResultStore
    from ..types import AgentState, Gate, JsonDict
    from .tool_hooks import HooksAroundCall


# What a handler that can hear of a cancel may take to end by itself, and give back what it has.
CANCEL_GRACE_SECONDS = 1.0


GATE_MARGIN_SECONDS = 60.0

_MAX_PLANS = 200_000


class Call(NamedTuple):
    """Who asks, and how to reach them while the call runs."""

    name: str
    arguments: Any
    task_id: str | None = None
    user_task: str | None = None
    session_id: str | None = None
    tool_call_id: str = ""
    cancel: CancelToken | None = None
    on_progress: ProgressListener | None = None
    agent: AgentState | None = None
    enabled_tools: frozenset[str] | None = None  # all that the model was given; None: what the configuration gives


class Prepared:
    """A call whose arguments are final: valid, and past every hook that could stop or change it. The gate comes later."""

    __slots__ = ("arguments", "blocked", "call", "entry", "is_reviewed", "refusal", "started")

    def __init__(self, call: Call) -> None:
        self.call = call
        self.entry: ToolEntry | None = None
        self.arguments: JsonDict = {}
        self.refusal: Outcome | None = None
        self.blocked = self.is_reviewed = False
        self.started = time.perf_counter()


class Plan(NamedTuple):
    """What is known of a tool before a call comes."""

    entry: ToolEntry
    plain: bool
    wants_context: bool
    passes: frozenset[str] | None
    max_chars: float


class Runtime:
    """A registry, the hooks around its calls, and what the calls may use.

    With `environments` a call's files are those of its task; `files` are for a runtime that has none.
    """

    def __init__(  # noqa: PLR0913  one keyword a thing that calls may use
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
        environments: TaskEnvironments | None = None,
        processes: ProcessTable | None = None,
    ) -> None:
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
        # What a model is given when nobody says what: by default everything.
        self.given_by_default: Callable[[], frozenset[str]] = lambda: frozenset(registry.get_all_tool_names())
        self.toolsets = Toolsets(registry, self.config.toolsets)
        self.uses: dict[str, int] = {}  # how often each tool was called, but for those of the short way
        self._max_argument_chars = self.config.calls.max_argument_chars
        self._plans: dict[str, Plan] = {}

    def handle(
        self,
        name: str,
        args: Any,
        task_id: str | None = None,
        user_task: str | None = None,
        session_id: str | None = None,
        **more: Any,
    ) -> Outcome:
        """Run one call. It never raises for what a tool, a hook or a model does; `more` are the other fields of Call."""
        plan = None if more else self._short_way(name)
        if plan is None or self.hooks.around_calls:
            call = Call(name, args, task_id, user_task, session_id, **more)
            return drive(self._flow(call)) if plan is None else self._hooks_around.run_at_once(plan, call)
        try:
            arguments = prepare(plan.entry.contract, args, max_chars=self._max_argument_chars)
            value = plan.entry.handler(arguments, task_id=task_id, session_id=session_id, user_task=user_task)
            if type(value) is not str:
                value = run_async(value) if hasattr(value, "__await__") else value
            return self.finished(plan, value)
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:  # noqa: BLE001  a handler's bug becomes the model's result
            return failure_outcome(error)

    async def ahandle(
        self,
        name: str,
        args: Any,
        task_id: str | None = None,
        user_task: str | None = None,
        session_id: str | None = None,
        **more: Any,
    ) -> Outcome:
        """`handle` for async callers: async tools run in this loop, and cancelling the caller cancels the call."""
        plan = None if more else self._short_way(name)
        if plan is None or self.hooks.around_calls:
            call = Call(name, args, task_id, user_task, session_id, **more)
            from .async_driver import adrive

            return await adrive(self._flow(call))
        try:
            arguments = prepare(plan.entry.contract, args, max_chars=self._max_argument_chars)
            value = plan.entry.handler(arguments, task_id=task_id, session_id=session_id, user_task=user_task)
            if type(value) is not str and hasattr(value, "__await__"):
                value = await value
            return self.finished(plan, value)
        except (KeyboardInterrupt, SystemExit, GeneratorExit):
            raise
        except BaseException as error:
            if is_cancellation(error) and is_being_cancelled():
                raise
            return failure_outcome(error)

    def _short_way(self, name: str) -> Plan | None:
        """The plan of a tool that only has to be called: it waits for nothing, and whoever watches returns at once."""
        plan = self._plans.get(name) if type(name) is str else None
        if plan is None or not plan.plain or plan.entry is not self.registry.get_entry(name):
            return None
        if self.hooks.around_calls and not self.hooks.at_once:
            return None
        return plan

    def prepare(self, call: Call) -> Flow[Prepared]:
        """Everything before the tool itself runs."""
        prepared = Prepared(call)
        try:
            if call.enabled_tools is not None and call.name not in call.enabled_tools:
                raise unknown_tool(call.name, call.enabled_tools)
            at_once = self.registry.known_at_once(call.name)
            prepared.entry = yield Step(lambda: self.registry.lookup(call.name), in_caller=at_once)
            self.uses[call.name] = self.uses.get(call.name, 0) + 1
            prepared.arguments = prepare(prepared.entry.contract, call.arguments, max_chars=self._max_argument_chars)
            if prepared.entry.needs_agent and call.agent is None:
                raise NeedsAgent(f"{call.name} must be handled by the agent loop, and no agent is running here")
            if self.hooks.around_calls:
                prepared.arguments = yield from self._hooks_around.before(call, prepared.entry, prepared.arguments)
        except Exception as raised:  # noqa: BLE001  whatever went wrong around a call is told, never raised
            self._refuse(prepared, raised)
        return prepared

    def review(self, prepared: Prepared) -> Flow[None]:
        """Have the gate look at what the call is about to do. Nothing changes the call later, and what it depends on (where
        the task's shell is) is as the calls before it left it: what the gate says yes to is what runs."""
        entry = prepared.entry
        if prepared.refusal is not None or entry is None or entry.actions is None or prepared.is_reviewed:
            return
        prepared.is_reviewed = True
        try:
            yield Step(self._ask_gate(prepared, entry), self.gate_limit, prepared.call.cancel)
        except Exception as raised:  # noqa: BLE001  whatever went wrong around a call is told, never raised
            self._refuse(prepared, raised)

    def _refuse(self, prepared: Prepared, raised: Exception) -> None:
        error = raised.error if isinstance(raised, Foreign) else raised
        prepared.blocked = isinstance(error, Denied)
        name = prepared.call.name
        prepared.refusal = error_outcome(error) if isinstance(error, ToolError) else self._around(name, raised)

    def execute(self, prepared: Prepared, *, in_batch: bool = False) -> Flow[Outcome]:
        """Run what was prepared, and everything after it. In a batch no call has the caller's thread, and who runs the
        batch cancels its tasks."""
        yield from self.review(prepared)
        outcome = prepared.refusal
        if outcome is None and prepared.entry is not None:
            outcome = yield from self._run(prepared, prepared.entry, in_batch=in_batch)
        if outcome is None:
            outcome = tool_error(f"Error executing {prepared.call.name}: nothing was prepared")
        if self.hooks.around_calls:
            try:
                outcome = yield from self._after(prepared, outcome)
            except Exception as error:  # noqa: BLE001  whatever went wrong around a call is told, never raised
                outcome = self._around(prepared.call.name, error)
        return outcome

    def _after(self, prepared: Prepared, outcome: Outcome) -> Flow[Outcome]:
        told = self._hooks_around.after(
            prepared.call, prepared.arguments, outcome, blocked=prepared.blocked, started=prepared.started
        )
        outcome = yield from told
        if prepared.entry is None:
            return to_outcome(prepared.call.name, outcome)
        return self.finished(self._plan(prepared.entry), outcome)

    @cached_property
    def _hooks_around(self) -> HooksAroundCall:
        from .tool_hooks import HooksAroundCall  # most programs have no hooks

        return HooksAroundCall(self)

    def gate_for_questions(self) -> Gate:
        """A plugin's question passes a gate too, also in a runtime that was given none."""
        return self.gate or self._gate_of_its_own

    @property
    def gate_limit(self) -> float:
        """The gate ends its own waiting for an answer; this is for one that does not."""
        return self.config.approvals.timeout + GATE_MARGIN_SECONDS

    @cached_property
    def _gate_of_its_own(self) -> Gate:
        from ..approval.gate import ApprovalGate

        return ApprovalGate()

    def _flow(self, call: Call) -> Flow[Outcome]:
        prepared = yield from self.prepare(call)
        return (yield from self.execute(prepared))

    def _run(self, prepared: Prepared, entry: ToolEntry, *, in_batch: bool) -> Flow[Outcome]:
        call, plan = prepared.call, self._plan(entry)
        stop = CancelToken()
        forget = stop.link(call.cancel) if call.cancel is not None else None
        here = entry.is_async or (not in_batch and entry.timeout is None and call.cancel is None)
        watched = call.cancel is not None and not (in_batch and entry.is_async)
        try:
            stop.raise_if_cancelled()
            step = Step(
                self._bind(plan, prepared, stop),
                entry.timeout,
                stop if watched else None,
                in_caller=here,
                may_block=not (plan.plain or entry.is_async),
                contained=in_batch,
                grace=CANCEL_GRACE_SECONDS if plan.wants_context else 0,
            )
            outcome = self.finished(plan, (yield step))
            if not stop.cancelled:
                return outcome
            return _cut_short(call.name, stop.error(), partial=outcome)
        except (CallTimeout, CallCancelled) as error:
            stop.cancel("its time is over", timed_out=isinstance(error, CallTimeout))
            return _cut_short(call.name, error)
        except Foreign as raised:
            return failure_outcome(raised.error)
        except Exception as error:  # noqa: BLE001  what came back was no result
            return failure_outcome(error)
        except BaseException:
            stop.cancel("the caller went away")
            raise
        finally:
            if forget is not None:
                forget()

    def _bind(self, plan: Plan, prepared: Prepared, stop: CancelToken) -> Callable[[], Any]:
        call, entry = prepared.call, plan.entry
        known: JsonDict = {"task_id": call.task_id, "session_id": call.session_id, "user_task": call.user_task}
        if plan.passes is not None:
            known = {name: value for name, value in known.items() if name in plan.passes}
        if entry.needs_agent:
            known["agent"] = call.agent
        if plan.wants_context:
            known["context"] = self.context(call, stop)
        return lambda: entry.handler(prepared.arguments, **known)

    def context(self, call: Call, cancel: CancelToken) -> ToolContext:
        """What the call's functions may know and use beyond its arguments."""
        environments = self.environments
        return ToolContext(
            tool=call.name,
            task_id=call.task_id,
            session_id=call.session_id,
            user_task=call.user_task,
            tool_call_id=call.tool_call_id,
            cancel=cancel,
            on_progress=call.on_progress,
            results=self.results,
            approver=self.approver,
            gate=self.gate,
            agent=call.agent,
            files=self.files if environments is None else environments.files(call.task_id),
            person=self.person,
            environments=environments,
            processes=self.processes,
            tools=CallersTools(self, call),
            config=self.config,
        )

    def _ask_gate(self, prepared: Prepared, entry: ToolEntry) -> Callable[[], Any]:
        context = self.context(prepared.call, prepared.call.cancel or CancelToken())

        def review() -> Any:
            actions = entry.actions(prepared.arguments, context) if entry.actions is not None else ()
            if not actions:
                return None
            if self.gate is None:
                raise Denied(f"{entry.name} passes a gate before it does this, and this runtime has none; give it one")
            return self.gate.review(actions, context)

        return review

    def finished(self, plan: Plan, value: Any) -> Outcome:
        """What a handler gave back, as the model gets it."""
        outcome = value if type(value) is str and value.isascii() else to_outcome(plan.entry.name, value)
        if len(outcome) <= plan.max_chars and type(outcome) is str:
            return outcome
        return fit(outcome, tool=plan.entry.name, max_chars=plan.max_chars, store=self.results)

    def _plan(self, entry: ToolEntry) -> Plan:
        plan = self._plans.get(entry.name)
        if plan is not None and plan.entry is entry:
            return plan
        passes, wants_context = _reads(entry.handler)
        outside = entry.timeout is not None or entry.check_fn is not None or entry.needs_agent or entry.actions
        plain = passes is None and not wants_context and not outside
        max_chars = entry.max_result_size_chars
        plan = Plan(
            entry, plain, wants_context, passes, self.config.results.max_chars if max_chars is None else max_chars
        )
        if len(self._plans) > _MAX_PLANS:  # servers come and go, and their tools with them
            self._plans.clear()
        self._plans[entry.name] = plan
        return plan

    @staticmethod
    def _around(name: str, error: Exception) -> str:
        cause = error.error if isinstance(error, Foreign) else error
        return tool_error(safe_error(f"Error executing {name}: {cause}"))


def _cut_short(name: str, error: CallTimeout | CallCancelled, *, partial: Outcome | None = None) -> str:
    """The answer for a call that was stopped, with what the handler had by then."""
    verb = "" if isinstance(error, CallTimeout) else "was cancelled: "
    if partial is None:
        return error_outcome(type(error)(f"{name} {verb}{error}"))
    try:
        had: Any = json.loads(partial) if isinstance(partial, str) else partial
    except (ValueError, RecursionError):
        had = partial
    # As the tool gave it, not cut down to an error's length.
    return tool_error(safe_error(f"{name} {verb}{error}"), error_type=error.error_type, partial=had)


def _reads(handler: Callable[..., Any]) -> tuple[frozenset[str] | None, bool]:
    """The keyword arguments that a handler takes (None: whatever comes), and whether it wants the context."""
    try:
        parameters = inspect.signature(handler).parameters
    except (TypeError, ValueError):  # a builtin without a signature
        return None, False
    wants_context = "context" in parameters
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values()):
        return None, wants_context
    return frozenset(parameters), wants_context
