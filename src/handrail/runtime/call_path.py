"""The way of one call: a stack of wrappers around its handler. Every surface takes it, from sync or async code.

    notify_hooks    post_tool_call and transform_tool_result see every answer
    report          what goes wrong inside becomes the model's answer
    look_up         unknown? unavailable, and why?
    read_arguments  decode, validate, coerce
    recall          a call of an earlier attempt is answered as its journal has it
    ask_hooks       pre_tool_call: pass, block, ask, change
    pass_gate       what is it about to do? judge it, ask a person
    note            its journal, if it has one, knows that it begins and how it ended
    run             the handler, bounded in time; its answer is cut to what the model's context can bear

A call without hooks, or without a journal, has no wrappers for them. `registry.dispatch` is the same stack without hooks.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, NamedTuple

from ..base.safe_text import safe_error
from ..core.entry import keywords_of, resolved
from ..core.outcome import error_outcome, failure_outcome, text_of, to_outcome, tool_error, value_of
from ..core.registry import unknown_tool
from ..errors import CallCancelled, CallTimeout, Denied, Edited, NeedsAgent, ToolError, ToolUnavailable
from ..protocols import Action, ActionKind
from ..types import CancelToken, Gate, JsonDict, Outcome
from .arguments import prepare
from .results import fit
from .steps import TURN, Call, Flow, Services, Step, StepKind, caught, cause, guarded

if TYPE_CHECKING:
    from ..core.entry import ToolEntry
    from .tool_hooks import HooksAroundCall

Inner = Callable[["Call"], Flow[Outcome]]

# Seconds that a handler which notices a cancel may take to end by itself, and return what it has.
CANCEL_GRACE_SECONDS = 1.0
GATE_MARGIN_SECONDS = 60.0
_MAX_PLANS = 200_000
_MAX_EDITS = 20  # by an approver that never stops


class Plan(NamedTuple):
    """What is known of a tool before a call comes."""

    entry: ToolEntry
    plain: bool  # it waits for nothing outside, and returns soon
    wants_context: bool
    passes: frozenset[str] | None  # the keyword arguments that the handler takes; None: all of them
    max_chars: float
    in_loop: Callable[..., Awaitable[Any] | None] | None  # the twin of a handler that bounds its own time, for a loop


class CallPath:
    """Makes the flow of a call: `path(call)` with hooks, `path.without_hooks(call)`. `gate` takes the place of the runtime's."""

    def __init__(self, runtime: Services, gate: Gate | None = None) -> None:
        self._runtime, self._own_gate = runtime, gate
        self._registry, self._hooks = runtime.registry, runtime.hooks
        self._max_argument_chars = runtime.config.calls.max_argument_chars
        self._plans: dict[str, Plan] = {}
        self._reviewed: set[str] = set()
        # Others' handlers and hooks get no hold of the caller's loop: for programs that serve many.
        self.isolates = False
        self._stacks = {(hooks, journal): self._stack(hooks, journal) for hooks in (0, 1) for journal in (0, 1)}
        self.without_hooks = self._stacks[0, 0]

    def __call__(self, call: Call) -> Flow[Outcome]:
        return self._stacks[self._hooks.around_calls, call.caller.journal is not None](call)

    def _stack(self, hooks: int, journal: int) -> Inner:
        """The wrappers of a call, with those for hooks and for a journal or without them."""
        return stack(
            *[self.notify_hooks] * hooks,
            *(self.report, self.look_up, self.read_arguments),
            *[self.recall] * journal,
            *[self.ask_hooks] * hooks,
            self.pass_gate,
            *[self.note] * journal,
            self.run,
        )

    def until_run(self, gate: Gate) -> Inner:
        """The way of a call up to its handler, which does not run, past another gate. What goes wrong is raised."""
        path = CallPath(self._runtime, gate)
        return stack(path.look_up, path.read_arguments, path.ask_hooks, path.pass_gate, _nothing)

    @cached_property
    def _around(self) -> HooksAroundCall:
        from .tool_hooks import HooksAroundCall  # most programs have no hooks

        return HooksAroundCall(self._hooks, self._ask, isolates=lambda: self.isolates)

    def notify_hooks(self, inner: Inner, call: Call) -> Flow[Outcome]:
        outcome = yield from inner(call)
        try:
            outcome = yield from self._around.after(call, outcome)
            entry = call.entry
            return to_outcome(call.name, outcome) if entry is None else self._fitted(self._plan(entry), outcome)
        except BaseException as error:  # noqa: BLE001  whatever went wrong around a call becomes its answer
            return _failed_around(call.name, caught(call, error))

    def report(self, inner: Inner, call: Call) -> Flow[Outcome]:
        try:
            return (yield from inner(call))
        except BaseException as raised:  # noqa: BLE001  whatever went wrong around a call becomes its answer
            error = caught(call, raised)
            if not isinstance(error, Edited) or call.edits >= _MAX_EDITS:
                call.blocked = isinstance(error, Denied)
                return error_outcome(error) if isinstance(error, ToolError) else _failed_around(call.name, error)
        call.edits = number = call.edits + 1
        call.raw = {**call.arguments, error.argument: error.text}
        outcome = yield from self.report(inner, call)
        return _with_edit(outcome, error) if call.edits == number else outcome

    def look_up(self, inner: Inner, call: Call) -> Flow[Outcome]:
        name = call.name
        if call.enabled_tools is not None and name not in call.enabled_tools:
            raise unknown_tool(name, call.enabled_tools)
        entry = self._registry.ready(name)
        if entry is None:  # a check of the tool, or the server that may offer it, takes its time
            entry = yield Step(lambda: self._registry.lookup(name), in_caller=False)
        call.entry, uses = entry, self._runtime.uses
        uses[entry.name] = uses.get(entry.name, 0) + 1
        return (yield from inner(call))

    def read_arguments(self, inner: Inner, call: Call) -> Flow[Outcome]:
        entry = _entry(call)
        call.arguments = prepare(entry.contract, call.raw, max_chars=self._max_argument_chars)
        if entry.needs_agent and call.agent is None:
            raise NeedsAgent(f"{call.name} must be handled by the agent loop, and no agent is running here")
        return inner(call)

    def recall(self, inner: Inner, call: Call) -> Flow[Outcome]:
        entry, journal = _entry(call), call.caller.journal
        assert journal is not None
        call.journal_entry = journal.open(
            call.name,
            call.arguments,
            call_id=call.tool_call_id,
            toolset=entry.toolset if entry.is_builtin else "",
            read_only=entry.read_only,
        )
        if call.journal_entry.recorded is not None:
            return call.journal_entry.recorded
        return (yield from inner(call))

    def note(self, inner: Inner, call: Call) -> Flow[Outcome]:
        entry = call.journal_entry
        assert entry is not None  # `recall` has opened it
        yield Step(entry.begin, in_caller=False)
        outcome = yield from inner(call)
        recorded: Outcome = yield Step(partial(entry.end, outcome), in_caller=False)
        return recorded

    def ask_hooks(self, inner: Inner, call: Call) -> Flow[Outcome]:
        call.arguments = yield from self._around.before(call, _entry(call))
        return (yield from inner(call))

    def _ask(self, call: Call, action: Any) -> Flow[None]:
        """A hook's question passes a gate too, also in a runtime that was given none."""
        gate, context = self._gate or self._runtime.own_gate, self._runtime.context(call, call.cancel or CancelToken())
        yield Step(lambda: gate.review([action], context), self._gate_seconds, call.cancel, kind=StepKind.QUESTION)

    def pass_gate(self, inner: Inner, call: Call) -> Flow[Outcome]:
        """Nothing changes the call later, and what it depends on (where the task's shell is) is as the calls before it left
        it: what the gate says yes to is what runs."""
        if call.batched or self._has_actions(call):
            return self._gated(inner, call)
        return inner(call)

    def _has_actions(self, call: Call) -> bool:
        """Whether the tool says what it is about to do, or the mode of the session asks about every tool that changes."""
        entry = _entry(call)
        if entry.actions is not None or entry.read_only or entry.needs_agent:
            return entry.actions is not None
        is_strict = getattr(self._gate, "is_strict", None)  # gates of others need only review
        return is_strict is not None and is_strict(call.session_id)

    def _gated(self, inner: Inner, call: Call) -> Flow[Outcome]:
        if call.batched:
            yield TURN
        if not self._has_actions(call):
            return (yield from inner(call))
        name = call.name
        # The first review of a tool imports what it needs, which may take long.
        is_first = name not in self._reviewed
        self._reviewed.add(name)
        stop = call.stop = CancelToken()
        forget = stop.link(call.cancel) if call.cancel is not None else None
        try:
            review = partial(self._review, call, stop)
            yield Step(review, self._gate_seconds, call.cancel, may_block=is_first, kind=StepKind.QUESTION)
            return (yield from inner(call))
        finally:
            if forget is not None:
                forget()

    def _review(self, call: Call, stop: CancelToken) -> Any:
        entry = _entry(call)
        context = call.context or self._runtime.context(call, stop)
        if entry.actions is not None:
            actions = entry.actions(call.arguments, context)
        else:
            actions = (Action(ActionKind.TOOL, f"{entry.name} {json.dumps(call.arguments, ensure_ascii=False)}"),)
        if not actions:
            return None
        gate = self._gate
        if gate is None:
            raise Denied(
                f"{entry.name} passes a gate before it does this, and there is none here; give the runtime a gate",
                decided_by="nobody",
            )
        if len(actions) == 1 and actions[0].kind in (ActionKind.COMMAND, ActionKind.CODE):
            # With the name of the argument that its text is: a user may change that before saying yes.
            for name, value in call.arguments.items():
                if value == actions[0].text:
                    actions = [actions[0]._replace(details={**actions[0].details, "argument": name})]
                    break
        call.judged_paths = tuple([action.text for action in actions if action.kind is ActionKind.FILE_WRITE])
        return gate.review(actions, context)

    @property
    def _gate(self) -> Gate | None:
        return self._own_gate or self._runtime.gate

    @property
    def _gate_seconds(self) -> float:
        """The gate ends its own waiting for an answer; this bounds one that does not."""
        return self._runtime.config.approvals.timeout + GATE_MARGIN_SECONDS

    def run(self, call: Call) -> Flow[Outcome]:
        entry = _entry(call)
        plan = self._plans.get(entry.name)
        if plan is None or plan.entry is not entry:
            plan = yield Step(partial(self._plan, entry), may_block=True)  # imports the handler's module
        if call.cancel is not None or not plan.plain or call.batched or self._isolates(entry) or self._is_wrapped(call):
            return (yield from self._run_bounded(plan, call))
        try:
            value = guarded(self._bound(plan, call, None), contained=call.contained)
            if hasattr(value, "__await__"):
                value = yield value
            return self._fitted(plan, value)
        except Exception as error:  # noqa: BLE001  a handler's bug becomes the model's result
            return failure_outcome(cause(error))

    def _run_bounded(self, plan: Plan, call: Call) -> Flow[Outcome]:
        entry, stop, is_wrapped = plan.entry, call.stop or CancelToken(), self._is_wrapped(call)
        is_apart = self._isolates(entry)
        in_loop = None if is_wrapped or is_apart else plan.in_loop

        def begun_in_loop() -> Awaitable[Any] | None:
            assert in_loop is not None
            value = in_loop(call.arguments, context=call.context or self._runtime.context(call, stop))
            return None if value is None else _ended_when_awaited(call, value)

        forget = stop.link(call.cancel) if call.cancel is not None and call.stop is None else None
        try:
            stop.raise_if_cancelled()
            step = Step(
                self._bound(plan, call, stop),
                entry.timeout,
                stop if call.cancel is not None or is_apart else None,
                in_caller=not is_wrapped and (entry.is_async or (entry.timeout is None and call.cancel is None)),
                may_block=is_wrapped or not (plan.plain or entry.is_async),
                grace=CANCEL_GRACE_SECONDS if plan.wants_context else 0,
                apart=is_apart,
                contained=call.contained,
                kind=StepKind.HANDLER,
                in_loop=None if in_loop is None else begun_in_loop,
            )
            outcome = self._fitted(plan, (yield step))
            return cut_short(call.name, stop.error(), partial=outcome) if stop.cancelled else outcome
        except (CallTimeout, CallCancelled) as error:
            stop.cancel("it timed out", timed_out=isinstance(error, CallTimeout))
            return cut_short(call.name, error)
        except Exception as error:  # noqa: BLE001  a handler's bug becomes the model's result
            return failure_outcome(cause(error))
        except BaseException:
            stop.cancel("the caller went away")
            raise
        finally:
            if forget is not None:
                forget()

    def _isolates(self, entry: ToolEntry) -> bool:
        return self.isolates and not entry.is_builtin

    def _bound(self, plan: Plan, call: Call, stop: CancelToken | None) -> Callable[[], Any]:
        """The one place where a handler is called."""
        known: JsonDict = {"task_id": call.task_id, "session_id": call.session_id, "user_task": call.user_task}
        if call.extra:
            known.update(call.extra)
        if plan.passes is not None:
            known = {name: value for name, value in known.items() if name in plan.passes}
        if plan.entry.needs_agent:
            known["agent"] = call.agent
        entry, arguments = plan.entry, call.arguments

        def bound() -> Any:
            if plan.wants_context:
                known["context"] = call.context or self._runtime.context(call, stop or CancelToken())
            return entry.handler(arguments, **known)

        work = partial(self._around.wrapped, call, bound, self.without_hooks) if self._is_wrapped(call) else bound
        return partial(_ended_after, call, work) if plan.wants_context or call.effects is not None else work

    def _is_wrapped(self, call: Call) -> bool:
        return bool(self._hooks.middleware.get("tool_execution")) and not call.is_rewritten

    def _fitted(self, plan: Plan, value: Any) -> Outcome:
        """What a handler returned, as the model gets it."""
        outcome = value if type(value) is str and value.isascii() else to_outcome(plan.entry.name, value)
        if len(outcome) <= plan.max_chars and type(outcome) is str:
            return outcome
        return fit(outcome, tool=plan.entry.name, max_chars=plan.max_chars, store=self._runtime.results)

    def _plan(self, entry: ToolEntry) -> Plan:
        plan = self._plans.get(entry.name)
        if plan is not None and plan.entry is entry:
            return plan
        passes, wants_context = keywords_of(entry.handler)
        waits = entry.needs_agent or any(each is not None for each in (entry.timeout, entry.check_fn, entry.actions))
        max_chars = entry.max_result_size_chars
        if max_chars is None:
            max_chars = self._runtime.config.results.max_chars
        is_plain = passes is None and not wants_context and not waits
        in_loop = getattr(resolved(entry.handler), "in_loop", None) if entry.timeout is None else None
        plan = Plan(entry, is_plain, wants_context, passes, max_chars, in_loop)
        if len(self._plans) > _MAX_PLANS:  # servers come and go, and their tools with them
            self._plans.clear()
        self._plans[entry.name] = plan
        return plan


def stack(*wrappers: Any) -> Inner:
    """The last is the innermost; each of the others gets the one inside it, and the call."""
    inner: Inner = wrappers[-1]
    for wrapper in reversed(wrappers[:-1]):
        inner = partial(wrapper, inner)
    return inner


def _nothing(call: Call) -> Flow[Outcome]:  # noqa: ARG001  the innermost of a stack
    yield Step(lambda: None)
    return ""


def _ended_after(call: Call, handler: Callable[[], Any]) -> Any:
    """What the handler returns. Its call has ended then, also where nobody waits for it any longer."""
    try:
        value = handler()
    except BaseException:
        _end(call)
        raise
    if hasattr(value, "__await__"):
        return _ended_when_awaited(call, value)
    _end(call)
    return value


async def _ended_when_awaited(call: Call, value: Any) -> Any:
    try:
        return await value
    finally:
        _end(call)


def _end(call: Call) -> None:
    if call.effects is not None:
        call.effects.end()


def _entry(call: Call) -> ToolEntry:
    if call.entry is None:
        raise ToolUnavailable(f"{call.name} was not looked up")
    return call.entry


def _failed_around(name: str, error: BaseException) -> str:
    return tool_error(safe_error(f"Error executing {name}: {text_of(error)}"))


def _with_edit(outcome: Outcome, edit: Edited) -> Outcome:
    """The answer, with what ran instead of what the model wrote."""
    if not isinstance(outcome, str):
        return outcome
    had = value_of(outcome)
    note = {"edited_by": edit.by, edit.argument: edit.text}
    return json.dumps({**(had if isinstance(had, dict) else {"result": had}), "edited": note}, ensure_ascii=False)


def cut_short(name: str, error: CallTimeout | CallCancelled, *, partial: Outcome | None = None) -> str:
    """The answer for a call that was stopped, with what the handler had by then."""
    verb = "" if isinstance(error, CallTimeout) else "was cancelled: "
    if partial is None:
        return error_outcome(type(error)(f"{name} {verb}{error}"))
    # As the tool returned it, not cut down to an error's length.
    return tool_error(safe_error(f"{name} {verb}{error}"), error_type=error.error_type, partial=value_of(partial))
